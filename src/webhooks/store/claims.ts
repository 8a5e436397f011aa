import { releaseDeliveryClaims, voidDeliveryClaims, type VoidOptions } from "./delivery_claims.ts";
import { releaseExecutionClaims, voidExecutionClaims } from "./executions.ts";
import { PORTION } from "./removals.ts";
import { run, type Sql, sql, type Work } from "./work.ts";

/** Takes back claims of deliveries and executions; answers how many. */
export function* voidClaims(options: VoidOptions): Work<number> {
  return (yield* voidDeliveryClaims(options)) + (yield* voidExecutionClaims(options));
}

/** Takes back claims of one's own, of deliveries and executions. */
export function* releaseClaims(claimIds: readonly string[], now: number): Work<void> {
  yield* releaseDeliveryClaims(claimIds, now);
  yield* releaseExecutionClaims(claimIds, now);
}

interface SetBack {
  readonly sql: Sql;
  /** How often the statement names the time before it names how many rows, and after. */
  readonly times: readonly [before: number, after: number];
}

/**
 * Each finds its rows by a time that had not come yet, and leaves none of them to be found again. A schedule that began
 * then keeps its pauses: it begins now.
 */
const CHANGES: readonly SetBack[] = [
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
         SELECT seq FROM execution ${d.by("execution_created")}
         WHERE created_at > ? AND status = 'queued' AND claim_id IS NULL AND due_at > ? LIMIT ?
         ${d.lockFree()})
       UPDATE execution SET due_at = ? WHERE seq IN (SELECT seq FROM portion)`
    ),
    times: [2, 1],
  },
];

/** Brings what the clock had put off by its step back to where it belongs; answers how many rows. */
export function* clockSetBack(now: number): Work<number> {
  let changed = 0;
  for (const { sql, times: [before, after] } of CHANGES) {
    if (changed >= PORTION) break;
    const parameters = [...Array(before).fill(now), PORTION - changed, ...Array(after).fill(now)];
    changed += yield* run(sql, ...parameters);
  }
  return changed;
}
