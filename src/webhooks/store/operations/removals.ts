import type { AuditAction } from "../../resources/audit_entry.ts";
import type { AuditEntry, DeliveryState } from "../../model/records.ts";
import { integer, text } from "../rows.ts";
import { addAudit, dropManualAttempts, failDeliveries, failUnaudited } from "./audit_log.ts";
import { all, get, type Row, run, sql, type Work } from "../work.ts";
import type { RemovalOptions } from "../store.ts";

/** An endpoint, the payload of an event, or a trigger, whose idempotency keys have this scope. */
type Removed = "endpoint" | "payload" | "idempotency";

/** Most rows that an operation changes, so that others can run in between. */
export const PORTION = 500;

const OPEN: ReadonlySet<DeliveryState> = new Set(["attempting", "retrying"]);

const BEGIN = "INSERT INTO removal (kind, id, position) VALUES (?, ?, 0) RETURNING *";
const CLAIMED = { endpoint: claimedOf("endpoint_id"), payload: claimedOf("event_id") };
const MOVE = "UPDATE removal SET position = ? WHERE seq = ?";

function claimedOf(column: "endpoint_id" | "event_id") {
  return sql((d) =>
    `SELECT * FROM delivery ${d.by("delivery_lease")} WHERE claim_id IS NOT NULL AND ${column} = ?
     ORDER BY seq ${d.lock()}`
  );
}

/**
 * Ends what belongs to a removed record: all attempts in flight and a first portion now, the rest by `clearRemoved`,
 * also after a crash.
 */
export function* beginRemoval(kind: Removed, id: string, options: RemovalOptions): Work<void> {
  const removal = yield* get(BEGIN, kind, id);
  if (removal === undefined) return;
  if (kind === "endpoint") {
    const position = yield* endOfEndpoint(yield* all(CLAIMED[kind], id), options);
    return yield* continueRemoval({ ...removal, position }, options);
  }
  if (kind === "payload") yield* endOfPayload(yield* all(CLAIMED[kind], id), options);
  yield* continueRemoval(removal, options);
}

const FIRST = sql((d) => `SELECT * FROM removal ORDER BY seq LIMIT 1 ${d.lockFree()}`);

/** Continues a removal that no other process continues; true while more remains. */
export function* clearRemoved(options: RemovalOptions): Work<boolean> {
  const removal = yield* get(FIRST);
  if (removal === undefined) return false;
  yield* continueRemoval(removal, options);
  return yield* isAnythingRemoved();
}

/** True if a removal is incomplete. */
export function* isAnythingRemoved(): Work<boolean> {
  return (yield* get("SELECT 1 AS one FROM removal LIMIT 1")) !== undefined;
}

function* continueRemoval(removal: Row, options: RemovalOptions): Work<void> {
  const { max = PORTION } = options;
  const done = yield* PORTIONS[text(removal, "kind") as Removed](removal, { ...options, max });
  if (done < max) yield* run("DELETE FROM removal WHERE seq = ?", integer(removal, "seq"));
}

// This index has the open and the resent deliveries.
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

/** Each changes at most `max` rows and returns how many. */
const PORTIONS: Readonly<
  Record<Removed, (removal: Row, options: RemovalOptions & { readonly max: number }) => Work<number>>
> = {
  // The position is the number of deliveries that failed.
  *endpoint(removal, options) {
    const id = text(removal, "id");
    const rows = yield* all(OF_ENDPOINT, id, options.max);
    const count = integer(removal, "position") + (yield* endOfEndpoint(rows, options));
    if (rows.length === options.max) yield* run(MOVE, count, integer(removal, "seq"));
    else if (count > 0) yield* addAudit(failedOf(id, count, options));
    return rows.length;
  },
  *payload(removal, options) {
    const rows = yield* all(OF_EVENT, text(removal, "id"), integer(removal, "position"), options.max);
    yield* endOfPayload(rows, options);
    const last = rows.at(-1);
    if (last !== undefined) yield* run(MOVE, integer(last, "seq"), integer(removal, "seq"));
    return rows.length;
  },
  *idempotency(removal, { max }) {
    const scope = text(removal, "id");
    return yield* run(REMOVE_KEYS, scope, max, scope);
  },
};

/** Fails the open deliveries of an endpoint and cancels the resending of ended ones; returns how many failed. */
function* endOfEndpoint(rows: readonly Row[], { now }: RemovalOptions): Work<number> {
  const open = rows.filter(isOpen);
  yield* failUnaudited(open, "endpoint_deleted", now);
  yield* dropResending(rows, now);
  return open.length;
}

function* endOfPayload(rows: readonly Row[], options: RemovalOptions): Work<void> {
  yield* failDeliveries(rows.filter(isOpen), "payload_erased", options);
  yield* dropResending(rows, options.now);
}

function* dropResending(rows: readonly Row[], now: number): Work<void> {
  const resent = (row: Row) => row["resend_at"] !== null || row["claim_id"] !== null;
  yield* dropManualAttempts(rows.filter((row) => !isOpen(row) && resent(row)), now);
}

function isOpen(row: Row): boolean {
  return OPEN.has(text(row, "state") as DeliveryState);
}

/** One entry for all deliveries of a deleted endpoint: there may be as many as its backlog may have. */
function failedOf(id: string, count: number, { now, newId }: RemovalOptions): AuditEntry {
  const action: AuditAction = "delivery.failed";
  const details = { reason: "endpoint_deleted", count };
  return { id: newId(), at: now, actor: "system", action, object: `endpoint:${id}`, details };
}
