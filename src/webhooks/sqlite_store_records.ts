import type { Attempt, AuditEntry, Delivery, WebhookEvent } from "./records.ts";
import { KEY_LIVES_MS } from "./idempotency.ts";
import type { SqliteConnection } from "./sqlite_store_connection.ts";
import { findEndpoint } from "./sqlite_store_endpoints.ts";
import { attemptOf, deliveryOf, eventOf, text, whole, wholeOrNone } from "./sqlite_store_rows.ts";
import { type Tallied, tallies, tally, tallyMove } from "./sqlite_store_tally.ts";
import { addAudit, dropManualAttempts, failDeliveries } from "./sqlite_store_trail.ts";
import type { AdministrationStore, StoreFigures } from "./store.ts";

/** An event by its id. */
export function findEvent(connection: SqliteConnection, id: string): WebhookEvent | undefined {
  return connection.all("SELECT * FROM event WHERE id = ?", id).map(eventOf)[0];
}

/** Erases the payload of an event and fails its open deliveries. */
export function erasePayload(
  connection: SqliteConnection,
  id: string,
  { now, audit, newId }: { readonly now: number; readonly audit: AuditEntry; readonly newId: () => string },
): boolean {
  const event = findEvent(connection, id);
  if (event === undefined) return false;
  if (event.body === undefined) return true;
  connection.run("UPDATE event SET body = NULL WHERE id = ?", id);
  addAudit(connection, audit);
  const open = connection.all(
    "SELECT * FROM delivery WHERE event_id = ? AND state IN ('attempting', 'retrying') ORDER BY seq",
    id,
  );
  failDeliveries(connection, open, "payload_erased", { now, newId });
  dropManualAttempts(connection, "event_id", id, now);
  return true;
}

/** A delivery with its attempts. */
export function findDelivery(
  connection: SqliteConnection,
  id: string,
): { readonly delivery: Delivery; readonly attempts: readonly Attempt[] } | undefined {
  const row = connection.get("SELECT * FROM delivery WHERE id = ?", id);
  if (row === undefined) return undefined;
  const attempts = connection.all(
    "SELECT * FROM attempt WHERE delivery_seq = ? ORDER BY number",
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

/** What is removed beside deliveries and executions. An event stays while there is a delivery of it. */
const REST: readonly string[] = [
  `DELETE FROM event WHERE seq IN (
     SELECT seq FROM event WHERE created_at < ?
       AND NOT EXISTS (SELECT 1 FROM delivery WHERE delivery.event_id = event.id)
     ORDER BY created_at LIMIT ?)`,
  "DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE at < ? ORDER BY at LIMIT ?)",
];

/** Removes what is over, and idempotency keys that are dead; answers how many rows went. */
export function removeFinished(
  connection: SqliteConnection,
  { before, now, max }: Parameters<AdministrationStore["removeFinished"]>[0],
): number {
  let removed = removeRows(connection, "delivery", before, max);
  removed += removeRows(connection, "execution", before, max - removed);
  for (const sql of REST) removed += connection.run(sql, before, max - removed);
  removed += connection.run(
    `DELETE FROM idempotency WHERE (scope, key) IN (
       SELECT scope, key FROM idempotency WHERE accepted_at <= ? ORDER BY accepted_at LIMIT ?)`,
    now - KEY_LIVES_MS,
    max - removed,
  );
  return removed;
}

function removeRows(
  connection: SqliteConnection,
  table: "delivery" | "execution",
  before: number,
  max: number,
): number {
  const wanted = table === "delivery" ? "resend_at IS NULL AND claim_id IS NULL" : "TRUE";
  const state = table === "delivery" ? "state" : "status";
  const rows = connection.all(
    `DELETE FROM ${table} WHERE seq IN (
       SELECT seq FROM ${table} WHERE finished_at < ? AND ${wanted} ORDER BY finished_at LIMIT ?
     ) RETURNING ${state}`,
    before,
    max,
  );
  const gone = Map.groupBy(rows, (row) => text(row, state));
  for (const [name, { length }] of gone) tally(connection, `${table}.${name}` as Tallied, -length);
  return rows.length;
}

function fileBytes(path: string): number {
  try {
    return Deno.statSync(path).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return 0;
    throw error;
  }
}
