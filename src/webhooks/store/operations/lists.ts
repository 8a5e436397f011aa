import { cursorOf, type ListName, seqOfCursor } from "../../model/cursor.ts";
import { MAX_LISTED_OUTPUT_BYTES } from "../../resources/execution.ts";
import { integer, integerOrNone } from "../rows.ts";
import type { ListOptions, Page } from "../store.ts";
import { all, type Dialect, get, type Parameter, type Row, type Sql, sql, type Work } from "../work.ts";

const FILTERS = ["endpointId", "eventId", "replayId", "state", "event"] as const;

interface List {
  readonly table: string;
  /** The column of `since` and `until`; `created_at` when absent. */
  readonly at?: string;
  /** All when absent. */
  readonly columns?: (dialect: Dialect) => string;
  /** The columns of the other filters. */
  readonly filters?: Readonly<Partial<Record<(typeof FILTERS)[number], string>>>;
}

const LISTS = {
  endpoints: { table: "endpoint" },
  triggers: { table: "workflow_trigger" },
  eventKeys: { table: "event_key" },
  events: {
    table: "event",
    filters: { event: "kind" },
    columns: (d) => `seq, id, kind, created_at, CASE WHEN body IS NOT NULL THEN ${d.noBytes} END AS body`,
  },
  deliveries: {
    table: "delivery",
    filters: {
      endpointId: "endpoint_id",
      eventId: "event_id",
      replayId: "replay_id",
      state: "state",
      event: "event",
    },
  },
  replays: { table: "replay", filters: { endpointId: "endpoint_id", state: "state" } },
  executions: {
    table: "execution",
    filters: { state: "status" },
    columns: () =>
      `seq, id, workflow, version_id, trigger_id, trigger_event, rerun_of, status, created_at, started_at, finished_at, deadline_at,
      due_at, step_attempts, cancel_requested, claim_id, lease_until, error, '{}' AS input, NULL AS headers,
      CASE WHEN octet_length(output) <= ${MAX_LISTED_OUTPUT_BYTES} THEN output END AS output`,
  },
  audit: { table: "audit", at: "at", filters: { event: "action" } },
} as const satisfies Readonly<Record<ListName, List>>;

/** Most rows that are searched for the begin of a time. */
const MAX_SEARCHED = 10_000;

/** The statements of lists by their filters; each list has few of them. */
const STATEMENTS = new Map<string, Sql>();

/** A page of a list of records, newest first. */
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
  const conditions = yield* conditionsOf(name, options);
  const where = ["TRUE", ...conditions.map(([condition]) => condition)].join(" AND ");
  const rows = yield* all(statementOf(name, where), ...conditions.map(([, value]) => value), limit + 1);
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return {
    items: yield* read(items),
    ...(rows.length > limit && last !== undefined
      ? { nextCursor: cursorOf(name, integer(last, "seq")) }
      : {}),
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

function* conditionsOf(
  name: ListName,
  options: ListOptions,
): Work<readonly (readonly [condition: string, value: Parameter])[]> {
  const { at = "created_at", filters = {}, table }: List = LISTS[name];
  const { cursor, since, until, eventId } = options;
  // The deliveries of an event are few: no other index is better, but SQLite would choose one.
  const isSearched = since !== undefined && eventId === undefined;
  const columnOf = (filter: keyof typeof filters) =>
    eventId === undefined || filter === "eventId" ? filters[filter] : `coalesce(${filters[filter]}, '')`;
  const conditions: readonly (readonly [string, Parameter])[] = [
    ["seq < ?", cursor === undefined ? undefined : seqOf(name, cursor)],
    ["seq >= ?", isSearched ? yield* firstSince(table, at, since) : undefined],
    // With the signs SQLite does not use the index of the time, which would require a sort.
    [`+${at} >= ?`, since],
    [`+${at} < ?`, until],
    ...FILTERS.map((filter) => [`${columnOf(filter)} = ?`, filters[filter] && options[filter]] as const),
  ];
  return conditions.filter(([, value]) => value !== undefined);
}

/**
 * The lowest number of a row since then, so that a list with few hits is not searched to its end; absent where there
 * are so many rows that a page is soon full. It is not that of the oldest row, as a clock may be set back.
 */
function* firstSince(table: string, at: string, since: number): Work<number | undefined> {
  const row = yield* get(
    `SELECT min(seq) AS first, count(*) AS count FROM (
       SELECT seq FROM ${table} WHERE ${at} >= ? ORDER BY ${at} DESC LIMIT ?) AS newest`,
    since,
    MAX_SEARCHED,
  );
  if (row === undefined || integer(row, "count") === MAX_SEARCHED) return undefined;
  return integerOrNone(row, "first") ?? Number.MAX_SAFE_INTEGER;
}

function seqOf(name: ListName, cursor: string): number {
  const seq = seqOfCursor(name, cursor);
  if (seq !== undefined) return seq;
  throw new RangeError(`Cannot continue the list "${name}": the cursor is not one of its pages`);
}
