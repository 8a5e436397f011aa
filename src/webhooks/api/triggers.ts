import { type JsonObject, stringifyJson } from "../../base/exact_json.ts";
import { timeText } from "../../base/rfc3339.ts";
import { newTriggerKey } from "../model/keys.ts";
import type { StoredKey, Trigger, TriggerLimit } from "../model/records.ts";
import * as triggers from "../store/triggers.ts";
import { idempotencyKeyProblem } from "./calls.ts";
import { FieldReader } from "./field_reader.ts";
import { lister } from "./list_query.ts";
import { found, invalidField, invalidIdempotencyKey, notFound, refusal } from "./problem.ts";
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
} from "./trigger_operations.ts";

const NAME = /^[a-z0-9][a-z0-9-]{0,63}$/;

/** `/triggers`. */
export const TRIGGER_ROUTES: RoutesOf<typeof TRIGGER_OPERATIONS> = {
  "POST /triggers": createTrigger,
  "GET /triggers": lister(TRIGGER_OPERATIONS["GET /triggers"].query, triggers.listTriggers, shown),
  "GET /triggers/:id": getTrigger,
  "PATCH /triggers/:id": editTrigger,
  "DELETE /triggers/:id": deleteTrigger,
  "POST /triggers/:id/call": callTrigger,
  "POST /triggers/:id/rotate": rotateKey,
  "DELETE /triggers/:id/keys/:keyId": deleteKey,
};

async function createTrigger(call: RoutedCall) {
  const fields = call.fields(NEW_TRIGGER_FIELDS);
  const name = fields.text("name");
  if (!NAME.test(name)) {
    throw invalidField("name", "expected 1 to 64 of a to z, 0 to 9 and -, not beginning with -");
  }
  const workflow = workflowName(fields.text("workflow"));
  const sent = sentTrigger(fields);
  const { key, ...stored } = newKey(call);
  const trigger: Trigger = {
    id: call.newId(),
    ...{ name, workflow },
    enabled: sent.enabled ?? true,
    requireIdempotencyKey: sent.requireIdempotencyKey ?? false,
    onBodyMismatch: sent.onBodyMismatch ?? "replay",
    limit: sent.limit,
    onLimitError: sent.onLimitError ?? "deny",
    createdAt: stored.createdAt,
    updatedAt: stored.createdAt,
    keys: [stored],
  };
  const audit = adminAudit(call, "trigger.created", `trigger:${trigger.id}`, { name, workflow });
  if (!await call.store.write(triggers.createTrigger, trigger, audit)) {
    throw refusal("name_taken", `Cannot create trigger "${name}": the name is taken`, { field: "name" });
  }
  return jsonAnswer(201, { ...shown(trigger), key });
}

async function getTrigger({ id, store }: RoutedCall) {
  return triggerAnswer(await store.read(triggers.findTrigger, id));
}

async function editTrigger(call: RoutedCall) {
  const { id, store, clock } = call;
  const fields = call.fields(TRIGGER_CHANGE_FIELDS);
  const workflow = fields.textIfGiven("workflow");
  const sent = sentTrigger(fields);
  const edit = {
    ...sent,
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
  if (!await call.store.write(triggers.deleteTrigger, call.id, audit)) throw notFound("this trigger");
  return NO_CONTENT;
}

async function callTrigger(call: RoutedCall) {
  const { id, store, idempotencyKey } = call;
  const body = stringifyJson(call.fields(CALLED_TRIGGER_FIELDS).object("data"));
  const problem = idempotencyKey === undefined ? undefined : idempotencyKeyProblem(idempotencyKey);
  if (problem !== undefined) throw invalidIdempotencyKey(problem);
  const trigger = found(await store.read(triggers.findTriggerByIdOrName, id), "this trigger");
  return await call.callTrigger(trigger, {
    ...{ idempotencyKey, body },
    audit: (executionId) => {
      const { name } = trigger;
      return adminAudit(call, "trigger.called", `trigger:${trigger.id}`, { name, executionId });
    },
  });
}

async function rotateKey(call: RoutedCall) {
  call.fields({}, { optional: true });
  const { key, ...stored } = newKey(call);
  const details = { keyId: stored.id, lastFour: stored.lastFour };
  const audit = adminAudit(call, "trigger.rotated", `trigger:${call.id}`, details);
  const trigger = await call.store.write(triggers.addTriggerKey, call.id, stored, audit);
  const { keys } = found(trigger, "this trigger");
  return jsonAnswer(200, { key, keyId: stored.id, keys: keys.map(shownKey) });
}

async function deleteKey(call: RoutedCall) {
  const { id, keyId, store } = call;
  const audit = adminAudit(call, "trigger.key_revoked", `trigger:${id}`, { keyId });
  if (!await store.write(triggers.deleteTriggerKey, id, keyId, audit)) throw notFound("this key");
  return NO_CONTENT;
}

function sentTrigger(fields: FieldReader) {
  return {
    requireIdempotencyKey: fields.flagIfGiven("requireIdempotencyKey"),
    onBodyMismatch: fields.choiceIfGiven("onBodyMismatch", ON_BODY_MISMATCH),
    limit: fields.isNull("limit") ? undefined : limitOf(fields.objectIfGiven("limit")),
    onLimitError: fields.choiceIfGiven("onLimitError", ON_LIMIT_ERROR),
    enabled: fields.flagIfGiven("enabled"),
  };
}

function limitOf(object: JsonObject | undefined): TriggerLimit | undefined {
  if (object === undefined) return undefined;
  const fields = new FieldReader(object, LIMIT_FIELDS, "limit.");
  const domain = fields.text("domain");
  if (domain === "") throw invalidField("limit.domain", "expected a text that is not empty");
  const descriptors = fields.objects("descriptors");
  return {
    domain,
    descriptors: descriptors.map((one, index) => descriptorOf(one, `limit.descriptors[${index}]`)),
  };
}

function descriptorOf(object: JsonObject, field: string): Record<string, string> {
  const entries = Object.entries(object);
  if (entries.length === 0 || entries.length > MAX_ENTRIES) {
    throw invalidField(field, `expected 1 to ${MAX_ENTRIES} keys with their values`);
  }
  return Object.fromEntries(entries.map(([key, value]) => {
    if (key === "") throw invalidField(field, "expected a key that is not empty");
    if (typeof value !== "string") throw invalidField(`${field}.${key}`, "expected a text");
    const problem = limitValueProblem(value);
    if (problem !== undefined) throw invalidField(`${field}.${key}`, problem);
    return [key, value];
  }));
}

function workflowName(name: string): string {
  if (name !== "" && name.length <= 128 && !/\s/.test(name)) return name;
  throw invalidField("workflow", "expected the name of a workflow");
}

function newKey({ newId, clock, randomBytes }: RoutedCall): StoredKey & { readonly key: string } {
  return { id: newId(), ...newTriggerKey(randomBytes), createdAt: clock.now() };
}

function triggerAnswer(trigger: Trigger | undefined) {
  return jsonAnswer(200, shown(found(trigger, "this trigger")));
}

function shown(trigger: Trigger): Record<string, unknown> {
  const { createdAt, updatedAt, keys, ...rest } = trigger;
  return {
    ...rest,
    keys: keys.map(shownKey),
    createdAt: timeText(createdAt),
    updatedAt: timeText(updatedAt),
  };
}

/** Of a key never more than its last four characters. */
function shownKey({ id, lastFour, createdAt }: StoredKey): Record<string, unknown> {
  return { id, lastFour, createdAt: timeText(createdAt) };
}
