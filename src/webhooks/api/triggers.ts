import type { JsonObject } from "../../base/exact_json.ts";
import { JsonText, memberText } from "../../base/json_text.ts";
import { timeText } from "../../base/rfc3339.ts";
import { newEndpointSecret, newTriggerKey } from "../model/keys.ts";
import { readTriggerLimit, triggerLimitJson } from "../model/limit_call.ts";
import type { StoredKey, Trigger, TriggerSecret, TriggerVerification } from "../model/records.ts";
import * as triggers from "../store/triggers.ts";
import { FieldReader } from "./field_reader.ts";
import { lister } from "./list_query.ts";
import { found, idempotencyKeyRefusal, invalidField, notFound, refusal } from "./problem.ts";
import { adminAudit, jsonAnswer, NO_CONTENT, type RoutedCall, type RoutesOf } from "./route.ts";
import { limitValueProblem } from "./trigger_limit.ts";
import {
  CALLED_TRIGGER_FIELDS,
  LIMIT_FIELDS,
  MAX_ENTRIES,
  NEW_TRIGGER_FIELDS,
  ON_BODY_MISMATCH,
  ON_LIMIT_ERROR,
  TRIGGER_CHANGE_FIELDS,
  TRIGGER_OPERATIONS,
  TRIGGER_ROTATION_FIELDS,
} from "./trigger_operations.ts";
import { changedVerification, sentSecret, sentVerification } from "./trigger_verification.ts";

const NAME = /^[a-z0-9][a-z0-9-]{0,63}$/;

/** `/triggers`. */
export const TRIGGER_ROUTES: RoutesOf<typeof TRIGGER_OPERATIONS> = {
  "POST /triggers": createTrigger,
  "GET /triggers": lister(TRIGGER_OPERATIONS["GET /triggers"].query, triggers.listTriggers, shown),
  "GET /triggers/:id": getTrigger,
  "PATCH /triggers/:id": editTrigger,
  "DELETE /triggers/:id": deleteTrigger,
  "POST /triggers/:id/call": callTrigger,
  "POST /triggers/:id/rotate": rotate,
  "DELETE /triggers/:id/keys/:keyId": deleteKey,
  "DELETE /triggers/:id/secrets/:secretId": deleteSecret,
};

async function createTrigger(call: RoutedCall) {
  const fields = call.fields(NEW_TRIGGER_FIELDS);
  const name = fields.text("name");
  if (!NAME.test(name)) {
    throw invalidField("name", "expected 1 to 64 of a to z, 0 to 9 and -, not beginning with -");
  }
  const workflow = workflowName(fields.text("workflow"));
  const sent = sentTrigger(fields, call);
  const { shownOnce, ...credentials } = await newCredentials(call, sentVerification(fields));
  const now = call.clock.now();
  const trigger: Trigger = {
    id: call.newId(),
    ...{ name, workflow },
    enabled: sent.enabled ?? true,
    requireIdempotencyKey: sent.requireIdempotencyKey ?? false,
    onBodyMismatch: sent.onBodyMismatch ?? "replay",
    limit: sent.limit,
    onLimitError: sent.onLimitError ?? "deny",
    createdAt: now,
    updatedAt: now,
    ...credentials,
  };
  const scheme = trigger.verify?.scheme;
  const details = { name, workflow, ...(scheme === undefined ? {} : { scheme }) };
  const audit = adminAudit(call, "trigger.created", `trigger:${trigger.id}`, details);
  if (!await call.store.write(triggers.createTrigger, trigger, audit)) {
    throw refusal("name_taken", `Cannot create trigger "${name}": the name is taken`, { field: "name" });
  }
  return jsonAnswer(201, { ...shown(trigger), ...shownOnce });
}

async function getTrigger(call: RoutedCall) {
  return triggerAnswer(await triggerOf(call));
}

async function editTrigger(call: RoutedCall) {
  const { id, store, clock } = call;
  const fields = call.fields(TRIGGER_CHANGE_FIELDS);
  const workflow = fields.textIfGiven("workflow");
  const sent = sentTrigger(fields, call);
  const verify = changedVerification(fields);
  if (verify !== undefined) await checkScheme(verify, call);
  const edit = {
    ...{ ...sent, verify },
    workflow: workflow === undefined ? undefined : workflowName(workflow),
    limit: fields.isNull("limit") ? null : sent.limit,
  };
  const changed = Object.entries(edit).filter(([, value]) => value !== undefined).map(([name]) => name);
  if (changed.length === 0) return await getTrigger(call);
  const audit = adminAudit(call, "trigger.changed", `trigger:${id}`, {
    fields: changed,
    ...(edit.workflow === undefined ? {} : { workflow: edit.workflow }),
    ...(edit.enabled === undefined ? {} : { enabled: edit.enabled }),
  });
  return triggerAnswer(await store.write(triggers.editTrigger, id, edit, { now: clock.now(), audit }));
}

async function deleteTrigger(call: RoutedCall) {
  const audit = adminAudit(call, "trigger.deleted", `trigger:${call.id}`);
  if (!await call.store.write(triggers.deleteTrigger, call.id, audit)) throw notFound(TRIGGER);
  return NO_CONTENT;
}

async function callTrigger(call: RoutedCall) {
  const { id, store, idempotencyKey } = call;
  call.fields(CALLED_TRIGGER_FIELDS).object("data");
  const body = memberText(call.body, "data");
  const refused = idempotencyKeyRefusal(idempotencyKey);
  if (refused !== undefined) throw refused;
  const trigger = found(await store.read(triggers.findTriggerByIdOrName, id), TRIGGER);
  return await call.callTrigger(trigger, {
    ...{ idempotencyKey, body },
    audit: (executionId) => {
      const { name } = trigger;
      return adminAudit(call, "trigger.called", `trigger:${trigger.id}`, { name, executionId });
    },
  });
}

/** Neither a trigger with keys nor the secrets of another scheme fit a scheme that was not there at its creation. */
async function checkScheme({ scheme }: TriggerVerification, call: RoutedCall): Promise<void> {
  const { verify } = await triggerOf(call);
  if (verify === undefined) throw invalidField("verify", "the calls of this trigger show a key");
  if (verify.scheme === scheme) return;
  throw invalidField("verify.scheme", `it cannot be changed, and is ${verify.scheme}`);
}

async function rotate(call: RoutedCall) {
  const fields = call.fields(TRIGGER_ROTATION_FIELDS, { optional: true });
  const { verify } = await triggerOf(call);
  if (verify !== undefined) return await rotateSecret(call, sentSecret(fields, verify));
  if (fields.textIfGiven("secret") === undefined) return await rotateKey(call);
  throw invalidField("secret", "the calls of this trigger show a key");
}

async function rotateKey(call: RoutedCall) {
  const { key, ...stored } = newKey(call);
  const details = { keyId: stored.id, lastFour: stored.lastFour };
  const audit = adminAudit(call, "trigger.rotated", `trigger:${call.id}`, details);
  const { keys } = found(await call.store.write(triggers.addTriggerKey, call.id, stored, audit), TRIGGER);
  return jsonAnswer(200, { key, keyId: stored.id, keys: keys.map(shownKey) });
}

async function rotateSecret(call: RoutedCall, given: string | undefined) {
  const { row, shownOnce } = await newSecret(call, given);
  const audit = adminAudit(call, "trigger.rotated", `trigger:${call.id}`, { secretId: row.id });
  const trigger = found(await call.store.write(triggers.addTriggerSecret, call.id, row, audit), TRIGGER);
  return jsonAnswer(200, {
    ...shownOnce,
    secretId: row.id,
    secrets: trigger.secrets?.map(shownSecret),
  });
}

async function deleteKey(call: RoutedCall) {
  const { id, keyId, store } = call;
  const audit = adminAudit(call, "trigger.key_revoked", `trigger:${id}`, { keyId });
  if (!await store.write(triggers.deleteTriggerKey, id, keyId, audit)) throw notFound("this key");
  return NO_CONTENT;
}

async function deleteSecret(call: RoutedCall) {
  const { id, keyId: secretId, store } = call;
  const audit = adminAudit(call, "trigger.secret_revoked", `trigger:${id}`, { secretId });
  if (!await store.write(triggers.deleteTriggerSecret, id, secretId, audit)) throw notFound("this secret");
  return NO_CONTENT;
}

function sentTrigger(fields: FieldReader, { body }: RoutedCall) {
  return {
    requireIdempotencyKey: fields.flagIfGiven("requireIdempotencyKey"),
    onBodyMismatch: fields.choiceIfGiven("onBodyMismatch", ON_BODY_MISMATCH),
    limit: fields.isNull("limit") ? undefined : limitOf(fields.objectIfGiven("limit"), body),
    onLimitError: fields.choiceIfGiven("onLimitError", ON_LIMIT_ERROR),
    enabled: fields.flagIfGiven("enabled"),
  };
}

/** The limit as it was sent, since an object would not keep the order of keys. */
function limitOf(object: JsonObject | undefined, body: string): string | undefined {
  if (object === undefined) return undefined;
  const fields = new FieldReader(object, LIMIT_FIELDS, "limit.");
  if (fields.text("domain") === "") throw invalidField("limit.domain", "expected a text that is not empty");
  for (const [index, descriptor] of fields.objects("descriptors").entries()) {
    checkDescriptor(descriptor, `limit.descriptors[${index}]`);
  }
  return triggerLimitJson(readTriggerLimit(memberText(body, "limit")));
}

function checkDescriptor(object: JsonObject, field: string): void {
  const entries = Object.entries(object);
  if (entries.length === 0 || entries.length > MAX_ENTRIES) {
    throw invalidField(field, `expected 1 to ${MAX_ENTRIES} keys with their values`);
  }
  for (const [key, value] of entries) {
    if (key === "") throw invalidField(field, "expected a key that is not empty");
    if (typeof value !== "string") throw invalidField(`${field}.${key}`, "expected a text");
    const problem = limitValueProblem(value);
    if (problem !== undefined) throw invalidField(`${field}.${key}`, problem);
  }
}

function workflowName(name: string): string {
  if (name !== "" && name.length <= 128 && !/\s/.test(name)) return name;
  throw invalidField("workflow", "expected the name of a workflow");
}

/** A key, or the first secret of a trigger whose calls are signed, and what is shown of it only now. */
async function newCredentials(call: RoutedCall, signed: ReturnType<typeof sentVerification>) {
  if (signed === undefined) {
    const { key, ...stored } = newKey(call);
    return { keys: [stored], shownOnce: { key } };
  }
  const { row, shownOnce } = await newSecret(call, signed.secret);
  return { keys: [], verify: signed.verify, secrets: [row], shownOnce };
}

/** A secret to store; one that was generated is shown. */
async function newSecret(
  { newId, clock, randomBytes, seal }: RoutedCall,
  given: string | undefined,
): Promise<{ readonly row: TriggerSecret; readonly shownOnce: { readonly secret?: string } }> {
  const secret = given ?? newEndpointSecret(randomBytes);
  const row = { id: newId(), sealed: await seal(secret), createdAt: clock.now() };
  return { row, shownOnce: given === undefined ? { secret } : {} };
}

function newKey({ newId, clock, randomBytes }: RoutedCall): StoredKey & { readonly key: string } {
  return { id: newId(), ...newTriggerKey(randomBytes), createdAt: clock.now() };
}

const TRIGGER = "this trigger";

async function triggerOf({ id, store }: RoutedCall): Promise<Trigger> {
  return found(await store.read(triggers.findTrigger, id), TRIGGER);
}

function triggerAnswer(trigger: Trigger | undefined) {
  return jsonAnswer(200, shown(found(trigger, TRIGGER)));
}

function shown(trigger: Trigger): Record<string, unknown> {
  const { createdAt, updatedAt, keys, secrets, ...rest } = trigger;
  return {
    ...rest,
    limit: rest.limit === undefined ? undefined : new JsonText(rest.limit),
    keys: keys.map(shownKey),
    secrets: secrets?.map(shownSecret),
    createdAt: timeText(createdAt),
    updatedAt: timeText(updatedAt),
  };
}

/** Of a key never more than its last four characters. */
function shownKey({ id, lastFour, createdAt }: StoredKey): Record<string, unknown> {
  return { id, lastFour, createdAt: timeText(createdAt) };
}

/** Of a secret nothing at all: a given one may be short. */
function shownSecret({ id, createdAt }: TriggerSecret): Record<string, unknown> {
  return { id, createdAt: timeText(createdAt) };
}
