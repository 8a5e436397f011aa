import { Buffer } from "node:buffer";
import { MAX_LISTED_OUTPUT_BYTES } from "../model/records.ts";
import { whole, wholeOrNone } from "./rows.ts";
import { all, type Dialect, get, type Parameter, type Row, type Sql, sql, type Work } from "./work.ts";
import type { ListOptions, Page } from "./store.ts";

/** What a list is made of: its table, and the columns that its filters stand for. */
interface List {
  readonly table: string;
  readonly createdAt: string;
  /** Everything when absent. Columns that may be large are not even read. */
  readonly columns?: (dialect: Dialect) => string;
  readonly endpointId?: string;
  readonly state?: string;
  readonly event?: string;
}

const LISTS = {
  endpoints: { table: "endpoint", createdAt: "created_at" },
  triggers: { table: "workflow_trigger", createdAt: "created_at" },
  eventKeys: { table: "event_key", createdAt: "created_at" },
  events: {
    table: "event",
    createdAt: "created_at",
    event: "kind",
    columns: (d) => `seq, id, kind, created_at, CASE WHEN body IS NOT NULL THEN ${d.noBytes} END AS body`,
  },
  deliveries: {
    table: "delivery",
    createdAt: "created_at",
    endpointId: "endpoint_id",
    state: "state",
    event: "event",
  },
  executions: {
    table: "execution",
    createdAt: "created_at",
    state: "status",
    columns: () =>
      `seq, id, workflow, version_id, trigger_id, status, created_at, started_at, finished_at, deadline_at,
      due_at, step_attempts, cancel_requested, claim_id, lease_until, error, '{}' AS input,
      CASE WHEN octet_length(output) <= ${MAX_LISTED_OUTPUT_BYTES} THEN output END AS output`,
  },
  audit: { table: "audit", createdAt: "at", event: "action" },
} as const satisfies Readonly<Record<string, List>>;

/** How many rows are looked at to find where a time begins. */
const MAX_LOOKED_AT = 10_000;

/** The statements of lists with the filters that were asked for; each list has few of them. */
const STATEMENTS = new Map<string, Sql>();

/** Which list; its name stands in its cursors. */
export type ListName = keyof typeof LISTS;

/** A page of a list whose rows are complete in themselves, newest first. */
export function listPage<T>(
  name: ListName,
  options: ListOptions,
  table: { read(row: Row): T },
): Work<Page<T>> {
  // deno-lint-ignore require-yield -- nothing more is read
  return listPageOf(name, options, function* (rows) {
    return rows.map((row) => table.read(row));
  });
}

/** A page of a list that reads more for its rows, newest first. */
export function* listPageOf<T>(
  name: ListName,
  options: ListOptions,
  read: (rows: readonly Row[]) => Work<readonly T[]>,
): Work<Page<T>> {
  const { limit } = options;
  const { where, parameters } = yield* conditions(name, options);
  const rows = yield* all(statementOf(name, where), ...parameters, limit + 1);
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return {
    items: yield* read(items),
    ...(rows.length > limit && last !== undefined ? { nextCursor: cursorOf(name, whole(last, "seq")) } : {}),
  };
}

function statementOf(name: ListName, where: string): Sql {
  const key = `${name} ${where}`;
  let statement = STATEMENTS.get(key);
  if (statement === undefined) {
    const { table, columns = () => "*" }: List = LISTS[name];
    statement = sql((d) => `SELECT ${columns(d)} FROM ${table} WHERE ${where} ORDER BY seq DESC LIMIT ?`);
    STATEMENTS.set(key, statement);
  }
  return statement;
}

function* conditions(
  name: ListName,
  options: ListOptions,
): Work<{ readonly where: string; readonly parameters: readonly Parameter[] }> {
  const list: List = LISTS[name];
  const filters: readonly (readonly [condition: string, value: Parameter])[] = [
    ["seq < ?", options.cursor === undefined ? undefined : seqOf(name, options.cursor)],
    ["seq >= ?", options.since === undefined ? undefined : yield* firstSince(list, options.since)],
    // The signs keep SQLite from going by time, which would have it sort all that it finds.
    [`+${list.createdAt} >= ?`, options.since],
    [`+${list.createdAt} < ?`, options.until],
    ...filter(list.endpointId, options.endpointId),
    ...filter(list.state, options.state),
    ...filter(list.event, options.event),
  ];
  const given = filters.filter(([, value]) => value !== undefined);
  return {
    where: ["TRUE", ...given.map(([condition]) => condition)].join(" AND "),
    parameters: given.map(([, value]) => value),
  };
}

function filter(column: string | undefined, value: string | undefined): readonly [string, string][] {
  return column === undefined || value === undefined ? [] : [[`${column} = ?`, value]];
}

/**
 * The lowest number of a row since then, so that a list with few hits is not looked for to its very end; nothing where
 * there are so many rows that a page is soon full. It is not that of the oldest one, because a clock may be set back.
 */
function* firstSince(list: List, since: number): Work<number | undefined> {
  const row = yield* get(
    `SELECT min(seq) AS first, count(*) AS count FROM (
       SELECT seq FROM ${list.table} WHERE ${list.createdAt} >= ? ORDER BY ${list.createdAt} DESC LIMIT ?) AS newest`,
    since,
    MAX_LOOKED_AT,
  );
  if (row === undefined || whole(row, "count") === MAX_LOOKED_AT) return undefined;
  return wholeOrNone(row, "first") ?? Number.MAX_SAFE_INTEGER;
}

function cursorOf(name: ListName, seq: number): string {
  return Buffer.from(`${name}:${seq}`).toString("base64url");
}

function seqOf(name: ListName, cursor: string): number {
  const content = Buffer.from(cursor, "base64url").toString();
  const seq = Number(new RegExp(`^${name}:([1-9][0-9]{0,15})$`).exec(content)?.[1]);
  if (!Number.isSafeInteger(seq) || cursorOf(name, seq) !== cursor) {
    throw new RangeError(`Cannot continue the list "${name}": the cursor is not one of its pages`);
  }
  return seq;
}
