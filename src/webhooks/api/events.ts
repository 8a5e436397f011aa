import { JsonText } from "../../base/json_text.ts";
import { newEventKey } from "../model/keys.ts";
import type { EventKey, WebhookEvent } from "../model/records.ts";
import { EVENT_FIELDS, EVENT_KEY_FIELDS, EVENT_KEYS, EVENT_RECEIVER, EVENTS } from "../resources/event.ts";
import { newFields } from "../resources/field.ts";
import * as events from "../store/operations/events.ts";
import { type EVENT_OPERATIONS, MAX_EXPLAINED } from "./event_operations.ts";
import { readFields } from "./field_reader.ts";
import { lister, queryOf } from "./list_query.ts";
import { found, notFound } from "./problem.ts";
import { whyNotReceived } from "./why.ts";
import { whyOfDelivery } from "./deliveries.ts";
import { listDeliveries } from "../store/operations/deliveries.ts";
import { findEndpoint, listEndpoints } from "../store/operations/endpoints.ts";
import { adminAudit, jsonAnswer, NO_CONTENT, type RoutedCall, type RoutesOf, shownRecord } from "./route.ts";

/** `/event-keys` and `/events`, except for posting an event. */
export const EVENT_ROUTES: RoutesOf<typeof EVENT_OPERATIONS> = {
  "POST /event-keys": createEventKey,
  "GET /event-keys": lister(EVENT_KEYS, events.listEventKeys, shownKey),
  "GET /event-keys/:id": getEventKey,
  "DELETE /event-keys/:id": deleteEventKey,
  "GET /events": lister(EVENTS, events.listEvents, shownEvent),
  "GET /events/:id": getEvent,
  "GET /events/:id/why": explainEvent,
  "DELETE /events/:id/payload": erasePayload,
};

const EVENT_KEY = "this event key";

async function createEventKey(call: RoutedCall) {
  const { name, kinds } = await call.fields(newFields(EVENT_KEY_FIELDS));
  const { key, ...row } = { id: call.newId(), ...newEventKey(call.randomBytes), createdAt: call.clock.now() };
  const eventKey: EventKey = { ...row, name, kinds };
  const audit = adminAudit(call, "event_key.created", `event-key:${row.id}`, { name, kinds });
  await call.store.write(events.createEventKey, eventKey, audit);
  return jsonAnswer(201, { ...shownKey(eventKey), key });
}

async function getEventKey({ id, store }: RoutedCall) {
  return jsonAnswer(200, shownKey(found(await store.read(events.findEventKeyById, id), EVENT_KEY)));
}

async function deleteEventKey(call: RoutedCall) {
  const audit = adminAudit(call, "event_key.deleted", `event-key:${call.id}`);
  if (!await call.store.write(events.deleteEventKey, call.id, audit)) throw notFound(EVENT_KEY);
  return NO_CONTENT;
}

async function getEvent({ id, store }: RoutedCall) {
  const event = found(await store.read(events.findEvent, id), "this event");
  return jsonAnswer(200, { ...shownEvent(event), data: payloadOf(event) });
}

/** One delivery may be all that is known of a deleted endpoint. */
async function explainEvent(call: RoutedCall) {
  const { id: eventId, store, query } = call;
  const { endpointId } = readFields(queryOf(query), EVENT_RECEIVER);
  const event = found(await store.read(events.findEvent, eventId), "this event");
  if (endpointId === undefined) return await explainForAll(event, call);
  const [delivery] = (await store.read(listDeliveries, { limit: 1, endpointId, eventId })).items;
  if (delivery !== undefined) {
    const why = await whyOfDelivery(delivery.id, call);
    return jsonAnswer(200, { eventId, endpointId, deliveryId: delivery.id, why });
  }
  const endpoint = found(await store.read(findEndpoint, endpointId), "this endpoint");
  return jsonAnswer(200, { eventId, endpointId, why: whyNotReceived(event, endpoint) });
}

/** The endpoints with a delivery of the event, then the newest of the others. */
async function explainForAll(event: WebhookEvent, call: RoutedCall) {
  const { store } = call;
  const eventId = event.id;
  const [deliveries, endpoints] = await Promise.all([
    store.read(listDeliveries, { limit: MAX_EXPLAINED, eventId }),
    store.read(listEndpoints, { limit: MAX_EXPLAINED }),
  ]);
  const urls = new Map(endpoints.items.map(({ id, url }) => [id, url]));
  const received = await Promise.all(deliveries.items.map(async ({ id: deliveryId, endpointId }) => {
    const url = urls.get(endpointId) ?? (await store.read(findEndpoint, endpointId))?.url;
    return { endpointId, url, deliveryId, why: await whyOfDelivery(deliveryId, call) };
  }));
  const known = new Set(received.map(({ endpointId }) => endpointId));
  const others = endpoints.items.filter(({ id }) => !known.has(id))
    .map((endpoint) => ({
      endpointId: endpoint.id,
      url: endpoint.url,
      why: whyNotReceived(event, endpoint),
    }));
  const hasMore = (deliveries.nextCursor ?? endpoints.nextCursor) !== undefined;
  return jsonAnswer(200, { eventId, endpoints: [...received, ...others], more: hasMore ? true : undefined });
}

async function erasePayload(call: RoutedCall) {
  const { id, store, clock, newId } = call;
  const audit = adminAudit(call, "event.payload_erased", `event:${id}`);
  const isErased = await store.write(events.erasePayload, id, { now: clock.now(), audit, newId });
  if (!isErased) throw notFound("this event");
  return NO_CONTENT;
}

function shownKey(key: EventKey): Record<string, unknown> {
  return shownRecord(EVENT_KEY_FIELDS, { ...key });
}

function shownEvent({ id, kind, body, createdAt }: WebhookEvent): Record<string, unknown> {
  return shownRecord(EVENT_FIELDS, { id, event: kind, isErased: body === undefined, createdAt });
}

function payloadOf({ body }: WebhookEvent): JsonText | undefined {
  return body === undefined ? undefined : new JsonText(new TextDecoder().decode(body)).get("data");
}
