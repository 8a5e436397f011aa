import type { DeliveryState, FailureReason } from "./records.ts";
import type { Row, SqliteConnection } from "./sqlite_store_connection.ts";
import { text, whole } from "./sqlite_store_rows.ts";
import { dropManualAttempts, failDeliveries } from "./sqlite_store_trail.ts";

/** What was removed: an endpoint, the payload of an event, or the trigger whose idempotency keys have this scope. */
export type Removed = "endpoint" | "payload" | "idempotency";

/** How removals go on. */
export interface RemovalOptions {
  readonly now: number;
  readonly newId: () => string;
  /** How many rows at once. */
  readonly max?: number | undefined;
}

/** How many rows are changed at once: others get at the store in between. */
export const PORTION = 500;

type Portion = RemovalOptions & { readonly max: number };

const OPEN: ReadonlySet<DeliveryState> = new Set(["attempting", "retrying"]);

/**
 * Ends what belongs to something that was removed: a first portion of it now, what remains with `clearRemoved`, which
 * finds it after a crash as well. Attempts that are under way are all taken back now.
 */
export function beginRemoval(
  connection: SqliteConnection,
  kind: Removed,
  id: string,
  options: RemovalOptions,
): void {
  const [removal] = connection.all(
    "INSERT INTO removal (kind, id, position) VALUES (?, ?, 0) RETURNING *",
    kind,
    id,
  );
  if (removal === undefined) return;
  if (kind !== "idempotency") {
    const column = kind === "endpoint" ? "endpoint_id" : "event_id";
    const claimed = connection.all(
      `SELECT * FROM delivery INDEXED BY delivery_lease WHERE claim_id IS NOT NULL AND ${column} = ? ORDER BY seq`,
      id,
    );
    endDeliveries(connection, claimed, reasonOf(kind), options);
  }
  goOn(connection, removal, options);
}

/** A further portion of what removals have left; true while there is more. */
export function clearRemoved(connection: SqliteConnection, options: RemovalOptions): boolean {
  const removal = connection.get("SELECT * FROM removal ORDER BY seq LIMIT 1");
  if (removal === undefined) return false;
  goOn(connection, removal, options);
  return isAnythingRemoved(connection);
}

/** Whether any removal has left something to do. */
export function isAnythingRemoved(connection: SqliteConnection): boolean {
  return connection.get("SELECT 1 AS one FROM removal LIMIT 1") !== undefined;
}

function goOn(connection: SqliteConnection, removal: Row, options: RemovalOptions): void {
  const { max = PORTION } = options;
  const done = PORTIONS[text(removal, "kind") as Removed](connection, removal, { ...options, max });
  if (done < max) connection.run("DELETE FROM removal WHERE seq = ?", whole(removal, "seq"));
}

/** Each works on at most `max` rows and answers on how many. */
const PORTIONS: Readonly<
  Record<Removed, (connection: SqliteConnection, removal: Row, options: Portion) => number>
> = {
  endpoint(connection, removal, options) {
    // Whatever is open, or wished for by hand, stands in this index; a delivery that has ended leaves it.
    const rows = connection.all(
      `SELECT * FROM delivery INDEXED BY delivery_next
       WHERE endpoint_id = ? AND next_at IS NOT NULL ORDER BY next_at, seq LIMIT ?`,
      text(removal, "id"),
      options.max,
    );
    endDeliveries(connection, rows, "endpoint_deleted", options);
    return rows.length;
  },
  payload(connection, removal, options) {
    const rows = connection.all(
      "SELECT * FROM delivery WHERE event_id = ? AND seq > ? ORDER BY seq LIMIT ?",
      text(removal, "id"),
      whole(removal, "position"),
      options.max,
    );
    endDeliveries(connection, rows, "payload_erased", options);
    const last = rows.at(-1);
    if (last !== undefined) {
      const [position, seq] = [whole(last, "seq"), whole(removal, "seq")];
      connection.run("UPDATE removal SET position = ? WHERE seq = ?", position, seq);
    }
    return rows.length;
  },
  idempotency(connection, removal, { max }) {
    return connection.run(
      `DELETE FROM idempotency WHERE scope = ?1
         AND key IN (SELECT key FROM idempotency WHERE scope = ?1 LIMIT ?2)`,
      text(removal, "id"),
      max,
    );
  },
};

function reasonOf(kind: "endpoint" | "payload"): FailureReason {
  return kind === "endpoint" ? "endpoint_deleted" : "payload_erased";
}

/** Fails those that are open; of those that have ended only the wish for an attempt by hand goes. */
function endDeliveries(
  connection: SqliteConnection,
  rows: readonly Row[],
  reason: FailureReason,
  options: RemovalOptions,
): void {
  const isOpen = (row: Row) => OPEN.has(text(row, "state") as DeliveryState);
  failDeliveries(connection, rows.filter(isOpen), reason, options);
  const ended = rows.filter((row) => !isOpen(row) && (row["resend_at"] !== null || row["claim_id"] !== null));
  dropManualAttempts(connection, ended, options.now);
}
