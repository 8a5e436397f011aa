import type { AuditEntry, EventKey, StoredKey, Trigger, TriggerEdit } from "./records.ts";
import type { Row, SqliteConnection } from "./sqlite_store_connection.ts";
import { setColumns } from "./sqlite_store_endpoints.ts";
import { eventKeyOf, text, triggerOf } from "./sqlite_store_rows.ts";
import { beginRemoval, type RemovalOptions } from "./sqlite_store_removals.ts";
import { addAudit } from "./sqlite_store_trail.ts";

const MAX_KEYS = 2;

/** Writes a new trigger with its keys; false when the name is taken. */
export function createTrigger(connection: SqliteConnection, trigger: Trigger, audit: AuditEntry): boolean {
  if (findTriggerByName(connection, trigger.name) !== undefined) return false;
  connection.run(
    `INSERT INTO workflow_trigger (id, name, workflow, enabled, require_idempotency_key, on_body_mismatch,
       rate_limit, on_limit_error, created_at, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    trigger.id,
    trigger.name,
    trigger.workflow,
    trigger.enabled,
    trigger.requireIdempotencyKey,
    trigger.onBodyMismatch,
    trigger.limit && JSON.stringify(trigger.limit),
    trigger.onLimitError,
    trigger.createdAt,
    trigger.updatedAt,
  );
  for (const key of trigger.keys.toReversed()) insertKey(connection, trigger.id, key);
  addAudit(connection, audit);
  return true;
}

/** A trigger by its id. */
export function findTrigger(connection: SqliteConnection, id: string): Trigger | undefined {
  return connection.all("SELECT * FROM workflow_trigger WHERE id = ?", id).map(withKeys(connection))[0];
}

/** A trigger by its name. */
export function findTriggerByName(connection: SqliteConnection, name: string): Trigger | undefined {
  return connection.all("SELECT * FROM workflow_trigger WHERE name = ?", name).map(withKeys(connection))[0];
}

/** Makes triggers of their rows. */
export function withKeys(connection: SqliteConnection): (row: Row) => Trigger {
  return (row) =>
    triggerOf(
      row,
      connection.all("SELECT * FROM trigger_key WHERE trigger_id = ? ORDER BY seq DESC", text(row, "id")),
    );
}

/** The trigger that a key belongs to. */
export function findTriggerKey(
  connection: SqliteConnection,
  hash: string,
): { readonly trigger: Trigger; readonly keyId: string } | undefined {
  const row = connection.get("SELECT id, trigger_id FROM trigger_key WHERE hash = ?", hash);
  const trigger = row && findTrigger(connection, text(row, "trigger_id"));
  return row && trigger && { trigger, keyId: text(row, "id") };
}

/** Changes a trigger; answers it as it is then. */
export function editTrigger(
  connection: SqliteConnection,
  id: string,
  edit: TriggerEdit,
  { now, audit }: { readonly now: number; readonly audit: AuditEntry },
): Trigger | undefined {
  const changed = setColumns(connection, "workflow_trigger", id, [
    ["updated_at", now],
    ["workflow", edit.workflow],
    ["enabled", edit.enabled],
    ["require_idempotency_key", edit.requireIdempotencyKey],
    ["on_body_mismatch", edit.onBodyMismatch],
    ["rate_limit", edit.limit && JSON.stringify(edit.limit)],
    ["on_limit_error", edit.onLimitError],
  ]);
  if (changed === 0) return undefined;
  addAudit(connection, audit);
  return findTrigger(connection, id);
}

/** Adds a key; of three the oldest goes. */
export function addTriggerKey(
  connection: SqliteConnection,
  id: string,
  key: StoredKey,
  audit: AuditEntry,
): Trigger | undefined {
  if (findTrigger(connection, id) === undefined) return undefined;
  insertKey(connection, id, key);
  connection.run(
    `DELETE FROM trigger_key WHERE trigger_id = ?
       AND seq NOT IN (SELECT seq FROM trigger_key WHERE trigger_id = ? ORDER BY seq DESC LIMIT ?)`,
    id,
    id,
    MAX_KEYS,
  );
  addAudit(connection, audit);
  return findTrigger(connection, id);
}

/** Revokes a key. */
export function deleteTriggerKey(
  connection: SqliteConnection,
  id: string,
  keyId: string,
  audit: AuditEntry,
): boolean {
  if (connection.run("DELETE FROM trigger_key WHERE id = ? AND trigger_id = ?", keyId, id) === 0) {
    return false;
  }
  addAudit(connection, audit);
  return true;
}

/** Removes a trigger with its keys, and from now on its idempotency keys, in portions. */
export function deleteTrigger(
  connection: SqliteConnection,
  id: string,
  { audit, ...options }: RemovalOptions & { readonly audit: AuditEntry },
): boolean {
  if (connection.run("DELETE FROM workflow_trigger WHERE id = ?", id) === 0) return false;
  beginRemoval(connection, "idempotency", `trigger:${id}`, options);
  addAudit(connection, audit);
  return true;
}

/** Writes a new event key. */
export function createEventKey(connection: SqliteConnection, key: EventKey, audit: AuditEntry): void {
  connection.run(
    "INSERT INTO event_key (id, name, kinds, hash, last_four, created_at) VALUES (?, ?, ?, ?, ?, ?)",
    key.id,
    key.name,
    JSON.stringify(key.kinds),
    key.hash,
    key.lastFour,
    key.createdAt,
  );
  addAudit(connection, audit);
}

/** An event key by the hash of it. */
export function findEventKey(connection: SqliteConnection, hash: string): EventKey | undefined {
  return connection.all("SELECT * FROM event_key WHERE hash = ?", hash).map(eventKeyOf)[0];
}

/** Revokes an event key. */
export function deleteEventKey(connection: SqliteConnection, id: string, audit: AuditEntry): boolean {
  if (connection.run("DELETE FROM event_key WHERE id = ?", id) === 0) return false;
  addAudit(connection, audit);
  return true;
}

function insertKey(connection: SqliteConnection, triggerId: string, key: StoredKey): void {
  connection.run(
    "INSERT INTO trigger_key (id, trigger_id, hash, last_four, created_at) VALUES (?, ?, ?, ?, ?)",
    key.id,
    triggerId,
    key.hash,
    key.lastFour,
    key.createdAt,
  );
}
