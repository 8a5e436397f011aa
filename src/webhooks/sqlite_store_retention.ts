import { KEY_LIVES_MS } from "./idempotency.ts";
import type { SqliteConnection } from "./sqlite_store_connection.ts";
import { text, whole } from "./sqlite_store_rows.ts";
import { type Tallied, tally } from "./sqlite_store_tally.ts";
import type { AdministrationStore } from "./store.ts";

/** Among so many times the most rows events are looked for that never had a delivery. */
const LOOKED_AT_SHARE = 10;

/** Removes what is over, and idempotency keys that are dead; answers how many rows went. */
export function removeFinished(
  connection: SqliteConnection,
  { before, now, max }: Parameters<AdministrationStore["removeFinished"]>[0],
): number {
  // An event goes with the last of its deliveries.
  let removed = removeDeliveries(connection, before, Math.ceil(max / 2));
  removed += removeExecutions(connection, before, max - removed);
  removed += removeEvents(connection, before, max - removed);
  removed += connection.run(
    "DELETE FROM audit WHERE seq IN (SELECT seq FROM audit WHERE at < ? ORDER BY at LIMIT ?)",
    before,
    max - removed,
  );
  removed += connection.run(
    `DELETE FROM idempotency WHERE (scope, key) IN (
       SELECT scope, key FROM idempotency WHERE accepted_at <= ? ORDER BY accepted_at LIMIT ?)`,
    now - KEY_LIVES_MS,
    max - removed,
  );
  return removed;
}

function removeDeliveries(connection: SqliteConnection, before: number, max: number): number {
  const rows = connection.all(
    `DELETE FROM delivery WHERE seq IN (
       SELECT seq FROM delivery WHERE finished_at < ? AND resend_at IS NULL AND claim_id IS NULL
       ORDER BY finished_at LIMIT ?
     ) RETURNING state, event_id`,
    before,
    max,
  );
  const gone = Map.groupBy(rows, (row) => text(row, "state"));
  for (const [state, { length }] of gone) tally(connection, `delivery.${state}` as Tallied, -length);
  let events = 0;
  for (const id of new Set(rows.map((row) => text(row, "event_id")))) {
    events += connection.run(
      `DELETE FROM event WHERE id = ? AND created_at < ?
         AND NOT EXISTS (SELECT 1 FROM delivery WHERE delivery.event_id = event.id)`,
      id,
      before,
    );
  }
  return rows.length + events;
}

/** A text of a workflow goes with the last execution that began with it; whoever starts another one saves it again. */
function removeExecutions(connection: SqliteConnection, before: number, max: number): number {
  const rows = connection.all(
    `DELETE FROM execution WHERE seq IN (
       SELECT seq FROM execution WHERE finished_at < ? ORDER BY finished_at LIMIT ?
     ) RETURNING status, version_id`,
    before,
    max,
  );
  const gone = Map.groupBy(rows, (row) => text(row, "status"));
  for (const [status, { length }] of gone) tally(connection, `execution.${status}` as Tallied, -length);
  for (const id of new Set(rows.map((row) => text(row, "version_id")))) {
    connection.run(
      `DELETE FROM workflow_version WHERE id = ?
         AND NOT EXISTS (SELECT 1 FROM execution WHERE execution.version_id = workflow_version.id)`,
      id,
    );
  }
  return rows.length;
}

/**
 * Removes events that nobody wanted. Each event is looked at once: one that has deliveries goes with the last of them,
 * and so the next call begins where this one ends.
 */
function removeEvents(connection: SqliteConnection, before: number, max: number): number {
  if (max <= 0) return 0;
  const kept = connection.get("SELECT at, seq FROM swept WHERE name = 'event'");
  // After a clock was set back events may have come before the place.
  const isKept = kept !== undefined && whole(kept, "at") < before;
  const rows = connection.all(
    `SELECT seq, created_at, NOT EXISTS (SELECT 1 FROM delivery WHERE delivery.event_id = event.id) AS idle
     FROM event INDEXED BY event_created
     WHERE created_at < ? AND (created_at, seq) > (?, ?) ORDER BY created_at, seq LIMIT ?`,
    before,
    isKept ? whole(kept, "at") : Number.MIN_SAFE_INTEGER,
    isKept ? whole(kept, "seq") : 0,
    LOOKED_AT_SHARE * max,
  );
  let removed = 0;
  let last = rows.at(-1);
  for (const row of rows) {
    if (whole(row, "idle") === 0) continue;
    if (removed === max) break;
    removed += connection.run("DELETE FROM event WHERE seq = ?", whole(row, "seq"));
    if (removed === max) last = row;
  }
  if (last !== undefined) {
    connection.run(
      "INSERT OR REPLACE INTO swept (name, at, seq) VALUES ('event', ?, ?)",
      whole(last, "created_at"),
      whole(last, "seq"),
    );
  }
  return removed;
}
