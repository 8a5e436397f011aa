import { text } from "../rows.ts";
import { all, type Work } from "../work.ts";

/** The tables by the records that calls name by identifiers. */
const TABLES = {
  endpoints: "endpoint",
  triggers: "workflow_trigger",
  keys: "trigger_key",
  secrets: "trigger_secret",
  "event-keys": "event_key",
  events: "event",
  deliveries: "delivery",
  replays: "replay",
  executions: "execution",
} as const;

/** Records that calls name by identifiers. */
export type Identified = keyof typeof TABLES;

/** Returns whether these are such records. */
export function isIdentified(records: string | undefined): records is Identified {
  return records !== undefined && Object.hasOwn(TABLES, records);
}

const LOWEST = "00000000-0000-0000-0000-000000000000";
const HIGHEST = "ffffffff-ffff-ffff-ffff-ffffffffffff";
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The first identifiers that begin with a text, in order; none for a text with which no UUID begins. */
export function* identifiersWith(
  records: Identified,
  prefix: string,
  { max }: { readonly max: number },
): Work<readonly string[]> {
  // Whole UUIDs as bounds: the order of their hyphens differs among the collations of PostgreSQL.
  const lowest = `${prefix}${LOWEST.slice(prefix.length)}`;
  const highest = `${prefix}${HIGHEST.slice(prefix.length)}`;
  if (!UUID.test(lowest)) return [];
  const statement = `SELECT id FROM ${TABLES[records]} WHERE id >= ? AND id <= ? ORDER BY id LIMIT ?`;
  return (yield* all(statement, lowest, highest, max)).map((row) => text(row, "id"));
}
