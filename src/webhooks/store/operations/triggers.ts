import type { AuditEntry, StoredKey, Trigger, TriggerEdit, TriggerSecret } from "../../model/records.ts";
import { addAudit } from "./audit_log.ts";
import { listed } from "../list_operation.ts";
import { listPageOf } from "./lists.ts";
import { beginRemoval } from "./removals.ts";
import { bytes, integer, RECORDS, sealedOf, text } from "../rows.ts";
import type { ChangeOptions, ListOptions, Page } from "../store.ts";
import { all, alone, get, type Row, run, type Sql, sql, type Work } from "../work.ts";

/** Of keys or secrets. */
const MAX_LIVE = 2;

const LOCK = sql((d) => `SELECT id FROM workflow_trigger WHERE id = ? ${d.lock()}`);
const KEYS = sql((d) => `SELECT * FROM trigger_key WHERE ${d.among("trigger_id")} ORDER BY seq DESC`);
const SECRETS = sql((d) => `SELECT * FROM trigger_secret WHERE ${d.among("trigger_id")} ORDER BY seq DESC`);

/** Creates a trigger with its keys and secrets; false when the name is taken. */
export function* createTrigger(trigger: Trigger, audit: AuditEntry): Work<boolean> {
  if ((yield* RECORDS.triggers.insert(trigger, {}, "ON CONFLICT (name) DO NOTHING")) === 0) return false;
  for (const key of trigger.keys.toReversed()) yield* insertKey(trigger.id, key);
  for (const secret of trigger.secrets?.toReversed() ?? []) yield* insertSecret(trigger.id, secret);
  yield* addAudit(audit);
  return true;
}

/** A trigger by its id. */
export function* findTrigger(id: string): Work<Trigger | undefined> {
  return (yield* triggersOf(yield* all("SELECT * FROM workflow_trigger WHERE id = ?", id)))[0];
}

/** A trigger by its id, or else by its name. */
export function* findTriggerByIdOrName(idOrName: string): Work<Trigger | undefined> {
  const rows = yield* all("SELECT * FROM workflow_trigger WHERE id = ? OR name = ?", idOrName, idOrName);
  const ofId = rows.filter((row) => text(row, "id") === idOrName);
  return (yield* triggersOf(ofId.length > 0 ? ofId : rows))[0];
}

/** The triggers of a workflow. */
export interface TriggersOfWorkflow {
  readonly count: number;
  /** The first by name. */
  readonly first: readonly Pick<Trigger, "id" | "name" | "enabled">[];
}

const OF_WORKFLOWS = sql((d) =>
  `SELECT id, name, workflow, enabled, count FROM (
     SELECT id, name, workflow, enabled, row_number() OVER (PARTITION BY workflow ORDER BY name) AS place,
       count(*) OVER (PARTITION BY workflow) AS count
     FROM workflow_trigger WHERE ${d.among("workflow")}) AS numbered
   WHERE place <= ? ORDER BY name`
);

/** The triggers that start workflows, by the names of the workflows; at most `max` of each. */
export function* triggersOfWorkflows(
  workflows: readonly string[],
  max: number,
): Work<ReadonlyMap<string, TriggersOfWorkflow>> {
  const groups = Map.groupBy(yield* all(OF_WORKFLOWS, workflows, max), (row) => text(row, "workflow"));
  return new Map([...groups].map(([workflow, rows]) => [workflow, {
    count: rows[0] === undefined ? 0 : integer(rows[0], "count"),
    first: rows.map((row) => ({
      id: text(row, "id"),
      name: text(row, "name"),
      enabled: integer(row, "enabled") !== 0,
    })),
  }]));
}

/** Triggers, newest first. */
export function listTriggers(options: ListOptions): Work<Page<Trigger>> {
  return listPageOf("triggers", options, triggersOf);
}

function* triggersOf(rows: readonly Row[]): Work<readonly Trigger[]> {
  if (rows.length === 0) return [];
  const keys = yield* byTrigger(KEYS, rows);
  const secrets = yield* byTrigger(SECRETS, rows.filter((row) => row["verify"] !== null));
  return rows.map((row) => {
    const id = text(row, "id");
    return triggerOf(row, { keys: keys.get(id), secrets: secrets.get(id) });
  });
}

function* byTrigger(statement: Sql, rows: readonly Row[]): Work<ReadonlyMap<string, readonly Row[]>> {
  if (rows.length === 0) return new Map();
  const found = yield* all(statement, rows.map((row) => text(row, "id")));
  return Map.groupBy(found, (row) => text(row, "trigger_id"));
}

function triggerOf(
  row: Row,
  { keys = [], secrets = [] }: {
    readonly keys?: readonly Row[] | undefined;
    readonly secrets?: readonly Row[] | undefined;
  },
): Trigger {
  const trigger = {
    ...RECORDS.triggers.read(row),
    keys: keys.map((key) => RECORDS.triggerKeys.read(key)),
  };
  return trigger.verify === undefined ? trigger : { ...trigger, secrets: secrets.map(secretOf) };
}

function secretOf(row: Row): TriggerSecret {
  return { ...RECORDS.triggerSecrets.read(row), sealed: sealedOf(row) };
}

const FIND_SIGNED = `
  SELECT workflow_trigger.*, secret.id AS secret_id, secret.key_id AS secret_key_id, secret.bytes AS secret_bytes,
    secret.created_at AS secret_created_at
  FROM workflow_trigger LEFT JOIN trigger_secret AS secret ON secret.trigger_id = workflow_trigger.id
  WHERE workflow_trigger.name = ? AND workflow_trigger.verify IS NOT NULL ORDER BY secret.seq DESC`;

/** The trigger of a name whose calls are signed, in one round trip, as each such call needs it. */
export function* findSignedTrigger(name: string): Work<Trigger | undefined> {
  const rows = yield* alone(all(FIND_SIGNED, name));
  const secrets = rows.filter((row) => row["secret_id"] !== null).map(joinedSecret);
  return rows[0] && triggerOf(rows[0], { secrets });
}

function joinedSecret(row: Row): Row {
  return {
    id: text(row, "secret_id"),
    key_id: text(row, "secret_key_id"),
    bytes: bytes(row, "secret_bytes"),
    created_at: integer(row, "secret_created_at"),
  };
}

const FIND_KEYS = sql((d) => `
  SELECT workflow_trigger.*, found.id AS found_id, found.hash AS found_hash, own.id AS own_id, own.hash AS own_hash,
    own.last_four AS own_last_four, own.created_at AS own_created_at
  FROM trigger_key AS found JOIN workflow_trigger ON workflow_trigger.id = found.trigger_id
    JOIN trigger_key AS own ON own.trigger_id = found.trigger_id
  WHERE ${d.among("found.hash")} ORDER BY own.seq DESC`);

/** A key of a trigger, and the trigger with all its keys. */
export interface KnownTriggerKey {
  readonly trigger: Trigger;
  readonly keyId: string;
}

/** The trigger of a key by the key's hash, in one round trip, as each call of a trigger needs it. */
export const findTriggerKey = listed<readonly [hash: string], KnownTriggerKey | undefined>({
  *work(calls) {
    const rows = yield* alone(all(FIND_KEYS, [...new Set(calls.map(([hash]) => hash))]));
    const groups = Map.groupBy(rows, (row) => text(row, "found_hash"));
    const found = new Map([...groups].map(([hash, group]) => [hash, knownKeyOf(group)]));
    return calls.map(([hash]) => found.get(hash));
  },
});

function knownKeyOf(rows: readonly Row[]): KnownTriggerKey | undefined {
  const [row] = rows;
  return row && { trigger: triggerOf(row, { keys: rows.map(ownKey) }), keyId: text(row, "found_id") };
}

function ownKey(row: Row): Row {
  return {
    id: text(row, "own_id"),
    hash: text(row, "own_hash"),
    last_four: text(row, "own_last_four"),
    created_at: integer(row, "own_created_at"),
  };
}

/** Changes a trigger and returns it. */
export function* editTrigger(
  id: string,
  edit: TriggerEdit,
  { now, audit }: ChangeOptions,
): Work<Trigger | undefined> {
  if ((yield* RECORDS.triggers.update(id, { ...edit, updatedAt: now })) === 0) return undefined;
  yield* addAudit(audit);
  return yield* findTrigger(id);
}

/** Adds a key; the oldest of three is removed. */
export function* addTriggerKey(id: string, key: StoredKey, audit: AuditEntry): Work<Trigger | undefined> {
  if ((yield* get(LOCK, id)) === undefined) return undefined;
  yield* insertKey(id, key);
  yield* keepNewest("trigger_key", id);
  yield* addAudit(audit);
  return yield* findTrigger(id);
}

/** Adds a secret; the oldest of three is removed. */
export function* addTriggerSecret(
  id: string,
  secret: TriggerSecret,
  audit: AuditEntry,
): Work<Trigger | undefined> {
  if ((yield* get(LOCK, id)) === undefined) return undefined;
  yield* insertSecret(id, secret);
  yield* keepNewest("trigger_secret", id);
  yield* addAudit(audit);
  return yield* findTrigger(id);
}

/** Revokes a key; false when there is none. */
export function deleteTriggerKey(id: string, keyId: string, audit: AuditEntry): Work<boolean> {
  return deleteFrom("trigger_key", [keyId, id], audit);
}

/** Revokes a secret; false when there is none. */
export function deleteTriggerSecret(id: string, secretId: string, audit: AuditEntry): Work<boolean> {
  return deleteFrom("trigger_secret", [secretId, id], audit);
}

type CredentialTable = "trigger_key" | "trigger_secret";

function* keepNewest(table: CredentialTable, triggerId: string): Work<void> {
  yield* run(
    `DELETE FROM ${table} WHERE trigger_id = ?
       AND seq NOT IN (SELECT seq FROM ${table} WHERE trigger_id = ? ORDER BY seq DESC LIMIT ?)`,
    triggerId,
    triggerId,
    MAX_LIVE,
  );
}

function* deleteFrom(
  table: CredentialTable,
  ids: readonly [id: string, triggerId: string],
  audit: AuditEntry,
): Work<boolean> {
  const deleted = yield* run(`DELETE FROM ${table} WHERE id = ? AND trigger_id = ?`, ...ids);
  if (deleted > 0) yield* addAudit(audit);
  return deleted > 0;
}

/** Removes a trigger with its keys and, in portions, its idempotency keys; its executions stay. False for none. */
export function* deleteTrigger(id: string, audit: AuditEntry): Work<boolean> {
  if ((yield* run("DELETE FROM workflow_trigger WHERE id = ?", id)) === 0) return false;
  const options = { now: audit.at, newId: () => crypto.randomUUID() };
  yield* beginRemoval("idempotency", `trigger:${id}`, options);
  yield* addAudit(audit);
  return true;
}

function* insertKey(triggerId: string, key: StoredKey): Work<void> {
  yield* RECORDS.triggerKeys.insert(key, { trigger_id: triggerId });
}

function* insertSecret(triggerId: string, secret: TriggerSecret): Work<void> {
  const { keyId, bytes } = secret.sealed;
  yield* RECORDS.triggerSecrets.insert(secret, { trigger_id: triggerId, key_id: keyId, bytes });
}
