import {
  adminAudit,
  type AdministrationParts,
  type AdministrationRoute,
  jsonAnswer,
  NO_CONTENT,
  type RoutedCall,
} from "./route.ts";
import { eventPatternProblem } from "../model/event.ts";
import { FieldReader } from "./field_reader.ts";
import { type JsonObject, parseJson } from "../../base/exact_json.ts";
import { newEventKey } from "../model/keys.ts";
import { listOptionsOf, pageOf } from "./list_query.ts";
import { invalidField, notFound } from "./problem.ts";
import type { EventKey, WebhookEvent } from "../model/records.ts";
import type { WebhookAnswer } from "./calls.ts";
import { timeText } from "../../base/rfc3339.ts";
import * as events from "../store/events.ts";

const MAX_NAME = 128;
const MAX_KINDS = 100;

/** `/event-keys` and `/events`, but for posting one. */
export function eventRoutes(parts: AdministrationParts): AdministrationRoute[] {
  return [
    { method: "POST", pattern: "/event-keys", handle: (call) => createEventKey(call, parts) },
    { method: "GET", pattern: "/event-keys", handle: (call) => listEventKeys(call, parts) },
    { method: "DELETE", pattern: "/event-keys/:id", handle: (call) => deleteEventKey(call, parts) },
    { method: "GET", pattern: "/events", handle: (call) => listEvents(call, parts) },
    { method: "GET", pattern: "/events/:id", handle: (call) => getEvent(call, parts) },
    { method: "DELETE", pattern: "/events/:id/payload", handle: (call) => erasePayload(call, parts) },
  ];
}

async function createEventKey({ object }: RoutedCall, parts: AdministrationParts): Promise<WebhookAnswer> {
  const fields = new FieldReader(object(), ["name", "kinds"]);
  const name = fields.text("name", { maxLength: MAX_NAME });
  if (name.trim() === "") throw invalidField("name", "a text that is not empty is wanted");
  const kinds = fields.texts("kinds", { max: MAX_KINDS, problem: eventPatternProblem });
  const { key, hash, lastFour } = await newEventKey(parts.randomBytes);
  const row: EventKey = { id: parts.newId(), hash, lastFour, createdAt: parts.clock.now(), name, kinds };
  await parts.store.write(
    events.createEventKey,
    row,
    adminAudit(parts, "event_key.created", `event-key:${row.id}`, { name, kinds }),
  );
  return jsonAnswer(201, { ...shownKey(row), key });
}

async function listEventKeys({ query }: RoutedCall, { store }: AdministrationParts): Promise<WebhookAnswer> {
  return jsonAnswer(
    200,
    await pageOf(store.read(events.listEventKeys, listOptionsOf(query, ["since", "until"])), shownKey),
  );
}

async function deleteEventKey({ ids: [id = ""] }: RoutedCall, parts: AdministrationParts) {
  const isDeleted = await parts.store.write(
    events.deleteEventKey,
    id,
    adminAudit(parts, "event_key.deleted", `event-key:${id}`),
  );
  if (!isDeleted) throw notFound("this event key");
  return NO_CONTENT;
}

async function listEvents({ query }: RoutedCall, { store }: AdministrationParts): Promise<WebhookAnswer> {
  const options = listOptionsOf(query, ["event", "since", "until"]);
  return jsonAnswer(200, await pageOf(store.read(events.listEvents, options), shownEvent));
}

async function getEvent(
  { ids: [id = ""] }: RoutedCall,
  { store }: AdministrationParts,
): Promise<WebhookAnswer> {
  const event = await store.read(events.findEvent, id);
  if (event === undefined) throw notFound("this event");
  return jsonAnswer(200, { ...shownEvent(event), data: payloadOf(event) });
}

async function erasePayload(
  { ids: [id = ""] }: RoutedCall,
  parts: AdministrationParts,
): Promise<WebhookAnswer> {
  const { store, clock, newId } = parts;
  const audit = adminAudit(parts, "event.payload_erased", `event:${id}`);
  if (!await store.write(events.erasePayload, id, { now: clock.now(), audit, newId })) {
    throw notFound("this event");
  }
  return NO_CONTENT;
}

function shownKey({ id, name, kinds, lastFour, createdAt }: EventKey): Record<string, unknown> {
  return { id, name, kinds, lastFour, createdAt: timeText(createdAt) };
}

function shownEvent({ id, kind, body, createdAt }: WebhookEvent): Record<string, unknown> {
  return { id, event: kind, isErased: body === undefined, createdAt: timeText(createdAt) };
}

function payloadOf({ body }: WebhookEvent): unknown {
  if (body === undefined) return undefined;
  return (parseJson(new TextDecoder().decode(body)) as JsonObject)["data"];
}
