import type { Logger } from "../base/log.ts";
import type { DeliveryState, Endpoint } from "./records.ts";
import { LAST_SLOT_MS } from "./schedule.ts";
import type { Row, SqliteConnection } from "./sqlite_store_connection.ts";
import { findEndpoint } from "./sqlite_store_endpoints.ts";
import { PORTION } from "./sqlite_store_removals.ts";
import { deliveryOf, text, whole, wholeOrNone } from "./sqlite_store_rows.ts";
import { tallyMove } from "./sqlite_store_tally.ts";
import { addAudit, failDeliveries, interruptAttempt } from "./sqlite_store_trail.ts";
import type { ClaimedDelivery, DeliveryChange, DeliveryStore, DueEndpoint } from "./store.ts";

const FINAL: ReadonlySet<DeliveryState> = new Set(["acknowledged", "failed"]);

/** What is done about a row that cannot be worked on. */
export interface RowFaults {
  readonly newId: () => string;
  readonly logger: Logger;
}

/** Claims deliveries that are due. */
export function claimDeliveries(
  connection: SqliteConnection,
  { now, leaseUntil, newClaimId, wants, ...faults }:
    & Parameters<DeliveryStore["claimDeliveries"]>[0]
    & RowFaults,
): readonly ClaimedDelivery[] {
  const bodies = new Map<string, Uint8Array>();
  const claimed: { readonly nextAt: number; readonly seq: number; readonly claim: ClaimedDelivery }[] = [];
  for (const { endpointId, max } of wants) {
    const rows = connection.all(
      `SELECT * FROM delivery INDEXED BY delivery_next
       WHERE endpoint_id = ? AND next_at <= ? ORDER BY next_at, seq LIMIT ?`,
      endpointId,
      now,
      max,
    );
    const endpoint = rows.length === 0 ? undefined : findEndpoint(connection, endpointId);
    if (endpoint?.enabled !== true) continue;
    for (const row of rows) {
      const body = bodyOf(connection, text(row, "event_id"), bodies);
      if (body === undefined) {
        // One that cannot be sent must not hold up the others, and would be found again with each look.
        failDeliveries(connection, [row], "payload_erased", { ...faults, now });
        faults.logger.error("Cannot send a delivery: its event has no payload", {
          delivery: text(row, "id"),
        });
        continue;
      }
      const claim = claimOne(connection, row, { endpoint, now, leaseUntil, claimId: newClaimId(), body });
      claimed.push({ nextAt: whole(row, "next_at"), seq: whole(row, "seq"), claim });
    }
  }
  claimed.sort((a, b) => a.nextAt - b.nextAt || a.seq - b.seq);
  return claimed.map(({ claim }) => claim);
}

/**
 * Enabled endpoints for which something is due: from one to the next through the index, so that neither those without
 * open work nor the number of deliveries cost anything.
 */
export function dueEndpoints(connection: SqliteConnection, now: number): readonly DueEndpoint[] {
  const rows = connection.all(
    `WITH RECURSIVE one (id) AS (
       SELECT min(endpoint_id) FROM delivery INDEXED BY delivery_next WHERE next_at IS NOT NULL
       UNION ALL
       SELECT (
         SELECT min(endpoint_id) FROM delivery INDEXED BY delivery_next
         WHERE next_at IS NOT NULL AND endpoint_id > one.id
       ) FROM one WHERE one.id IS NOT NULL
     )
     SELECT endpoint.id, endpoint.concurrency, endpoint.timeout_ms FROM one JOIN endpoint ON endpoint.id = one.id
     WHERE endpoint.enabled = 1
       AND EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_next WHERE endpoint_id = one.id AND next_at <= ?)
     ORDER BY endpoint.seq`,
    now,
  );
  return rows.map((row) => ({
    id: text(row, "id"),
    concurrency: whole(row, "concurrency"),
    timeoutMs: wholeOrNone(row, "timeout_ms"),
  }));
}

/** Prolongs claims; answers those that are still held. */
export function renewClaims(
  connection: SqliteConnection,
  claimIds: readonly string[],
  leaseUntil: number,
): readonly string[] {
  return claimIds.filter((claimId) =>
    connection.run("UPDATE delivery SET lease_until = ? WHERE claim_id = ?", leaseUntil, claimId) > 0
  );
}

/** Writes the row of an attempt that is about to be made. */
export function beginAttempt(
  connection: SqliteConnection,
  { deliveryId, claimId, attempt }: Parameters<DeliveryStore["beginAttempt"]>[0],
): boolean {
  const [held] = connection.all(
    "UPDATE delivery SET attempts = ? WHERE id = ? AND claim_id = ? RETURNING seq",
    attempt.number,
    deliveryId,
    claimId,
  );
  if (held === undefined) return false;
  connection.run(
    "INSERT INTO attempt (delivery_seq, number, started_at, url, manual) VALUES (?, ?, ?, ?, ?)",
    whole(held, "seq"),
    attempt.number,
    attempt.startedAt,
    attempt.url,
    attempt.manual,
  );
  return true;
}

/** Writes how an attempt ended, and gives up the claim. */
export function finishAttempt(
  connection: SqliteConnection,
  options: Parameters<DeliveryStore["finishAttempt"]>[0],
): boolean {
  const { outcome } = options;
  const held = connection.get(
    "SELECT seq, state FROM delivery WHERE id = ? AND claim_id = ?",
    options.deliveryId,
    options.claimId,
  );
  if (held === undefined) return false;
  const seq = whole(held, "seq");
  connection.run(
    `UPDATE attempt SET finished_at = ?, result = ?, status = ?, error_kind = ?, error = ?, response = ?
     WHERE delivery_seq = ? AND number = ?`,
    outcome.finishedAt,
    outcome.result,
    outcome.status,
    outcome.errorKind,
    outcome.error,
    outcome.response,
    seq,
    options.number,
  );
  giveUpClaim(connection, seq, options.change);
  if (options.change !== undefined) {
    const before = text(held, "state") as DeliveryState;
    tallyMove(connection, `delivery.${before}`, `delivery.${options.change.state}`);
  }
  for (const entry of options.audit ?? []) addAudit(connection, entry);
  return true;
}

/** Takes back claims of deliveries; answers how many. */
export function voidDeliveryClaims(
  connection: SqliteConnection,
  { now, which }: Parameters<DeliveryStore["voidClaims"]>[0],
): number {
  // A lease that ends at this moment is still one.
  const rows = connection.all(
    `SELECT seq FROM delivery INDEXED BY delivery_lease WHERE claim_id IS NOT NULL AND lease_until < ?`,
    which === "all" ? Number.MAX_SAFE_INTEGER : now,
  );
  for (const row of rows) freeDelivery(connection, whole(row, "seq"), now);
  return rows.length;
}

/** Takes back claims of one's own. */
export function releaseDeliveryClaims(
  connection: SqliteConnection,
  claimIds: readonly string[],
  now: number,
): void {
  for (const claimId of claimIds) {
    const row = connection.get("SELECT seq FROM delivery WHERE claim_id = ?", claimId);
    if (row !== undefined) freeDelivery(connection, whole(row, "seq"), now);
  }
}

/** Fails deliveries of disabled endpoints whose 24 hours are over. */
export function failPaused(
  connection: SqliteConnection,
  options: { readonly now: number; readonly newId: () => string },
): number {
  const rows = connection.all(
    `SELECT delivery.* FROM endpoint CROSS JOIN delivery INDEXED BY delivery_failing
       ON delivery.endpoint_id = endpoint.id AND delivery.state = 'retrying'
     WHERE endpoint.enabled = 0 AND delivery.first_failure_at <= ? AND delivery.claim_id IS NULL LIMIT ?`,
    options.now - LAST_SLOT_MS,
    PORTION,
  );
  failDeliveries(connection, rows, "endpoint_disabled", options);
  return rows.length;
}

function claimOne(
  connection: SqliteConnection,
  row: Row,
  { endpoint, now, leaseUntil, claimId, body }: {
    readonly endpoint: Endpoint;
    readonly now: number;
    readonly leaseUntil: number;
    readonly claimId: string;
    readonly body: Uint8Array;
  },
): ClaimedDelivery {
  connection.run(
    "UPDATE delivery SET claim_id = ?, lease_until = ?, claim_resend_at = resend_at WHERE seq = ?",
    claimId,
    leaseUntil,
    whole(row, "seq"),
  );
  const delivery = { ...deliveryOf(row), claimId, leaseUntil };
  return {
    delivery,
    claimId,
    attempt: whole(row, "attempts") + 1,
    manual: delivery.dueAt === undefined || delivery.dueAt > now,
    body,
    endpoint,
  };
}

/** The body of an event; many deliveries of one claim have the same. */
function bodyOf(
  connection: SqliteConnection,
  eventId: string,
  bodies: Map<string, Uint8Array>,
): Uint8Array | undefined {
  const known = bodies.get(eventId);
  if (known !== undefined) return known;
  const body = connection.get("SELECT body FROM event WHERE id = ?", eventId)?.["body"];
  if (!(body instanceof Uint8Array)) return undefined;
  bodies.set(eventId, body);
  return body;
}

/** Ends a claim, and changes the delivery; a wish for an attempt by hand that came after the claim stays. */
function giveUpClaim(connection: SqliteConnection, seq: number, change: DeliveryChange | undefined): void {
  const released = `claim_id = NULL, lease_until = NULL, claim_resend_at = NULL,
    resend_at = CASE WHEN resend_at IS claim_resend_at THEN NULL ELSE resend_at END`;
  if (change === undefined) {
    connection.run(`UPDATE delivery SET ${released} WHERE seq = ?`, seq);
    return;
  }
  connection.run(
    `UPDATE delivery SET ${released}, state = ?, slot = ?, first_failure_at = coalesce(?, first_failure_at),
       due_at = ?, finished_at = ?, reason = ?
     WHERE seq = ?`,
    change.state,
    change.slot,
    change.firstFailureAt,
    FINAL.has(change.state) ? undefined : change.dueAt,
    change.finishedAt,
    change.reason,
    seq,
  );
}

/** What an attempt by hand was asked for stays asked for; what was due stays due, in its place among the others. */
function freeDelivery(connection: SqliteConnection, seq: number, now: number): void {
  interruptAttempt(connection, seq, now);
  connection.run(
    `UPDATE delivery SET claim_id = NULL, lease_until = NULL, claim_resend_at = NULL,
       due_at = CASE WHEN resend_at IS NULL THEN min(due_at, ?) ELSE due_at END,
       resend_at = min(resend_at, ?)
     WHERE seq = ?`,
    now,
    now,
    seq,
  );
}
