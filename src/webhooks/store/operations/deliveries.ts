import type { Attempt, AuditEntry, Delivery } from "../../model/records.ts";
import { IS_ERASED } from "./events.ts";
import { listPage } from "./lists.ts";
import { type DeliveryPause, findPause } from "../pause.ts";
import { integer, integerOrNone, RECORDS, text } from "../rows.ts";
import { tallyMove } from "./tally.ts";
import { addAudit } from "./audit_log.ts";
import { all, get, run, sql, type Work } from "../work.ts";
import type { ChangeOptions, ListOptions, Page } from "../store.ts";

/** Deliveries, newest first. */
export function listDeliveries(options: ListOptions): Work<Page<Delivery>> {
  return listPage("deliveries", options, RECORDS.deliveries);
}

/** A delivery with its attempts, oldest first, without their headers and responses when `responses` is false. */
export function* findDelivery(
  id: string,
  { responses = true }: { readonly responses?: boolean | undefined } = {},
): Work<{ readonly delivery: Delivery; readonly attempts: readonly Attempt[] } | undefined> {
  const row = yield* get("SELECT * FROM delivery WHERE id = ?", id);
  if (row === undefined) return undefined;
  const attempts = yield* all(
    `SELECT number, started_at, finished_at, url, manual, result, status, error_kind, error,
       ${
      responses ? "headers, response" : "NULL AS headers, NULL AS response"
    } FROM attempt WHERE delivery_seq = ? ORDER BY number`,
    integer(row, "seq"),
  );
  return {
    delivery: RECORDS.deliveries.read(row),
    attempts: attempts.map((attempt) => RECORDS.attempts.read(attempt)),
  };
}

// The removal of an endpoint or a payload locks these before the deliveries as well.
const IS_ENDPOINT = "SELECT 1 AS one FROM endpoint WHERE id = ?";
// The weakest lock, so that claims do not wait for it.
const KEEP_ENDPOINT = { sqlite: IS_ENDPOINT, postgres: `${IS_ENDPOINT} FOR KEY SHARE` };
const KEEP_PAYLOAD = sql((d) => `${IS_ERASED} ${d.share()}`);
/** Of a replay, or of none. A resend during an attempt counts, even within one millisecond. */
export const RESEND = sql((d) =>
  `UPDATE delivery SET resend_at = CASE WHEN claim_resend_at >= ? THEN claim_resend_at + 1 ELSE ? END,
     replay_id = coalesce(?, replay_id)
   WHERE ${d.among("seq")}`
);

/** Makes a delivery due for one attempt now; `erased` without a payload, `undefined` without a delivery or endpoint. */
export function* resendDelivery(
  id: string,
  { now, audit }: ChangeOptions,
): Work<"asked" | "erased" | undefined> {
  const row = yield* get("SELECT seq, endpoint_id, event_id FROM delivery WHERE id = ?", id);
  if (row === undefined || (yield* get(KEEP_ENDPOINT, text(row, "endpoint_id"))) === undefined) {
    return undefined;
  }
  const event = yield* get(KEEP_PAYLOAD, text(row, "event_id"));
  if (event === undefined || integer(event, "erased") !== 0) return "erased";
  // It may have been removed meanwhile.
  if ((yield* run(RESEND, now, now, null, [integer(row, "seq")])) === 0) return undefined;
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
/** Of a replay, or of none. */
export const REOPEN = sql((d) =>
  `UPDATE delivery SET state = 'attempting', slot = 0, first_failure_at = NULL, due_at = ?, finished_at = NULL,
     reason = NULL, waited_ms = NULL, replay_id = coalesce(?, replay_id)
   WHERE ${d.among("seq")}`
);

const OLDEST_FAILED = `SELECT min(delivery.created_at) AS since
  FROM delivery JOIN event ON event.id = delivery.event_id AND event.body IS NOT NULL
  WHERE delivery.endpoint_id = ? AND delivery.state = 'failed' AND delivery.finished_at >= ?`;

/** The failed deliveries to recover, if some failed since then: their number, and when the oldest was created. */
export function* missedDeliveries(
  { endpointId, failedSince, until }: {
    readonly endpointId: string;
    readonly failedSince: number;
    readonly until: number;
  },
): Work<{ readonly count: number; readonly since?: number | undefined }> {
  const oldest = yield* get(OLDEST_FAILED, endpointId, failedSince);
  const since = oldest && integerOrNone(oldest, "since");
  if (since === undefined) return { count: 0 };
  return { count: integer(yield* get(COUNT_FAILED, endpointId, since, until), "count"), since };
}

/** Which failed deliveries are recovered: those created from `since` to before `until`. */
export interface RecoverOptions extends ChangeOptions {
  readonly endpointId: string;
  readonly since: number;
  readonly until: number;
  /** Only counts them. */
  readonly dryRun: boolean;
  /** Most deliveries, the oldest first. */
  readonly max: number;
}

/** Reopens failed deliveries with a new schedule; `undefined` for an unknown endpoint. */
export function* recoverDeliveries(options: RecoverOptions): Work<number | undefined> {
  const { endpointId, since, until } = options;
  if ((yield* get(KEEP_ENDPOINT, endpointId)) === undefined) return undefined;
  if (options.dryRun) return integer(yield* get(COUNT_FAILED, endpointId, since, until), "count");
  const rows = yield* all(FIND_FAILED, endpointId, since, until, options.max);
  if (rows.length > 0) yield* run(REOPEN, options.now, null, rows.map((row) => integer(row, "seq")));
  yield* tallyMove("delivery.failed", "delivery.attempting", rows.length);
  yield* addAudit(options.audit);
  return rows.length;
}

const BEGIN_PAUSE =
  "INSERT INTO pause (name, at, actor) VALUES ('deliveries', ?, ?) ON CONFLICT (name) DO NOTHING";
const END_PAUSE = "DELETE FROM pause WHERE name = 'deliveries'";

/** Pauses deliveries: no attempt begins from now on. A pause that exists stays as it is, without an audit entry. */
export function* pauseDeliveries(audit: AuditEntry): Work<DeliveryPause> {
  if ((yield* run(BEGIN_PAUSE, audit.at, audit.actor)) > 0) yield* addAudit(audit);
  return (yield* findPause()) ?? audit;
}

/** Ends the pause, if there is one. */
export function* resumeDeliveries(audit: AuditEntry): Work<void> {
  if ((yield* run(END_PAUSE)) > 0) yield* addAudit(audit);
}
