import type { SqliteConnection } from "./sqlite_store_connection.ts";
import { PORTION } from "./sqlite_store_removals.ts";

/**
 * Each finds its rows by a time that had not come yet, and leaves none of them to be found again. A schedule that began
 * then keeps its pauses: it begins now.
 */
const CHANGES: readonly string[] = [
  `UPDATE delivery SET due_at = ?1 WHERE seq IN (
     SELECT seq FROM delivery INDEXED BY delivery_created
     WHERE created_at > ?1 AND state = 'attempting' AND claim_id IS NULL AND due_at > ?1 LIMIT ?2)`,
  `UPDATE delivery SET due_at = due_at - (first_failure_at - ?1), first_failure_at = ?1 WHERE seq IN (
     SELECT delivery.seq FROM endpoint CROSS JOIN delivery INDEXED BY delivery_failing
       ON delivery.endpoint_id = endpoint.id AND delivery.state = 'retrying'
     WHERE delivery.first_failure_at > ?1 AND delivery.claim_id IS NULL LIMIT ?2)`,
  `UPDATE execution SET due_at = ?1 WHERE seq IN (
     SELECT seq FROM execution INDEXED BY execution_created
     WHERE created_at > ?1 AND status = 'queued' AND claim_id IS NULL AND due_at > ?1 LIMIT ?2)`,
];

/** Brings what the clock had put off by its step back to where it belongs; answers how many rows. */
export function clockSetBack(connection: SqliteConnection, now: number): number {
  let changed = 0;
  for (const sql of CHANGES) {
    if (changed < PORTION) changed += connection.run(sql, now, PORTION - changed);
  }
  return changed;
}
