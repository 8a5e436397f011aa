import { all, get, type Work } from "../work.ts";
import { knownVersion, READING, type StoreConnection, transaction, withStoreToRead } from "./connection.ts";
import { fileAt } from "../sqlite/connection.ts";
import { integer, text } from "../rows.ts";
import { countSealed, sealedColumnsOf } from "../sealed.ts";
import { TABLES } from "../tables.ts";
import { countOf, TABLE_NAMES } from "./tables.ts";

/** The result of a check. */
interface StoreCheck {
  /** Its path, or its address without a password. */
  readonly shown: string;
  /** The faults, as sentences. */
  readonly problems: readonly string[];
  readonly schemaVersion: number;
  readonly bytes: number;
  /** The number of rows of each table. */
  readonly counts: Readonly<Record<string, number>>;
  /** The number of secrets that each key encrypts, by its id. */
  readonly keys: Readonly<Record<string, number>>;
}

/** Tables that hold no records. */
const INTERNAL: ReadonlySet<string> = new Set([
  ...["pause", "tally", "removal", "swept", "limit_episode", "reporter"],
  ...["endpoint_health", "endpoint_attempts", "delivery_body", "replay_part"],
]);

/**
 * Checks a store, a file or the address of a database: the pages and references of a file, which PostgreSQL checks
 * itself, and our own rules for the rows.
 */
export function checkStore(address: string): Promise<StoreCheck> {
  return withStoreToRead(address, async (connection) => {
    const schemaVersion = await connection.perform(knownVersion(connection));
    const bytes = await storeBytes(connection);
    const found = await transaction(
      connection,
      READING,
      () => connection.perform(check(connection, schemaVersion)),
    );
    return { shown: connection.shown, schemaVersion, bytes, ...found };
  });
}

function* check(
  { kind }: StoreConnection,
  schemaVersion: number,
): Work<Pick<StoreCheck, "problems" | "counts" | "keys">> {
  const pages = kind === "sqlite" ? yield* pageProblems() : [];
  const problems = [...pages, ...yield* ruleProblems(schemaVersion)];
  const counts: Record<string, number> = {};
  const isThere = (name: string) => !INTERNAL.has(name) && (TABLES[name]?.since ?? 1) <= schemaVersion;
  for (const name of TABLE_NAMES.filter(isThere).toSorted()) {
    counts[name] = yield* countOf({ from: `"${name}"` });
  }
  return { problems, counts, keys: yield* countSealed(sealedColumnsOf(schemaVersion)) };
}

function* pageProblems(): Work<readonly string[]> {
  const pages = (yield* all("PRAGMA integrity_check"))
    .map((row) => text(row, "integrity_check"))
    .filter((line) => line !== "ok");
  const references = (yield* all("PRAGMA foreign_key_check"))
    .map((row) => `a row of ${text(row, "table")} references a missing row of ${text(row, "parent")}`);
  return [...pages, ...references];
}

const POSTGRES_BYTES = `
  SELECT CAST(sum(pg_total_relation_size(CAST(name AS regclass))) AS BIGINT) AS bytes
  FROM unnest(CAST(? AS TEXT[])) AS name`;

/** The size of the store in bytes; 0 where a database compatible with PostgreSQL does not report it. */
async function storeBytes(connection: StoreConnection): Promise<number> {
  if (connection.kind === "sqlite") {
    const pages = integer(await connection.perform(get("PRAGMA page_count")), "page_count");
    const size = integer(await connection.perform(get("PRAGMA page_size")), "page_size");
    return pages * size + (fileAt(`${connection.shown}-wal`)?.size ?? 0);
  }
  try {
    return integer(await connection.perform(get(POSTGRES_BYTES, TABLE_NAMES)), "bytes");
  } catch {
    return 0;
  }
}

/** Rules for the rows, each with a query of the rows that break it. */
const RULES: Readonly<Record<string, string>> = {
  "an open delivery is due or claimed":
    "SELECT id FROM delivery WHERE state IN ('attempting', 'retrying') AND due_at IS NULL AND claim_id IS NULL",
  "an ended delivery is not due":
    "SELECT id FROM delivery WHERE state IN ('acknowledged', 'failed') AND (due_at IS NOT NULL OR finished_at IS NULL)",
  "a delivery has a reason if and only if it failed":
    "SELECT id FROM delivery WHERE (state = 'failed') <> (reason IS NOT NULL)",
  "a claim of a delivery has a lease":
    "SELECT id FROM delivery WHERE (claim_id IS NULL) <> (lease_until IS NULL)",
  "an open delivery has a payload": `
    SELECT delivery.id FROM delivery JOIN event ON event.id = event_id
    WHERE body IS NULL AND due_at IS NOT NULL AND event_id NOT IN (REMOVED)`,
  "an open delivery has an endpoint": `
    SELECT id FROM delivery
    WHERE due_at IS NOT NULL AND endpoint_id NOT IN (SELECT id FROM endpoint) AND endpoint_id NOT IN (REMOVED)`,
  "a running attempt has a claim":
    "SELECT id FROM delivery JOIN attempt ON delivery_seq = seq WHERE result IS NULL AND claim_id IS NULL",
  "an open execution is due or claimed":
    "SELECT id FROM execution WHERE status IN ('queued', 'running') AND due_at IS NULL AND claim_id IS NULL",
  "an ended execution is neither due nor claimed":
    "SELECT id FROM execution WHERE status NOT IN ('queued', 'running') AND (due_at IS NOT NULL OR claim_id IS NOT NULL OR finished_at IS NULL)",
  "a claim of an execution has a lease":
    "SELECT id FROM execution WHERE (claim_id IS NULL) <> (lease_until IS NULL)",
  "an endpoint has a secret":
    "SELECT id FROM endpoint WHERE id NOT IN (SELECT endpoint_id FROM endpoint_secret)",
  "the tallies match the number of rows": `
    SELECT coalesce(tallied.name, counted.name) AS id
    FROM (SELECT name, sum(count) AS count FROM tally GROUP BY name) AS tallied FULL JOIN (
      SELECT 'delivery.' || state AS name, count(*) AS count FROM delivery GROUP BY state
      UNION ALL SELECT 'execution.' || status, count(*) FROM execution GROUP BY status
    ) AS counted ON counted.name = tallied.name
    WHERE coalesce(tallied.count, 0) <> coalesce(counted.count, 0)`,
};

/** Most rows that are named per rule. */
const NAMED = 5;

// What belongs to a removed record ends in portions, since version 2.
const NOTHING_REMOVED = "SELECT id FROM event WHERE id IS NULL";
const REMOVED = "SELECT id FROM removal";

function* ruleProblems(version: number): Work<readonly string[]> {
  const removed = version === 1 ? NOTHING_REMOVED : REMOVED;
  const problems: string[] = [];
  for (const [rule, sql] of Object.entries(RULES)) {
    const broken = yield* all(
      `SELECT id, count(*) OVER () AS count FROM (${
        sql.replace("REMOVED", removed)
      }) AS broken ORDER BY id LIMIT ?`,
      NAMED,
    );
    const [first] = broken;
    if (first === undefined) continue;
    const count = integer(first, "count");
    const named = broken.map((row) => text(row, "id")).join(", ");
    problems.push(`rule violated: ${rule} (${count}: ${named}${count > NAMED ? ", …" : ""})`);
  }
  return problems;
}
