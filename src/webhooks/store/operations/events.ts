import type { AuditEntry, EventKey, WebhookEvent } from "../../model/records.ts";
import { addAudit } from "./audit_log.ts";
import { listed } from "../list_operation.ts";
import { listPage } from "./lists.ts";
import { beginRemoval } from "./removals.ts";
import { integer, RECORDS, text } from "../rows.ts";
import { all, alone, get, postgresOnly, run, sql, type Work } from "../work.ts";
import type { ListOptions, Page, RemovalOptions } from "../store.ts";

/** An event by its id. */
export function* findEvent(id: string): Work<WebhookEvent | undefined> {
  return (yield* all("SELECT * FROM event WHERE id = ?", id)).map((row) => RECORDS.events.read(row))[0];
}

/** Events, newest first, without their payloads: the body of one that was not erased is empty. */
export function listEvents(options: ListOptions): Work<Page<WebhookEvent>> {
  return listPage("events", options, RECORDS.events);
}

/** Selects whether an event lost its payload, by its id. */
export const IS_ERASED = "SELECT CASE WHEN body IS NULL THEN 1 ELSE 0 END AS erased FROM event WHERE id = ?";
const FIND_TO_ERASE = sql((d) => `${IS_ERASED} ${d.lock()}`);
// Waits for attempts that are being finished, whose responses are erased as well.
const WAIT_FOR_ATTEMPTS = postgresOnly("SELECT seq FROM delivery WHERE event_id = ? ORDER BY seq FOR UPDATE");

/** Erases the payload of an event; its open deliveries fail with `payload_erased`, in portions. False for no event. */
export function* erasePayload(
  id: string,
  { audit, ...options }: RemovalOptions & { readonly audit: AuditEntry },
): Work<boolean> {
  const event = yield* get(FIND_TO_ERASE, id);
  if (event === undefined) return false;
  if (integer(event, "erased") !== 0) return true;
  yield* all(WAIT_FOR_ATTEMPTS, id);
  yield* run("UPDATE event SET body = NULL WHERE id = ?", id);
  // A response may contain the payload.
  yield* run(
    "UPDATE attempt SET response = NULL WHERE delivery_seq IN (SELECT seq FROM delivery WHERE event_id = ?)",
    id,
  );
  yield* run(
    "DELETE FROM delivery_body WHERE delivery_seq IN (SELECT seq FROM delivery WHERE event_id = ?)",
    id,
  );
  yield* addAudit(audit);
  yield* beginRemoval("payload", id, options);
  return true;
}

/** Creates an event key. */
export function* createEventKey(key: EventKey, audit: AuditEntry): Work<void> {
  yield* RECORDS.eventKeys.insert(key);
  yield* addAudit(audit);
}

/** Event keys, newest first. */
export function listEventKeys(options: ListOptions): Work<Page<EventKey>> {
  return listPage("eventKeys", options, RECORDS.eventKeys);
}

/** An event key by its id. */
export function* findEventKeyById(id: string): Work<EventKey | undefined> {
  return (yield* all("SELECT * FROM event_key WHERE id = ?", id)).map((row) =>
    RECORDS.eventKeys.read(row)
  )[0];
}

const FIND_KEYS = sql((d) => `SELECT * FROM event_key WHERE ${d.among("hash")}`);

/** An event key by its hash. */
export const findEventKey = listed<readonly [hash: string], EventKey | undefined>({
  *work(calls) {
    const rows = yield* alone(all(FIND_KEYS, [...new Set(calls.map(([hash]) => hash))]));
    const found = new Map(rows.map((row) => [text(row, "hash"), RECORDS.eventKeys.read(row)]));
    return calls.map(([hash]) => found.get(hash));
  },
});

/** Revokes an event key; false when there is none. */
export function* deleteEventKey(id: string, audit: AuditEntry): Work<boolean> {
  const deleted = yield* run("DELETE FROM event_key WHERE id = ?", id);
  if (deleted > 0) yield* addAudit(audit);
  return deleted > 0;
}
