import type { DeliveryState, ExecutionStatus } from "../../model/records.ts";
import { FAILING_AFTER } from "../../model/endpoint_health.ts";
import { PAUSE_COLUMNS, pauseOf } from "../pause.ts";
import { integer, integerOrNone, text } from "../rows.ts";
import type { EndpointState, StoreMetrics } from "../store.ts";
import {
  all,
  get,
  type Parameter,
  type Row,
  run,
  type Sql,
  sql,
  type Statement,
  type Work,
} from "../work.ts";

/** A state whose rows are counted. */
export type Tallied = `delivery.${DeliveryState}` | `execution.${ExecutionStatus}`;

const ONE = tallied("(?, ?)");
const TWO = tallied("(?, ?), (?, ?)");

/** PostgreSQL only adds rows, which are folded later: writers would wait for each other at the row of a state. */
function tallied(values: string): Sql {
  const insert = `INSERT INTO tally (name, count) VALUES ${values}`;
  return {
    sqlite: `${insert} ON CONFLICT (name) DO UPDATE SET count = count + excluded.count`,
    postgres: insert,
  };
}

/**
 * Counts rows that were added, or removed where `by` is negative. To count millions of rows for each metric would block
 * the store, and a trigger would double the cost of a statement.
 */
export function* tally(name: Tallied, by: number): Work<void> {
  if (by !== 0) yield* run(ONE, name, by);
}

/** Counts rows that changed from one state to another. */
export function* tallyMove(from: Tallied, to: Tallied, by = 1): Work<void> {
  if (from !== to && by !== 0) yield* run(TWO, from, -by, to, by);
}

const ONE_IN_SQLITE: Sql = { ...ONE, postgres: "" };
const TWO_IN_SQLITE: Sql = { ...TWO, postgres: "" };

/** As `tally` after a statement that counts by itself in PostgreSQL. */
export function* tallyInSqlite(name: Tallied, by: number): Work<void> {
  if (by !== 0) yield* run(ONE_IN_SQLITE, name, by);
}

/** As `tallyMove` after a statement that counts by itself in PostgreSQL. */
export function* tallyMoveInSqlite(from: Tallied, to: Tallied): Work<void> {
  if (from !== to) yield* run(TWO_IN_SQLITE, from, -1, to, 1);
}

const TALLYING: ReadonlySet<unknown> = new Set([ONE, TWO, ONE_IN_SQLITE, TWO_IN_SQLITE]);

const TALLIES = "SELECT name, CAST(sum(count) AS BIGINT) AS count FROM tally GROUP BY name";
// Those of failing endpoints wait on purpose, and so do those whose rate was used up less than a minute ago.
const DUE = sql((d) =>
  `SELECT count(*) AS count, min(delivery.next_at) AS oldest,
     (SELECT count(*) FROM replay WHERE state = 'running') AS replays, ${PAUSE_COLUMNS}
   FROM endpoint LEFT JOIN endpoint_health ON endpoint_health.endpoint_id = endpoint.id
     ${d.crossJoin} delivery ${d.by("delivery_next")} ON delivery.endpoint_id = endpoint.id
   WHERE endpoint.enabled = 1 AND coalesce(failures, 0) < ${FAILING_AFTER} AND delivery.next_at <= ?
     AND (endpoint.rate_next_at IS NULL OR endpoint.rate_next_at < ?)`
);
const RATE_MS = 60_000;
const ENDPOINTS = `
  SELECT enabled, CASE WHEN disabled_reason IN ('failing', 'gone') THEN 1 ELSE 0 END AS by_weir,
    CASE WHEN failures >= ${FAILING_AFTER} THEN 1 ELSE 0 END AS failing, count(*) AS count,
    count(CASE WHEN enabled = 1 AND rate_next_at > ? THEN 1 END) AS rate_limited
  FROM endpoint LEFT JOIN endpoint_health ON endpoint_id = id GROUP BY enabled, by_weir, failing`;

/** The counts of a statement of `tally` or `tallyMove`; `undefined` for any other statement. */
export function talliedBy(statement: Statement): readonly Parameter[] | undefined {
  return TALLYING.has(statement.sql) ? statement.parameters : undefined;
}

/** Adds the counts of several tallies, one statement for each name. */
export function* addTallies(parameters: readonly Parameter[]): Work<void> {
  const sums = new Map<string, number>();
  for (let index = 0; index < parameters.length; index += 2) {
    const [name, count] = [String(parameters[index]), Number(parameters[index + 1])];
    sums.set(name, (sums.get(name) ?? 0) + count);
  }
  for (const [name, count] of sums) if (count !== 0) yield* run(ONE, name, count);
}

/** The metrics of the store that come from its rows. */
export function* rowMetrics(now: number): Work<Omit<StoreMetrics, "bytes">> {
  const due = yield* get(DUE, now, now - RATE_MS);
  const pause = pauseOf(due);
  const oldestDueAt = due && integerOrNone(due, "oldest");
  const deliveries = { attempting: 0, retrying: 0, acknowledged: 0, failed: 0 };
  const executions = { queued: 0, running: 0, succeeded: 0, failed: 0, cancelled: 0 };
  const states: Readonly<Record<string, Record<string, number>>> = {
    delivery: deliveries,
    execution: executions,
  };
  for (const row of yield* all(TALLIES)) {
    const [kind = "", state = ""] = text(row, "name").split(".");
    const counts = states[kind];
    if (counts !== undefined && state in counts) counts[state] = integer(row, "count");
  }
  const endpoints = { healthy: 0, failing: 0, disabled_by_admin: 0, disabled_by_weir: 0 };
  let rateLimited = 0;
  for (const row of yield* all(ENDPOINTS, now)) {
    endpoints[endpointState(row)] += integer(row, "count");
    rateLimited += integer(row, "rate_limited");
  }
  return {
    dueNow: integer(due, "count"),
    ...(oldestDueAt === undefined ? {} : { oldestDueAt }),
    deliveries,
    executions,
    endpoints,
    replays: integer(due, "replays"),
    rateLimited,
    ...(pause === undefined ? {} : { pause }),
  };
}

function endpointState(row: Row): EndpointState {
  if (integer(row, "enabled") !== 0) return integer(row, "failing") === 0 ? "healthy" : "failing";
  return integer(row, "by_weir") === 0 ? "disabled_by_admin" : "disabled_by_weir";
}
