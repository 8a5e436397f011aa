import {
  idSchema,
  objectSchema,
  schemaOf,
  type SchemaProperties,
  textSchema,
} from "../../base/json_schema.ts";
import { DELIVERIES, DELIVERY_FIELDS, DELIVERY_PAUSE, DELIVERY_REQUESTS } from "../resources/delivery.ts";
import { innerSchemas, recordSchema } from "./field_schemas.ts";
import type { AdministrationOperations } from "./operation.ts";
import { EMPTY_BODY, listOperation, readOperation } from "./resource_operations.ts";

/** Schemas of deliveries, by name. */
export const DELIVERY_SCHEMAS: SchemaProperties = {
  ...innerSchemas(DELIVERY_FIELDS),
  Delivery: recordSchema(DELIVERY_FIELDS),
  ...innerSchemas(DELIVERY_REQUESTS),
  DeliveryRequests: recordSchema(DELIVERY_REQUESTS),
};

const EXAMPLE_ID = "0d0c3b79-4b0c-4b43-9a0f-4c6f7a6f2c10";
const EXAMPLE_TIME = "2026-11-22T02:44:50.287Z";
const EXAMPLE = {
  id: EXAMPLE_ID,
  endpointId: "2a408522-2e64-4252-85b6-a125e9aea5da",
  eventId: "aaf86af6-b4c3-4a29-8fe8-bcac696ef9f1",
  event: "agent.reply.completed",
  state: "acknowledged",
  slot: 0,
  createdAt: EXAMPLE_TIME,
  finishedAt: "2026-11-22T02:44:50.301Z",
  attempts: [{
    number: 1,
    startedAt: "2026-11-22T02:44:50.290Z",
    finishedAt: "2026-11-22T02:44:50.301Z",
    url: "https://app.example/hooks",
    manual: false,
    result: "acknowledged",
    status: 204,
  }],
  why: "delivered: the endpoint returned 2xx at 2026-11-22T02:44:50.301Z",
};

const PAUSE_ANSWER = {
  description: "Whether all deliveries are paused.",
  schema: recordSchema(DELIVERY_PAUSE),
  example: { paused: true, since: EXAMPLE_TIME, by: "admin" },
};

const SHOWN = { description: "The delivery.", schema: schemaOf("Delivery"), example: EXAMPLE };

/** Operations of `/deliveries`. */
export const DELIVERY_OPERATIONS = {
  "GET /deliveries": listOperation(DELIVERIES, "Delivery", EXAMPLE),
  "GET /deliveries/pause": readOperation(
    "getDeliveryPause",
    "Show whether all deliveries are paused",
    PAUSE_ANSWER,
  ),
  "POST /deliveries/pause": {
    id: "pauseDeliveries",
    role: "admin",
    summary: "Pause all deliveries",
    description: "No instance of the store starts a new attempt until deliveries are resumed. " +
      "Attempts in flight end normally. Weir still accepts events.",
    body: EMPTY_BODY,
    answers: { 200: PAUSE_ANSWER },
  },
  "POST /deliveries/resume": {
    id: "resumeDeliveries",
    role: "admin",
    summary: "Resume all deliveries",
    body: EMPTY_BODY,
    answers: { 200: { ...PAUSE_ANSWER, example: { paused: false } } },
  },
  "GET /deliveries/:id": readOperation("getDelivery", "Show a delivery with its attempts", SHOWN),
  "GET /deliveries/:id/requests": readOperation(
    "getDeliveryRequests",
    "Show the requests of a delivery as they were sent",
    {
      description: "The requests.",
      schema: schemaOf("DeliveryRequests"),
      example: {
        body: '{"event":"agent.reply.completed","data":{"conversation":"c-7"}}',
        requests: [{
          number: 1,
          url: "https://app.example/hooks",
          headers: {
            "content-type": "application/json",
            "x-svc-event": "agent.reply.completed",
            "x-svc-delivery": EXAMPLE_ID,
            "x-svc-timestamp": "1795315490",
            "x-svc-signature": "sha256=46288437613044114d21e7fba79837c12336202f4f85b1e1cb24f3ae0a1a3a5b",
          },
        }],
      },
    },
  ),
  "POST /deliveries/:id/resend": {
    id: "resendDelivery",
    role: "admin",
    summary: "Request one more attempt of a delivery",
    body: EMPTY_BODY,
    answers: {
      202: {
        description: "The attempt was requested.",
        schema: objectSchema({ id: idSchema("The delivery.") }, {
          why: textSchema("Why the attempt waits, if the endpoint is disabled or deliveries are paused."),
        }),
        example: { id: EXAMPLE_ID },
      },
    },
    problems: ["endpoint_deleted", "payload_erased"],
  },
} as const satisfies AdministrationOperations;
