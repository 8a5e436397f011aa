import type { AuditEntry, StoredKey, Trigger, TriggerEdit } from "../model/records.ts";
import { listPageOf } from "./lists.ts";
import { text, TRIGGER_KEYS, TRIGGERS, whole } from "./rows.ts";
import { beginRemoval } from "./removals.ts";
import { addAudit } from "./audit_log.ts";
import { all, alone, get, type Row, run, sql, type Work } from "./work.ts";
import type { ChangeOptions, ListOptions, Page } from "./store.ts";

const MAX_KEYS = 2;

const LOCK = sql((d) => `SELECT id FROM workflow_trigger WHERE id = ? ${d.lock()}`);
const KEYS = sql((d) => `SELECT * FROM trigger_key WHERE ${d.among("trigger_id")} ORDER BY seq DESC`);

/** Writes a new trigger with its keys; false when the name is taken. */
export function* createTrigger(trigger: Trigger, audit: AuditEntry): Work<boolean> {
  const added = yield* TRIGGERS.insert(trigger, {}, "ON CONFLICT (name) DO NOTHING");
  if (added === 0) return false;
  for (const key of trigger.keys.toReversed()) yield* insertKey(trigger.id, key);
  yield* addAudit(audit);
  return true;
}

/** A trigger by its id. */
export function* findTrigger(id: string): Work<Trigger | undefined> {
  const [trigger] = yield* triggersOf(yield* all("SELECT * FROM workflow_trigger WHERE id = ?", id));
  return trigger;
}

/** A trigger by its name. */
export function* findTriggerByName(name: string): Work<Trigger | undefined> {
  const [trigger] = yield* triggersOf(yield* all("SELECT * FROM workflow_trigger WHERE name = ?", name));
  return trigger;
}

/** Triggers, newest first. */
export function listTriggers(options: ListOptions): Work<Page<Trigger>> {
  return listPageOf("triggers", options, triggersOf);
}

function* triggersOf(rows: readonly Row[]): Work<readonly Trigger[]> {
  if (rows.length === 0) return [];
  const keys = Map.groupBy(
    yield* all(KEYS, rows.map((row) => text(row, "id"))),
    (key) => text(key, "trigger_id"),
  );
  return rows.map((row) => triggerOf(row, keys.get(text(row, "id")) ?? []));
}

const FIND_KEY = `
  SELECT workflow_trigger.*, found.id AS found_id, own.id AS own_id, own.hash AS own_hash,
    own.last_four AS own_last_four, own.created_at AS own_created_at
  FROM trigger_key AS found JOIN workflow_trigger ON workflow_trigger.id = found.trigger_id
    JOIN trigger_key AS own ON own.trigger_id = found.trigger_id
  WHERE found.hash = ? ORDER BY own.seq DESC`;

/** The trigger that a key belongs to, with all its keys, in one way to the server and back: each call asks for it. */
export function* findTriggerKey(
  hash: string,
): Work<{ readonly trigger: Trigger; readonly keyId: string } | undefined> {
  const rows = yield* alone(all(FIND_KEY, hash));
  const [row] = rows;
  return row && { trigger: triggerOf(row, rows.map(ownKey)), keyId: text(row, "found_id") };
}

/** The columns of a key, as they are named in its table. */
function ownKey(row: Row): Row {
  return {
    id: text(row, "own_id"),
    hash: text(row, "own_hash"),
    last_four: text(row, "own_last_four"),
    created_at: whole(row, "own_created_at"),
  };
}

/** Changes a trigger; answers it as it is then. */
export function* editTrigger(
  id: string,
  edit: TriggerEdit,
  { now, audit }: ChangeOptions,
): Work<Trigger | undefined> {
  const changed = yield* TRIGGERS.update(id, { ...edit, updatedAt: now });
  if (changed === 0) return undefined;
  yield* addAudit(audit);
  return yield* findTrigger(id);
}

/** Adds a key; of three the oldest goes. */
export function* addTriggerKey(id: string, key: StoredKey, audit: AuditEntry): Work<Trigger | undefined> {
  if ((yield* get(LOCK, id)) === undefined) return undefined;
  yield* insertKey(id, key);
  yield* run(
    `DELETE FROM trigger_key WHERE trigger_id = ?
       AND seq NOT IN (SELECT seq FROM trigger_key WHERE trigger_id = ? ORDER BY seq DESC LIMIT ?)`,
    id,
    id,
    MAX_KEYS,
  );
  yield* addAudit(audit);
  return yield* findTrigger(id);
}

/** Revokes a key. */
export function* deleteTriggerKey(id: string, keyId: string, audit: AuditEntry): Work<boolean> {
  if ((yield* run("DELETE FROM trigger_key WHERE id = ? AND trigger_id = ?", keyId, id)) === 0) {
    return false;
  }
  yield* addAudit(audit);
  return true;
}

/** Removes a trigger with its keys, and from now on its idempotency keys, in portions. */
export function* deleteTrigger(id: string, audit: AuditEntry): Work<boolean> {
  if ((yield* run("DELETE FROM workflow_trigger WHERE id = ?", id)) === 0) return false;
  yield* beginRemoval("idempotency", `trigger:${id}`, { now: audit.at, newId: () => crypto.randomUUID() });
  yield* addAudit(audit);
  return true;
}

function* insertKey(triggerId: string, key: StoredKey): Work<void> {
  yield* TRIGGER_KEYS.insert(key, { trigger_id: triggerId });
}

function triggerOf(row: Row, keys: readonly Row[]): Trigger {
  return { ...TRIGGERS.read(row), keys: keys.map((key) => TRIGGER_KEYS.read(key)) };
}
