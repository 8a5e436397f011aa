import type { DeliveryState, ExecutionStatus } from "./records.ts";
import type { SqliteConnection } from "./sqlite_store_connection.ts";
import { text, whole } from "./sqlite_store_rows.ts";

/** How many deliveries and executions there are of each state, and so how many came and went. */
export interface Tallies {
  readonly deliveries: Readonly<Record<DeliveryState, number>>;
  readonly executions: Readonly<Record<ExecutionStatus, number>>;
}

/** What is tallied. */
export type Tallied = `delivery.${DeliveryState}` | `execution.${ExecutionStatus}`;

/**
 * Writes that rows came, or went when `by` is below zero. Counting millions of finished rows when somebody asks would
 * hold up everything else, and a trigger of SQLite makes each statement twice as dear.
 */
export function tally(connection: SqliteConnection, name: Tallied, by: number): void {
  if (by === 0) return;
  connection.run(
    "INSERT INTO tally (name, count) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count",
    name,
    by,
  );
}

/** Writes that a row went from one state to another. */
export function tallyMove(connection: SqliteConnection, from: Tallied, to: Tallied, by = 1): void {
  if (from === to) return;
  tally(connection, from, -by);
  tally(connection, to, by);
}

/** What has been tallied. */
export function tallies(connection: SqliteConnection): Tallies {
  const counts = new Map(
    connection.all("SELECT name, count FROM tally").map((row) => [text(row, "name"), whole(row, "count")]),
  );
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
