import type { Attempt, AuditEntry, Delivery, WebhookEvent } from "../model/records.ts";
import { beginRemoval, type RemovalOptions } from "./removals.ts";
import { attemptOf, deliveryOf, eventOf, text, whole, wholeOrNone } from "./rows.ts";
import { tallies, tallyMove } from "./tally.ts";
import { addAudit } from "./audit_log.ts";
import { all, get, postgresOnly, run, sql, type Work } from "./work.ts";
import type { AdministrationStore, StoreFigures } from "./store.ts";

/** An event by its id. */
export function* findEvent(id: string): Work<WebhookEvent | undefined> {
  return (yield* all("SELECT * FROM event WHERE id = ?", id)).map(eventOf)[0];
}

const IS_ERASED = "SELECT CASE WHEN body IS NULL THEN 1 ELSE 0 END AS erased FROM event WHERE id = ?";
const FIND_TO_ERASE = sql((d) => `${IS_ERASED} ${d.lock()}`);
// Attempts whose ends are being written keep their deliveries: what was answered to them is erased as well.
const WAIT_FOR_ATTEMPTS = postgresOnly("SELECT seq FROM delivery WHERE event_id = ? ORDER BY seq FOR UPDATE");

/** Erases the payload of an event; its open deliveries fail from now on, in portions. */
export function* erasePayload(
  id: string,
  { audit, ...options }: RemovalOptions & { readonly audit: AuditEntry },
): Work<boolean> {
  const event = yield* get(FIND_TO_ERASE, id);
  if (event === undefined) return false;
  if (whole(event, "erased") !== 0) return true;
  yield* all(WAIT_FOR_ATTEMPTS, id);
  yield* run("UPDATE event SET body = NULL WHERE id = ?", id);
  // A receiver may have sent the payload back.
  yield* run(
    "UPDATE attempt SET response = NULL WHERE delivery_seq IN (SELECT seq FROM delivery WHERE event_id = ?)",
    id,
  );
  yield* addAudit(audit);
  yield* beginRemoval("payload", id, options);
  return true;
}

const ATTEMPT_COLUMNS = "number, started_at, finished_at, url, manual, result, status, error_kind, error";
const ATTEMPTS = `SELECT ${ATTEMPT_COLUMNS}, response FROM attempt WHERE delivery_seq = ? ORDER BY number`;
const ATTEMPTS_ALONE =
  `SELECT ${ATTEMPT_COLUMNS}, NULL AS response FROM attempt WHERE delivery_seq = ? ORDER BY number`;

/** A delivery with its attempts, without what was answered to them where that is not wanted. */
export function* findDelivery(
  id: string,
  { responses = true }: { readonly responses?: boolean | undefined } = {},
): Work<{ readonly delivery: Delivery; readonly attempts: readonly Attempt[] } | undefined> {
  const row = yield* get("SELECT * FROM delivery WHERE id = ?", id);
  if (row === undefined) return undefined;
  const attempts = yield* all(responses ? ATTEMPTS : ATTEMPTS_ALONE, whole(row, "seq"));
  return { delivery: deliveryOf(row), attempts: attempts.map(attemptOf) };
}

// Whoever removes the endpoint or the payload has locked these before the deliveries.
const IS_ENDPOINT = "SELECT 1 AS one FROM endpoint WHERE id = ?";
// Nobody who claims for the endpoint waits for these.
const KEEP_ENDPOINT = { sqlite: IS_ENDPOINT, postgres: `${IS_ENDPOINT} FOR KEY SHARE` };
const KEEP_PAYLOAD = sql((d) => `${IS_ERASED} ${d.share()}`);
// A wish that comes while an attempt is under way is another one, even within one millisecond.
const RESEND = `UPDATE delivery
  SET resend_at = CASE WHEN claim_resend_at >= ? THEN claim_resend_at + 1 ELSE ? END WHERE seq = ?`;

/** Asks for an attempt by hand. */
export function* resendDelivery(
  id: string,
  { now, audit }: { readonly now: number; readonly audit: AuditEntry },
): Work<"asked" | "erased" | undefined> {
  const row = yield* get("SELECT seq, endpoint_id, event_id FROM delivery WHERE id = ?", id);
  if (row === undefined || (yield* get(KEEP_ENDPOINT, text(row, "endpoint_id"))) === undefined) {
    return undefined;
  }
  const event = yield* get(KEEP_PAYLOAD, text(row, "event_id"));
  if (event === undefined || whole(event, "erased") !== 0) return "erased";
  // Nothing when it was removed meanwhile, as old ones are.
  if ((yield* run(RESEND, now, now, whole(row, "seq"))) === 0) return undefined;
  yield* addAudit(audit);
  return "asked";
}

const FAILED = `FROM delivery JOIN event ON event.id = delivery.event_id AND event.body IS NOT NULL
  WHERE delivery.endpoint_id = ? AND delivery.state = 'failed'
    AND delivery.created_at >= ? AND delivery.created_at < ?`;
const COUNT_FAILED = `SELECT count(*) AS count ${FAILED}`;
const FIND_FAILED = sql((d) =>
  `SELECT delivery.seq ${FAILED} ORDER BY delivery.seq LIMIT ? ${d.share("event")} ${d.lock("delivery")}`
);
const OPEN_AGAIN = sql((d) =>
  `UPDATE delivery SET state = 'attempting', slot = 0, first_failure_at = NULL, due_at = ?, finished_at = NULL,
     reason = NULL
   WHERE ${d.among("seq")}`
);

/** Opens failed deliveries of an endpoint again, or counts them. */
export function* recoverDeliveries(
  options: Parameters<AdministrationStore["recoverDeliveries"]>[0],
): Work<number | undefined> {
  const { endpointId, since, until } = options;
  if ((yield* get(KEEP_ENDPOINT, endpointId)) === undefined) return undefined;
  if (options.dryRun) return whole(yield* get(COUNT_FAILED, endpointId, since, until), "count");
  const rows = yield* all(FIND_FAILED, endpointId, since, until, options.max);
  if (rows.length > 0) yield* run(OPEN_AGAIN, options.now, rows.map((row) => whole(row, "seq")));
  yield* tallyMove("delivery.failed", "delivery.attempting", rows.length);
  yield* addAudit(options.audit);
  return rows.length;
}

const DUE = sql((d) =>
  `SELECT count(*) AS count, min(delivery.next_at) AS oldest
   FROM endpoint ${d.crossJoin} delivery ${d.by("delivery_next")} ON delivery.endpoint_id = endpoint.id
   WHERE endpoint.enabled = 1 AND delivery.next_at <= ?`
);

/** What is asked of the store now and then, as far as its rows say it. */
export function* storeFigures(now: number): Work<Omit<StoreFigures, "bytes">> {
  const due = yield* get(DUE, now);
  const oldestDueAt = due && wholeOrNone(due, "oldest");
  return {
    dueNow: whole(due, "count"),
    ...(oldestDueAt === undefined ? {} : { oldestDueAt }),
    ...yield* tallies(),
  };
}
