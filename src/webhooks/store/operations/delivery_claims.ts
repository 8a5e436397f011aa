import type { Logger } from "../../../base/log.ts";
import type { AttemptOutcome, DeliveryChange } from "../../model/delivery.ts";
import type { AuditEntry, DeliveryState } from "../../model/records.ts";
import { deliveryFailedEvent, type ReportedEvent } from "../../model/endpoint_events.ts";
import { LAST_SLOT_MS } from "../../model/schedule.ts";
import { addOperationalEvents } from "./add_events.ts";
import { addAudit, failDeliveries, interruptAttempts } from "./audit_log.ts";
import { CompoundStatement, type Part } from "../compound_statement.ts";
import { APART, listed } from "../list_operation.ts";
import { NOT_PAUSED } from "../pause.ts";
import { PORTION } from "./removals.ts";
import { integer, integerOrNone, RECORDS, text } from "../rows.ts";
import type { ClaimedDelivery, ClaimOptions } from "../store.ts";
import { tallyMoveInSqlite } from "./tally.ts";
import { all, type Dialect, type Row, run, sql, type Work } from "../work.ts";

const FINAL: ReadonlySet<DeliveryState> = new Set(["acknowledged", "failed"]);

/** For the claims of an adapter. */
export interface LoggedClaimOptions extends ClaimOptions {
  readonly logger: Logger;
}

/** The claimed delivery of a row. */
export function claimedDeliveryOf(
  row: Row,
  { now, ...parts }:
    & { readonly now: number }
    & Pick<ClaimedDelivery, "endpoint" | "body" | "form" | "problem">,
): ClaimedDelivery {
  const delivery = RECORDS.deliveries.read(row);
  const manual = delivery.dueAt === undefined || delivery.dueAt > now;
  const claimId = text(row, "claim_id");
  return { delivery, claimId, attempt: integer(row, "attempts"), startedAt: now, manual, ...parts };
}

/** Fails a delivery that cannot be sent, so that it does not block others. */
export function* failWithoutPayload(
  row: Row,
  { now, logger }: Pick<LoggedClaimOptions, "now" | "logger">,
): Work<void> {
  yield* failDeliveries([row], "payload_erased", { now, newId: () => crypto.randomUUID() });
  logger.error("Cannot send a delivery: its event has no payload", { delivery: text(row, "id") });
}

const DUE_ENDPOINTS = sql((d) =>
  `WITH RECURSIVE one (id) AS (
     SELECT min(endpoint_id) FROM delivery ${d.by("delivery_next")} WHERE next_at IS NOT NULL
     UNION ALL
     SELECT (
       SELECT min(endpoint_id) FROM delivery ${d.by("delivery_next")}
       WHERE next_at IS NOT NULL AND endpoint_id > one.id
     ) FROM one WHERE one.id IS NOT NULL
   )
   SELECT endpoint.id, endpoint.concurrency, endpoint.timeout_ms,
     CASE WHEN EXISTS (
       SELECT 1 FROM delivery ${d.by("delivery_failing")}
       WHERE endpoint_id = one.id AND state = 'retrying' AND first_failure_at <= ? AND next_at <= ?
     ) THEN 1 ELSE 0 END AS ending
   FROM one JOIN endpoint ON endpoint.id = one.id
   WHERE endpoint.enabled = 1 AND ${NOT_PAUSED}
     AND EXISTS (SELECT 1 FROM delivery ${d.by("delivery_next")} WHERE endpoint_id = one.id AND next_at <= ?)
     AND (endpoint.rate_next_at IS NULL OR endpoint.rate_next_at <= ?)
   ORDER BY endpoint.seq`
);

/** An endpoint with due deliveries. */
export interface DueEndpoint {
  readonly id: string;
  readonly concurrency: number;
  readonly timeoutMs?: number | undefined;
  /** True if a last attempt is due: 24 hours after the first failure. */
  readonly isEnding?: boolean | undefined;
}

/**
 * Enabled endpoints with unclaimed deliveries that are due, in a stable order. Goes from one to the next by the index,
 * so that idle endpoints and the number of deliveries cost nothing. None that waits for its rate, and none while
 * deliveries are paused.
 */
export function* dueEndpoints(now: number): Work<readonly DueEndpoint[]> {
  const rows = yield* all(DUE_ENDPOINTS, now - LAST_SLOT_MS, now, now, now);
  return rows.map((row) => ({
    id: text(row, "id"),
    concurrency: integer(row, "concurrency"),
    timeoutMs: integerOrNone(row, "timeout_ms"),
    ...(integer(row, "ending") === 0 ? {} : { isEnding: true }),
  }));
}

/** Extends claims; returns those that are still held. */
export const renewClaims = renewing("delivery");

/** Selects the rows of claims, locked in the order in which groups of calls lock them. */
export function heldClaims(table: "delivery" | "execution", d: Dialect): string {
  return `SELECT seq FROM ${table} WHERE ${d.among("claim_id")} ORDER BY seq ${d.lock()}`;
}

/** An operation that extends the claims of a table. */
export function renewing(table: "delivery" | "execution") {
  const renew = sql((d) =>
    `WITH held AS MATERIALIZED (${heldClaims(table, d)})
     UPDATE ${table} SET lease_until = ? WHERE seq IN (SELECT seq FROM held) RETURNING claim_id`
  );
  return function* (claimIds: readonly string[], leaseUntil: number): Work<readonly string[]> {
    const held = new Set((yield* all(renew, claimIds, leaseUntil)).map((row) => text(row, "claim_id")));
    return claimIds.filter((claimId) => held.has(claimId));
  };
}

/** The end of a claim; a resend after the claim stays. */
const RELEASED = `claim_id = NULL, lease_until = NULL, claim_resend_at = NULL,
  resend_at = CASE WHEN resend_at IS NOT DISTINCT FROM claim_resend_at THEN NULL ELSE resend_at END`;

/** The end of an attempt. */
export interface FinishedAttempt {
  readonly deliveryId: string;
  readonly claimId: string;
  readonly number: number;
  readonly outcome: AttemptOutcome;
  /** Absent where the schedule stays as it is; `resendAt` is cleared in either case. */
  readonly change?: DeliveryChange | undefined;
  readonly audit?: readonly AuditEntry[] | undefined;
  /** Reports that the delivery failed permanently. */
  readonly event?: ReportedEvent | undefined;
}

/** The calls whose claims are held. */
export const HELD_CALLS = "held JOIN asked ON asked.place = held.place";

const FINISH = new CompoundStatement({
  given: {
    asked: {
      id: "TEXT",
      claim: "TEXT",
      number: "BIGINT",
      ended_at: "BIGINT",
      result: "TEXT",
      status: "BIGINT",
      error_kind: "TEXT",
      error: "TEXT",
      response: "TEXT",
      headers: "TEXT",
      // Of the delivery; without a state it stays as it is.
      state: "TEXT",
      slot: "BIGINT",
      first_failure_at: "BIGINT",
      due_at: "BIGINT",
      finished_at: "BIGINT",
      reason: "TEXT",
    },
  },
  parts: {
    held: {
      text: `SELECT asked.place, asked.state, asked.number, delivery.seq, delivery.state AS before
        FROM asked, delivery WHERE delivery.id = asked.id AND delivery.claim_id = asked.claim {}`,
      from: "asked",
      order: "ORDER BY delivery.seq FOR UPDATE OF delivery",
    },
    closed: {
      // Both columns of the index from one part: PostgreSQL may otherwise use it for the number alone, which most have.
      text: `UPDATE attempt SET finished_at = asked.ended_at, result = asked.result, status = asked.status,
          error_kind = asked.error_kind, error = asked.error, response = asked.response,
          headers = asked.headers
        FROM ${HELD_CALLS} WHERE attempt.delivery_seq = held.seq AND attempt.number = held.number`,
      from: HELD_CALLS,
    },
    tallied: tallyingMoves("delivery"),
    changed: {
      text: `UPDATE delivery SET ${RELEASED},
          state = coalesce(asked.state, delivery.state), slot = coalesce(asked.slot, delivery.slot),
          first_failure_at = coalesce(asked.first_failure_at, delivery.first_failure_at),
          due_at = CASE WHEN asked.state IS NULL THEN delivery.due_at ELSE asked.due_at END,
          finished_at = CASE WHEN asked.state IS NULL THEN delivery.finished_at ELSE asked.finished_at END,
          reason = CASE WHEN asked.state IS NULL THEN delivery.reason ELSE asked.reason END
        FROM ${HELD_CALLS} WHERE delivery.seq = held.seq`,
      from: HELD_CALLS,
    },
  },
  answers: ["held"],
  columns: "place, before",
});

/** Writes the end of an attempt with its audit entries and its event, and releases the claim; false when the claim was lost. */
export const finishAttempt = listed<readonly [FinishedAttempt], boolean>({
  bytes: ({ outcome: { response = "" } }) => response.length,
  *work(calls) {
    const firsts = firstOfEach(calls, ([{ deliveryId }]) => deliveryId);
    const asked = [...firsts].map(([{ deliveryId, claimId, number, outcome, change }], place) => ({
      place,
      id: deliveryId,
      claim: claimId,
      number,
      ended_at: outcome.finishedAt,
      result: outcome.result,
      status: outcome.status,
      error_kind: outcome.errorKind,
      error: outcome.error,
      response: outcome.response,
      headers: outcome.headers && JSON.stringify(outcome.headers),
      state: change?.state,
      slot: change?.slot,
      first_failure_at: change?.firstFailureAt,
      due_at: change && dueAfter(change),
      finished_at: change?.finishedAt,
      reason: change?.reason,
    }));
    const isAlone = calls.every(([{ audit = [], event }]) => audit.length === 0 && event === undefined);
    const rows = yield* FINISH.run({ asked }, isAlone);
    const before = new Map(
      rows.map((row) => [asked[integer(row, "place")]?.id, text(row, "before") as DeliveryState]),
    );
    const results: (boolean | typeof APART)[] = [];
    for (const call of calls) {
      const [{ deliveryId, change, outcome, audit = [], event }] = call;
      const state = before.get(deliveryId);
      results.push(firsts.has(call) ? state !== undefined : APART);
      if (!firsts.has(call) || state === undefined) continue;
      if (change !== undefined) yield* tallyMoveInSqlite(`delivery.${state}`, `delivery.${change.state}`);
      for (const entry of audit) yield* addAudit(entry);
      if (event !== undefined) yield* addOperationalEvents([event], outcome.finishedAt);
    }
    return results;
  },
});

/** Adds to the tally what moves from one state to another, in PostgreSQL; in one row for each. */
export function tallyingMoves(kind: "delivery" | "execution"): Part {
  const text = `
    INSERT INTO tally (name, count)
    SELECT '${kind}.' || moved.state, sum(moved.count) FROM held
      CROSS JOIN LATERAL (VALUES (held.before, -1), (held.state, 1)) AS moved (state, count)
    WHERE held.before <> held.state GROUP BY moved.state HAVING sum(moved.count) <> 0 ORDER BY moved.state`;
  return { text, from: "held", inSqlite: { as: undefined } };
}

/** The first call for each row: a statement can change a row only once. */
export function firstOfEach<C>(calls: readonly C[], idOf: (call: C) => string): ReadonlySet<C> {
  const ids = new Set<string>();
  return new Set(calls.filter((call) => {
    const isFirst = !ids.has(idOf(call));
    ids.add(idOf(call));
    return isFirst;
  }));
}

/** When a changed delivery is due again; never in a final state. */
function dueAfter({ state, dueAt }: DeliveryChange): number | undefined {
  return FINAL.has(state) ? undefined : dueAt;
}

/** Which claims are taken back: all, or those whose lease ended before `now`. */
export interface VoidOptions {
  readonly now: number;
  readonly which: "all" | "expired";
}

const ENDED_LEASES = sql((d) =>
  `SELECT seq FROM delivery ${d.by("delivery_lease")} WHERE claim_id IS NOT NULL AND lease_until < ?
   ${d.lockFree()}`
);

/** Releases claims of deliveries; returns how many. */
export function* voidDeliveryClaims({ now, which }: VoidOptions): Work<number> {
  // A lease that ends at this moment is still valid.
  const rows = yield* all(ENDED_LEASES, which === "all" ? Number.MAX_SAFE_INTEGER : now);
  yield* freeDeliveries(rows, now);
  return rows.length;
}

const CLAIMED = sql((d) => heldClaims("delivery", d));

/** Releases claims of deliveries by their ids. */
export function* releaseDeliveryClaims(claimIds: readonly string[], now: number): Work<void> {
  yield* freeDeliveries(yield* all(CLAIMED, claimIds), now);
}

const FAILING_LONG = sql((d) =>
  `SELECT delivery.* FROM endpoint ${d.crossJoin} delivery ${d.by("delivery_failing")}
     ON delivery.endpoint_id = endpoint.id AND delivery.state = 'retrying'
   WHERE endpoint.enabled = 0 AND delivery.first_failure_at <= ? AND delivery.claim_id IS NULL LIMIT ?
   ${d.lockFree("delivery")}`
);

/**
 * Fails deliveries of disabled endpoints whose first failure is 24 hours ago, with audit entries and events; returns how
 * many. Call it until there are none.
 */
export function* failPaused(options: { readonly now: number; readonly newId: () => string }): Work<number> {
  const rows = yield* all(FAILING_LONG, options.now - LAST_SLOT_MS, PORTION);
  yield* failDeliveries(rows, "endpoint_disabled", options);
  const events = rows.map((row) => {
    const delivery = { ...RECORDS.deliveries.read(row), reason: "endpoint_disabled" } as const;
    return deliveryFailedEvent(delivery, { newEventId: options.newId(), now: options.now });
  });
  yield* addOperationalEvents(events.filter((event) => event !== undefined), options.now);
  return rows.length;
}

const FREE = sql((d) =>
  `UPDATE delivery SET claim_id = NULL, lease_until = NULL, claim_resend_at = NULL,
     due_at = CASE WHEN resend_at IS NULL AND due_at > ? THEN ? ELSE due_at END,
     resend_at = CASE WHEN resend_at > ? THEN ? ELSE resend_at END
   WHERE ${d.among("seq")}`
);

/** A resent delivery stays so, and a due one keeps its place among the others. */
function* freeDeliveries(rows: readonly Row[], now: number): Work<void> {
  if (rows.length === 0) return;
  const seqs = rows.map((row) => integer(row, "seq"));
  yield* interruptAttempts(seqs, now);
  yield* run(FREE, now, now, now, now, seqs);
}
