import {
  adminAudit,
  type AdministrationParts,
  type AdministrationRoute,
  jsonAnswer,
  NO_CONTENT,
  type RoutedCall,
} from "./route.ts";
import { FieldReader } from "./field_reader.ts";
import type { JsonObject } from "../../base/exact_json.ts";
import { newTriggerKey } from "../model/keys.ts";
import { listOptionsOf, pageOf } from "./list_query.ts";
import { conflict, invalidField, notFound } from "./problem.ts";
import type { StoredKey, Trigger, TriggerLimit } from "../model/records.ts";
import type { WebhookAnswer } from "./calls.ts";
import { timeText } from "../../base/rfc3339.ts";
import { limitValueProblem } from "./trigger_limit.ts";
import * as triggers from "../store/triggers.ts";

const NAME = /^[a-z0-9][a-z0-9-]{0,63}$/;
const NAME_WANTED = "1 to 64 of a to z, 0 to 9 and -, not beginning with -, are wanted";
const MAX_DESCRIPTORS = 16;
const MAX_ENTRIES = 16;
const EDITABLE = [
  "workflow",
  "requireIdempotencyKey",
  "onBodyMismatch",
  "limit",
  "onLimitError",
  "enabled",
] as const;

/** `/triggers`. */
export function triggerRoutes(parts: AdministrationParts): AdministrationRoute[] {
  return [
    { method: "POST", pattern: "/triggers", handle: (call) => createTrigger(call, parts) },
    { method: "GET", pattern: "/triggers", handle: (call) => listTriggers(call, parts) },
    { method: "GET", pattern: "/triggers/:id", handle: (call) => getTrigger(call, parts) },
    { method: "PATCH", pattern: "/triggers/:id", handle: (call) => editTrigger(call, parts) },
    { method: "DELETE", pattern: "/triggers/:id", handle: (call) => deleteTrigger(call, parts) },
    { method: "POST", pattern: "/triggers/:id/rotate", handle: (call) => rotateKey(call, parts) },
    { method: "DELETE", pattern: "/triggers/:id/keys/:keyId", handle: (call) => deleteKey(call, parts) },
  ];
}

async function createTrigger({ object }: RoutedCall, parts: AdministrationParts): Promise<WebhookAnswer> {
  const fields = new FieldReader(object(), ["name", ...EDITABLE]);
  const name = fields.text("name");
  if (!NAME.test(name)) throw invalidField("name", NAME_WANTED);
  const workflow = workflowName(fields.text("workflow"));
  const sent = sentTrigger(fields);
  const { key, row } = await newKey(parts);
  const now = parts.clock.now();
  const trigger: Trigger = {
    id: parts.newId(),
    name,
    workflow,
    enabled: sent.enabled ?? true,
    requireIdempotencyKey: sent.requireIdempotencyKey ?? false,
    onBodyMismatch: sent.onBodyMismatch ?? "replay",
    limit: sent.limit,
    onLimitError: sent.onLimitError ?? "deny",
    createdAt: now,
    updatedAt: now,
    keys: [row],
  };
  const audit = adminAudit(parts, "trigger.created", `trigger:${trigger.id}`, { name, workflow });
  if (!await parts.store.write(triggers.createTrigger, trigger, audit)) {
    const { problem } = conflict("name_taken", `Cannot make trigger "${name}": the name is taken`);
    throw conflictOn("name", problem.detail);
  }
  return jsonAnswer(201, { ...shown(trigger), key });
}

async function listTriggers({ query }: RoutedCall, { store }: AdministrationParts): Promise<WebhookAnswer> {
  return jsonAnswer(
    200,
    await pageOf(store.read(triggers.listTriggers, listOptionsOf(query, ["since", "until"])), shown),
  );
}

async function getTrigger({ ids: [id = ""] }: RoutedCall, { store }: AdministrationParts) {
  return jsonAnswer(200, shown(found(await store.read(triggers.findTrigger, id))));
}

async function editTrigger({ ids: [id = ""], object }: RoutedCall, parts: AdministrationParts) {
  const fields = new FieldReader(object(), EDITABLE);
  const workflow = fields.textIfGiven("workflow");
  const sent = sentTrigger(fields);
  const edit = {
    ...sent,
    workflow: workflow === undefined ? undefined : workflowName(workflow),
    ...(fields.isNull("limit") ? { limit: null } : sent.limit === undefined ? {} : { limit: sent.limit }),
  };
  const changed = Object.entries(edit).filter(([, value]) => value !== undefined).map(([name]) => name);
  if (changed.length === 0) {
    return jsonAnswer(200, shown(found(await parts.store.read(triggers.findTrigger, id))));
  }
  const audit = adminAudit(parts, "trigger.changed", `trigger:${id}`, {
    fields: changed,
    ...(edit.workflow === undefined ? {} : { workflow: edit.workflow }),
    ...(edit.enabled === undefined ? {} : { enabled: edit.enabled }),
  });
  const trigger = await parts.store.write(triggers.editTrigger, id, edit, { now: parts.clock.now(), audit });
  return jsonAnswer(200, shown(found(trigger)));
}

async function deleteTrigger({ ids: [id = ""] }: RoutedCall, parts: AdministrationParts) {
  const isDeleted = await parts.store.write(
    triggers.deleteTrigger,
    id,
    adminAudit(parts, "trigger.deleted", `trigger:${id}`),
  );
  if (!isDeleted) throw notFound("this trigger");
  return NO_CONTENT;
}

async function rotateKey({ ids: [id = ""], object }: RoutedCall, parts: AdministrationParts) {
  new FieldReader(object({ optional: true }), []);
  const { key, row } = await newKey(parts);
  const details = { keyId: row.id, lastFour: row.lastFour };
  const audit = adminAudit(parts, "trigger.rotated", `trigger:${id}`, details);
  const trigger = found(await parts.store.write(triggers.addTriggerKey, id, row, audit));
  return jsonAnswer(200, { key, keyId: row.id, keys: trigger.keys.map(shownKey) });
}

async function deleteKey({ ids: [id = "", keyId = ""] }: RoutedCall, parts: AdministrationParts) {
  const audit = adminAudit(parts, "trigger.key_revoked", `trigger:${id}`, { keyId });
  if (!await parts.store.write(triggers.deleteTriggerKey, id, keyId, audit)) throw notFound("this key");
  return NO_CONTENT;
}

function found(trigger: Trigger | undefined): Trigger {
  if (trigger === undefined) throw notFound("this trigger");
  return trigger;
}

function sentTrigger(fields: FieldReader) {
  return {
    requireIdempotencyKey: fields.flagIfGiven("requireIdempotencyKey"),
    onBodyMismatch: fields.choiceIfGiven("onBodyMismatch", ["replay", "reject"]),
    limit: fields.isNull("limit") ? undefined : limitOf(fields.objectIfGiven("limit")),
    onLimitError: fields.choiceIfGiven("onLimitError", ["deny", "allow"]),
    enabled: fields.flagIfGiven("enabled"),
  };
}

function limitOf(object: JsonObject | undefined): TriggerLimit | undefined {
  if (object === undefined) return undefined;
  const fields = new FieldReader(object, ["domain", "descriptors"], "limit.");
  const domain = fields.text("domain");
  if (domain === "") throw invalidField("limit.domain", "a text that is not empty is wanted");
  const descriptors = fields.objects("descriptors", { max: MAX_DESCRIPTORS });
  return {
    domain,
    descriptors: descriptors.map((one, index) => descriptorOf(one, `limit.descriptors[${index}]`)),
  };
}

function descriptorOf(object: JsonObject, field: string): Record<string, string> {
  const entries = Object.entries(object);
  if (entries.length === 0 || entries.length > MAX_ENTRIES) {
    throw invalidField(field, `1 to ${MAX_ENTRIES} keys with their values are wanted`);
  }
  return Object.fromEntries(entries.map(([key, value]) => {
    if (key === "") throw invalidField(field, "a key that is not empty is wanted");
    if (typeof value !== "string") throw invalidField(`${field}.${key}`, "a text is wanted");
    const problem = limitValueProblem(value);
    if (problem !== undefined) throw invalidField(`${field}.${key}`, problem);
    return [key, value];
  }));
}

function workflowName(name: string): string {
  if (name !== "" && name.length <= 128 && !/\s/.test(name)) return name;
  throw invalidField("workflow", "the name of a workflow is wanted");
}

function conflictOn(field: string, detail: string) {
  const refusal = conflict("name_taken", detail);
  return Object.assign(refusal, { problem: { ...refusal.problem, field } });
}

async function newKey({ newId, clock, randomBytes }: AdministrationParts) {
  const { key, hash, lastFour } = await newTriggerKey(randomBytes);
  const row: StoredKey = { id: newId(), hash, lastFour, createdAt: clock.now() };
  return { key, row };
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
