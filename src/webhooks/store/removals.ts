import type { DeliveryState, FailureReason } from "../model/records.ts";
import { text, whole } from "./rows.ts";
import { dropManualAttempts, failDeliveries } from "./audit_log.ts";
import { all, get, type Row, run, sql, type Work } from "./work.ts";
import type { RemovalOptions } from "./store.ts";

/** What was removed: an endpoint, the payload of an event, or the trigger whose idempotency keys have this scope. */
export type Removed = "endpoint" | "payload" | "idempotency";

/** How many rows are changed at once: others get at the store in between. */
export const PORTION = 500;

type Portion = RemovalOptions & { readonly max: number };

const OPEN: ReadonlySet<DeliveryState> = new Set(["attempting", "retrying"]);

const BEGIN = "INSERT INTO removal (kind, id, position) VALUES (?, ?, 0) RETURNING *";
const CLAIMED = {
  endpoint: claimedOf("endpoint_id"),
  payload: claimedOf("event_id"),
};

function claimedOf(column: "endpoint_id" | "event_id") {
  return sql((d) =>
    `SELECT * FROM delivery ${d.by("delivery_lease")} WHERE claim_id IS NOT NULL AND ${column} = ?
     ORDER BY seq ${d.lock()}`
  );
}

/**
 * Ends what belongs to something that was removed: a first portion of it now, what remains with `clearRemoved`, which
 * finds it after a crash as well. Attempts that are under way are all taken back now.
 */
export function* beginRemoval(kind: Removed, id: string, options: RemovalOptions): Work<void> {
  const removal = yield* get(BEGIN, kind, id);
  if (removal === undefined) return;
  if (kind !== "idempotency") {
    yield* endDeliveries(yield* all(CLAIMED[kind], id), reasonOf(kind), options);
  }
  yield* goOn(removal, options);
}

const FIRST = sql((d) => `SELECT * FROM removal ORDER BY seq LIMIT 1 ${d.lockFree()}`);

/** A further portion of what removals have left; true while there is more that nobody else is at. */
export function* clearRemoved(options: RemovalOptions): Work<boolean> {
  const removal = yield* get(FIRST);
  if (removal === undefined) return false;
  yield* goOn(removal, options);
  return yield* isAnythingRemoved();
}

/** Whether any removal has left something to do. */
export function* isAnythingRemoved(): Work<boolean> {
  return (yield* get("SELECT 1 AS one FROM removal LIMIT 1")) !== undefined;
}

function* goOn(removal: Row, options: RemovalOptions): Work<void> {
  const { max = PORTION } = options;
  const done = yield* PORTIONS[text(removal, "kind") as Removed](removal, { ...options, max });
  if (done < max) yield* run("DELETE FROM removal WHERE seq = ?", whole(removal, "seq"));
}

// Whatever is open, or wished for by hand, stands in this index; a delivery that has ended leaves it.
const OF_ENDPOINT = sql((d) =>
  `SELECT * FROM delivery ${d.by("delivery_next")}
   WHERE endpoint_id = ? AND next_at IS NOT NULL ORDER BY next_at, seq LIMIT ? ${d.lock()}`
);
const OF_EVENT = sql((d) =>
  `SELECT * FROM delivery WHERE event_id = ? AND seq > ? ORDER BY seq LIMIT ? ${d.lock()}`
);
const REMOVE_KEYS = sql((d) =>
  `WITH portion AS MATERIALIZED (SELECT key FROM idempotency WHERE scope = ? LIMIT ? ${d.lock()})
   DELETE FROM idempotency WHERE scope = ? AND key IN (SELECT key FROM portion)`
);

/** Each works on at most `max` rows and answers on how many. */
const PORTIONS: Readonly<Record<Removed, (removal: Row, options: Portion) => Work<number>>> = {
  *endpoint(removal, options) {
    const rows = yield* all(OF_ENDPOINT, text(removal, "id"), options.max);
    yield* endDeliveries(rows, "endpoint_deleted", options);
    return rows.length;
  },
  *payload(removal, options) {
    const rows = yield* all(OF_EVENT, text(removal, "id"), whole(removal, "position"), options.max);
    yield* endDeliveries(rows, "payload_erased", options);
    const last = rows.at(-1);
    if (last !== undefined) {
      const [position, seq] = [whole(last, "seq"), whole(removal, "seq")];
      yield* run("UPDATE removal SET position = ? WHERE seq = ?", position, seq);
    }
    return rows.length;
  },
  *idempotency(removal, { max }) {
    const scope = text(removal, "id");
    return yield* run(REMOVE_KEYS, scope, max, scope);
  },
};

function reasonOf(kind: "endpoint" | "payload"): FailureReason {
  return kind === "endpoint" ? "endpoint_deleted" : "payload_erased";
}

/** Fails those that are open; of those that have ended only the wish for an attempt by hand goes. */
function* endDeliveries(
  rows: readonly Row[],
  reason: FailureReason,
  options: RemovalOptions,
): Work<void> {
  const isOpen = (row: Row) => OPEN.has(text(row, "state") as DeliveryState);
  yield* failDeliveries(rows.filter(isOpen), reason, options);
  const ended = rows.filter((row) => !isOpen(row) && (row["resend_at"] !== null || row["claim_id"] !== null));
  yield* dropManualAttempts(ended, options.now);
}
