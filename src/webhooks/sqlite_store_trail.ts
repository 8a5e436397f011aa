import type { AuditEntry, DeliveryState, FailureReason } from "./records.ts";
import type { Row, SqliteConnection } from "./sqlite_store_connection.ts";
import { text, whole } from "./sqlite_store_rows.ts";
import { tallyMove } from "./sqlite_store_tally.ts";

/** Writes an entry of the audit log. */
export function addAudit(connection: SqliteConnection, entry: AuditEntry): void {
  connection.run(
    "INSERT INTO audit (id, at, actor, action, object, details) VALUES (?, ?, ?, ?, ?, ?)",
    entry.id,
    entry.at,
    entry.actor,
    entry.action,
    entry.object,
    JSON.stringify(entry.details),
  );
}

/** Closes the attempt that somebody has begun, as far as one was. */
export function interruptAttempt(connection: SqliteConnection, deliverySeq: number, now: number): void {
  connection.run(
    `UPDATE attempt SET finished_at = ?, result = 'interrupted', error_kind = 'interrupted'
     WHERE delivery_seq = ? AND result IS NULL`,
    now,
    deliverySeq,
  );
}

/**
 * Fails open deliveries for good, with an entry of the audit log for each, and takes them from whoever has them: what
 * comes back of an attempt that is under way finds no claim.
 */
export function failDeliveries(
  connection: SqliteConnection,
  deliveries: readonly Row[],
  reason: FailureReason,
  { now, newId }: { readonly now: number; readonly newId: () => string },
): void {
  for (const row of deliveries) {
    const seq = whole(row, "seq");
    interruptAttempt(connection, seq, now);
    tallyMove(connection, `delivery.${text(row, "state") as DeliveryState}`, "delivery.failed");
    connection.run(
      `UPDATE delivery SET state = 'failed', reason = ?, finished_at = ?, due_at = NULL, resend_at = NULL,
         claim_id = NULL, lease_until = NULL, claim_resend_at = NULL
       WHERE seq = ?`,
      reason,
      now,
      seq,
    );
    addAudit(connection, {
      id: newId(),
      at: now,
      actor: "system",
      action: "delivery.failed",
      object: `delivery:${text(row, "id")}`,
      details: {
        endpointId: text(row, "endpoint_id"),
        eventId: text(row, "event_id"),
        event: text(row, "event"),
        reason,
      },
    });
  }
}

/** Takes back the wish for an attempt by hand, and the attempt itself, of deliveries that have ended. */
export function dropManualAttempts(
  connection: SqliteConnection,
  deliveries: readonly Row[],
  now: number,
): void {
  for (const row of deliveries) {
    const seq = whole(row, "seq");
    interruptAttempt(connection, seq, now);
    connection.run(
      `UPDATE delivery SET resend_at = NULL, claim_id = NULL, lease_until = NULL, claim_resend_at = NULL
       WHERE seq = ?`,
      seq,
    );
  }
}
