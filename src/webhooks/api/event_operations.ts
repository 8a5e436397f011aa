import {
  flagSchema,
  idSchema,
  integerSchema,
  listSchema,
  objectSchema,
  openSchema,
  schemaOf,
  type SchemaProperties,
  textSchema,
} from "../../base/json_schema.ts";
import {
  EVENT_FIELDS,
  EVENT_KEY_FIELDS,
  EVENT_KEYS,
  EVENT_RECEIVER,
  EVENTS,
  POSTED_EVENT,
} from "../resources/event.ts";
import { newFields } from "../resources/field.ts";
import { bodySchema, onceSchema, recordSchema, sentSchemas } from "./field_schemas.ts";
import type { AdministrationOperations } from "./operation.ts";
import { IDEMPOTENCY_KEY, REPLAY_HEADERS } from "./trigger_operations.ts";
import { listOperation, readOperation, removal } from "./resource_operations.ts";

/** Schemas of events and event keys, by name. */
export const EVENT_SCHEMAS: SchemaProperties = {
  Event: recordSchema(EVENT_FIELDS),
  NewEvent: bodySchema(POSTED_EVENT),
  EventKey: recordSchema(EVENT_KEY_FIELDS),
  NewEventKey: bodySchema(newFields(EVENT_KEY_FIELDS)),
};

const EXAMPLE_ID = "aaf86af6-b4c3-4a29-8fe8-bcac696ef9f1";
const EXAMPLE_TIME = "2026-11-22T02:44:50.287Z";
const EVENT = { id: EXAMPLE_ID, event: "agent.reply.completed", isErased: false, createdAt: EXAMPLE_TIME };
const EVENT_KEY = {
  id: "5e17afe5-980d-4ff7-84aa-7543d79c8373",
  name: "desk",
  kinds: ["agent.*"],
  lastFour: "ulpM",
  createdAt: EXAMPLE_TIME,
};

/** Endpoints without a delivery that one call explains. */
export const MAX_EXPLAINED = 100;

const RECEIVED = {
  endpointId: idSchema("The endpoint, if the call names one."),
  deliveryId: idSchema("The delivery; absent if there is none."),
  why: textSchema("The state of the delivery, or the reason why there is none."),
};

/** Operations of `/event-keys` and `/events`, except for posting an event. */
export const EVENT_OPERATIONS = {
  "POST /event-keys": {
    id: "createEventKey",
    role: "admin",
    summary: "Create an event key",
    body: { schema: schemaOf("NewEventKey"), example: { name: "desk", kinds: ["agent.*"] } },
    answers: {
      201: {
        description: "The event key, including its secret text.",
        schema: {
          allOf: [schemaOf("EventKey"), onceSchema(EVENT_KEY_FIELDS)],
        },
        example: { ...EVENT_KEY, key: "svce_1AoZvSOK8XFo2tF1yAkZtZejcoWSj5EtgQpBOsLulpM" },
      },
    },
  },
  "GET /event-keys": listOperation(EVENT_KEYS, "EventKey", EVENT_KEY),
  "GET /event-keys/:id": readOperation("getEventKey", "Show an event key", {
    description: "The event key.",
    schema: schemaOf("EventKey"),
    example: EVENT_KEY,
  }),
  "DELETE /event-keys/:id": removal("deleteEventKey", "Delete an event key", "The event key was deleted."),
  "GET /events": listOperation(EVENTS, "Event", EVENT),
  "GET /events/:id": readOperation("getEvent", "Show an event with its payload", {
    description: "The event.",
    schema: {
      allOf: [
        schemaOf("Event"),
        objectSchema({}, { data: openSchema("The payload; absent after it was erased.") }),
      ],
    },
    example: { ...EVENT, data: { reply: "7" } },
  }),
  "GET /events/:id/why": {
    id: "explainEvent",
    role: "read",
    summary: "Explain which endpoints receive an event",
    description: "For one endpoint, or for the newest endpoints and those with deliveries of the event.",
    query: sentSchemas(EVENT_RECEIVER),
    answers: {
      200: {
        description: "The explanation.",
        schema: objectSchema({
          eventId: idSchema("The event."),
        }, {
          ...RECEIVED,
          endpoints: listSchema(
            objectSchema({ endpointId: RECEIVED.endpointId, why: RECEIVED.why }, {
              url: textSchema("The URL of the endpoint; absent if it was deleted."),
              deliveryId: RECEIVED.deliveryId,
            }),
            `The endpoints, if the call names none; at most ${MAX_EXPLAINED} without a delivery.`,
          ),
          more: flagSchema("Whether there are further endpoints."),
        }),
        example: {
          eventId: EXAMPLE_ID,
          endpointId: "2a408522-2e64-4252-85b6-a125e9aea5da",
          why: 'customer.plan is "free"; the filter expects "pro" or "team"',
        },
      },
    },
  },
  "DELETE /events/:id/payload": {
    ...removal("eraseEventPayload", "Erase the payload of an event", "The payload was erased."),
    description: "Its open deliveries fail with the reason `payload_erased`.",
  },
} as const satisfies AdministrationOperations;

/** Posting an event. */
export const EVENT_CALL_OPERATIONS = {
  "POST /events": {
    id: "postEvent",
    role: "admin",
    summary: "Post an event",
    description: "Served on the HTTP port or `TRIGGER_ADDR`, with an event key or the administration token.",
    credentials: ["event", "admin"],
    headers: IDEMPOTENCY_KEY,
    body: {
      schema: schemaOf("NewEvent"),
      example: { event: "agent.reply.completed", data: { reply: "7" } },
    },
    answers: {
      202: {
        description: "The event is stored and will be delivered.",
        schema: objectSchema({
          id: idSchema("The identifier of the event."),
          deliveries: integerSchema("Number of deliveries, one per subscribed endpoint.", { minimum: 0 }),
        }),
        example: { id: EXAMPLE_ID, deliveries: 1 },
        headers: REPLAY_HEADERS,
      },
    },
    problems: [
      "invalid_idempotency_key",
      "reserved_kind",
      "kind_not_allowed",
      "in_flight",
      "store_full",
      "backlog_full",
    ],
  },
} as const satisfies AdministrationOperations;
