import type { DeliveryState, ExecutionStatus } from "../model/records.ts";
import { text, whole, wholeOrNone } from "./rows.ts";
import type { StoreMetrics } from "./store.ts";
import { all, get, run, type Sql, sql, type Work } from "./work.ts";

/** How many deliveries and executions there are of each state, and so how many came and went. */
export interface Tallies {
  readonly deliveries: Readonly<Record<DeliveryState, number>>;
  readonly executions: Readonly<Record<ExecutionStatus, number>>;
}

/** What is tallied. */
export type Tallied = `delivery.${DeliveryState}` | `execution.${ExecutionStatus}`;

const ONE = tallied("(?, ?)");
const TWO = tallied("(?, ?), (?, ?)");

/**
 * Writes that rows came, or went when `by` is below zero. Counting millions of finished rows when somebody asks would
 * hold up everything else, and a trigger of SQLite makes each statement twice as dear.
 */
export function* tally(name: Tallied, by: number): Work<void> {
  if (by !== 0) yield* run(ONE, name, by);
}

/** Writes that a row went from one state to another. */
export function* tallyMove(from: Tallied, to: Tallied, by = 1): Work<void> {
  if (from !== to && by !== 0) yield* run(TWO, from, -by, to, by);
}

/** What has been tallied. */
export function* tallies(): Work<Tallies> {
  const rows = yield* all("SELECT name, CAST(sum(count) AS BIGINT) AS count FROM tally GROUP BY name");
  const counts = new Map(rows.map((row) => [text(row, "name"), whole(row, "count")]));
  const deliveries = (state: DeliveryState) => counts.get(`delivery.${state}`) ?? 0;
  const executions = (status: ExecutionStatus) => counts.get(`execution.${status}`) ?? 0;
  return {
    deliveries: {
      attempting: deliveries("attempting"),
      retrying: deliveries("retrying"),
      acknowledged: deliveries("acknowledged"),
      failed: deliveries("failed"),
    },
    executions: {
      queued: executions("queued"),
      running: executions("running"),
      succeeded: executions("succeeded"),
      failed: executions("failed"),
      cancelled: executions("cancelled"),
    },
  };
}

/**
 * Where many write at the same time, all would wait for whoever has the row of a state: there each adds rows of its
 * own, which count together, and become one when somebody clears up.
 */
function tallied(values: string): Sql {
  const insert = `INSERT INTO tally (name, count) VALUES ${values}`;
  return {
    sqlite: `${insert} ON CONFLICT (name) DO UPDATE SET count = count + excluded.count`,
    postgres: insert,
  };
}

const DUE = sql((d) =>
  `SELECT count(*) AS count, min(delivery.next_at) AS oldest
   FROM endpoint ${d.crossJoin} delivery ${d.by("delivery_next")} ON delivery.endpoint_id = endpoint.id
   WHERE endpoint.enabled = 1 AND delivery.next_at <= ?`
);

/** The metrics of the store that come from its rows. */
export function* rowMetrics(now: number): Work<Omit<StoreMetrics, "bytes">> {
  const due = yield* get(DUE, now);
  const oldestDueAt = due && wholeOrNone(due, "oldest");
  return {
    dueNow: whole(due, "count"),
    ...(oldestDueAt === undefined ? {} : { oldestDueAt }),
    ...yield* tallies(),
  };
}
