import type { Attempt, AuditEntry, Delivery, WebhookEvent } from "./records.ts";
import type { SqliteConnection } from "./sqlite_store_connection.ts";
import { findEndpoint } from "./sqlite_store_endpoints.ts";
import { beginRemoval, type RemovalOptions } from "./sqlite_store_removals.ts";
import { attemptOf, deliveryOf, eventOf, text, whole, wholeOrNone } from "./sqlite_store_rows.ts";
import { tallies, tallyMove } from "./sqlite_store_tally.ts";
import { addAudit } from "./sqlite_store_trail.ts";
import type { AdministrationStore, StoreFigures } from "./store.ts";

/** An event by its id. */
export function findEvent(connection: SqliteConnection, id: string): WebhookEvent | undefined {
  return connection.all("SELECT * FROM event WHERE id = ?", id).map(eventOf)[0];
}

/** Erases the payload of an event; its open deliveries fail from now on, in portions. */
export function erasePayload(
  connection: SqliteConnection,
  id: string,
  { audit, ...options }: RemovalOptions & { readonly audit: AuditEntry },
): boolean {
  const event = connection.get("SELECT body IS NULL AS erased FROM event WHERE id = ?", id);
  if (event === undefined) return false;
  if (whole(event, "erased") !== 0) return true;
  connection.run("UPDATE event SET body = NULL WHERE id = ?", id);
  // A receiver may have sent the payload back.
  connection.run(
    "UPDATE attempt SET response = NULL WHERE delivery_seq IN (SELECT seq FROM delivery WHERE event_id = ?)",
    id,
  );
  addAudit(connection, audit);
  beginRemoval(connection, "payload", id, options);
  return true;
}

const ATTEMPT_COLUMNS = "number, started_at, finished_at, url, manual, result, status, error_kind, error";

/** A delivery with its attempts, without what was answered to them where that is not wanted. */
export function findDelivery(
  connection: SqliteConnection,
  id: string,
  { responses = true }: { readonly responses?: boolean | undefined } = {},
): { readonly delivery: Delivery; readonly attempts: readonly Attempt[] } | undefined {
  const row = connection.get("SELECT * FROM delivery WHERE id = ?", id);
  if (row === undefined) return undefined;
  const attempts = connection.all(
    `SELECT ${ATTEMPT_COLUMNS}, ${responses ? "response" : "NULL AS response"}
     FROM attempt WHERE delivery_seq = ? ORDER BY number`,
    whole(row, "seq"),
  );
  return { delivery: deliveryOf(row), attempts: attempts.map(attemptOf) };
}

/** Asks for an attempt by hand. */
export function resendDelivery(
  connection: SqliteConnection,
  id: string,
  { now, audit }: { readonly now: number; readonly audit: AuditEntry },
): "asked" | "erased" | undefined {
  const row = connection.get("SELECT seq, endpoint_id, event_id FROM delivery WHERE id = ?", id);
  if (row === undefined || findEndpoint(connection, text(row, "endpoint_id")) === undefined) return undefined;
  if (findEvent(connection, text(row, "event_id"))?.body === undefined) return "erased";
  // A wish that comes while an attempt is under way is another one, even within one millisecond.
  connection.run(
    "UPDATE delivery SET resend_at = max(?, coalesce(claim_resend_at + 1, 0)) WHERE seq = ?",
    now,
    whole(row, "seq"),
  );
  addAudit(connection, audit);
  return "asked";
}

/** Opens failed deliveries of an endpoint again, or counts them. */
export function recoverDeliveries(
  connection: SqliteConnection,
  options: Parameters<AdministrationStore["recoverDeliveries"]>[0],
): number | undefined {
  const { endpointId, since, until, now } = options;
  if (findEndpoint(connection, endpointId) === undefined) return undefined;
  const failed = `FROM delivery JOIN event ON event.id = delivery.event_id AND event.body IS NOT NULL
    WHERE delivery.endpoint_id = ? AND delivery.state = 'failed'
      AND delivery.created_at >= ? AND delivery.created_at < ?`;
  if (options.dryRun) {
    return whole(connection.get(`SELECT count(*) AS count ${failed}`, endpointId, since, until), "count");
  }
  const rows = connection.all(
    `SELECT delivery.seq ${failed} ORDER BY delivery.seq LIMIT ?`,
    endpointId,
    since,
    until,
    options.max,
  );
  for (const row of rows) {
    connection.run(
      `UPDATE delivery SET state = 'attempting', slot = 0, first_failure_at = NULL, due_at = ?,
         finished_at = NULL, reason = NULL
       WHERE seq = ?`,
      now,
      whole(row, "seq"),
    );
  }
  tallyMove(connection, "delivery.failed", "delivery.attempting", rows.length);
  addAudit(connection, options.audit);
  return rows.length;
}

/** What is asked of the store now and then. */
export function storeFigures(connection: SqliteConnection, now: number): StoreFigures {
  const due = connection.get(
    `SELECT count(*) AS count, min(delivery.next_at) AS oldest
     FROM endpoint CROSS JOIN delivery INDEXED BY delivery_next ON delivery.endpoint_id = endpoint.id
     WHERE endpoint.enabled = 1 AND delivery.next_at <= ?`,
    now,
  );
  const oldestDueAt = due && wholeOrNone(due, "oldest");
  return {
    dueNow: whole(due, "count"),
    ...(oldestDueAt === undefined ? {} : { oldestDueAt }),
    bytes: storeBytes(connection),
    ...tallies(connection),
  };
}

/** How many bytes the database and the log beside it hold. */
export function storeBytes(connection: SqliteConnection): number {
  const pages = whole(connection.get("PRAGMA page_count"), "page_count");
  return pages * whole(connection.get("PRAGMA page_size"), "page_size") + fileBytes(`${connection.path}-wal`);
}

function fileBytes(path: string): number {
  try {
    return Deno.statSync(path).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return 0;
    throw error;
  }
}
