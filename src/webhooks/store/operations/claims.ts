import { releaseDeliveryClaims, voidDeliveryClaims, type VoidOptions } from "./delivery_claims.ts";
import { releaseExecutionClaims, voidExecutionClaims } from "./executions.ts";
import { PORTION } from "./removals.ts";
import { run, type Sql, sql, type Work } from "../work.ts";

/**
 * Releases claims of deliveries and executions, closes their open attempts as `interrupted`, and makes them due
 * immediately, with no slot used; returns how many.
 */
export function* voidClaims(options: VoidOptions): Work<number> {
  return (yield* voidDeliveryClaims(options)) + (yield* voidExecutionClaims(options));
}

/** Releases claims of deliveries and executions by their ids, as `voidClaims` does. */
export function* releaseClaims(claimIds: readonly string[], now: number): Work<void> {
  yield* releaseDeliveryClaims(claimIds, now);
  yield* releaseExecutionClaims(claimIds, now);
}

/**
 * Each selects rows by a time in the future and changes it. A schedule that began then begins now, with its pauses.
 * `times` is how often the statement has the time as a parameter before and after the number of rows.
 */
const CHANGES: readonly { readonly sql: Sql; readonly times: readonly [before: number, after: number] }[] = [
  {
    sql: sql((d) =>
      `WITH portion AS MATERIALIZED (
         SELECT seq FROM delivery ${d.by("delivery_created")}
         WHERE created_at > ? AND state = 'attempting' AND claim_id IS NULL AND due_at > ? LIMIT ?
         ${d.lockFree()})
       UPDATE delivery SET due_at = ? WHERE seq IN (SELECT seq FROM portion)`
    ),
    times: [2, 1],
  },
  {
    sql: sql((d) =>
      `WITH portion AS MATERIALIZED (
         SELECT delivery.seq FROM endpoint ${d.crossJoin} delivery ${d.by("delivery_failing")}
           ON delivery.endpoint_id = endpoint.id AND delivery.state = 'retrying'
         WHERE delivery.first_failure_at > ? AND delivery.claim_id IS NULL LIMIT ?
         ${d.lockFree("delivery")})
       UPDATE delivery SET due_at = due_at - (first_failure_at - ?), first_failure_at = ?
       WHERE seq IN (SELECT seq FROM portion)`
    ),
    times: [1, 2],
  },
  {
    sql: sql((d) =>
      `WITH portion AS MATERIALIZED (
         SELECT seq FROM endpoint WHERE rate_next_at > ? ORDER BY id LIMIT ? ${d.lock()})
       UPDATE endpoint SET rate_next_at = NULL WHERE seq IN (SELECT seq FROM portion)`
    ),
    times: [1, 0],
  },
  {
    sql: sql((d) =>
      `WITH portion AS MATERIALIZED (
         SELECT seq FROM execution ${d.by("execution_created")}
         WHERE created_at > ? AND status = 'queued' AND claim_id IS NULL AND due_at > ? LIMIT ?
         ${d.lockFree()})
       UPDATE execution SET due_at = ? WHERE seq IN (SELECT seq FROM portion)`
    ),
    times: [2, 1],
  },
];

/**
 * After the clock was set back, makes what was due by then due now, and restarts the schedules of retrying deliveries.
 * Returns how many rows were changed, at most 500: call it until there are none.
 */
export function* clockSetBack(now: number): Work<number> {
  let changed = 0;
  for (const { sql, times: [before, after] } of CHANGES) {
    if (changed >= PORTION) break;
    const parameters = [...Array(before).fill(now), PORTION - changed, ...Array(after).fill(now)];
    changed += yield* run(sql, ...parameters);
  }
  return changed;
}
