import {
  choiceSchema,
  closedSchema,
  flagSchema,
  idSchema,
  integerSchema,
  listSchema,
  objectSchema,
  schemaOf,
  type SchemaProperties,
  textSchema,
  timeSchema,
} from "../../base/json_schema.ts";
import { SLOTS_MS } from "../model/schedule.ts";
import {
  ENDPOINT_FILTER,
  EVENT_FILTER,
  EVENT_ID_FILTER,
  listParameters,
  pageAnswer,
  stateFilter,
} from "./list_parameters.ts";
import type { AdministrationOperations } from "./operation.ts";

const STATES = ["attempting", "retrying", "acknowledged", "failed"];
const REASONS = ["exhausted", "endpoint_disabled", "endpoint_deleted", "payload_erased", "backlog_full"];
const RESULTS = ["acknowledged", "failed", "interrupted"];
const ERROR_KINDS = [
  ...["status", "redirect", "timeout", "dns", "connect", "tls", "reset", "protocol"],
  ...["blocked_address", "unsendable", "interrupted"],
];

/** Schemas of deliveries, by name. */
export const DELIVERY_SCHEMAS: SchemaProperties = {
  Delivery: objectSchema({
    id: idSchema("The identifier, also sent in the header `X-Svc-Delivery`."),
    endpointId: idSchema("The endpoint."),
    eventId: idSchema("The event."),
    event: textSchema("The kind of the event."),
    state: choiceSchema(STATES, "The state."),
    slot: integerSchema("Number of used retries of the schedule.", {
      minimum: 0,
      maximum: SLOTS_MS.length,
    }),
    createdAt: timeSchema("Creation time."),
    attempts: listSchema(schemaOf("Attempt"), "Attempts in order."),
    why: textSchema("Explanation of the current state, with the reason of the last failed attempt."),
  }, {
    reason: choiceSchema(REASONS, "Reason of the permanent failure."),
    firstFailureAt: timeSchema("Time of the first failed attempt, at which the retry schedule begins."),
    finishedAt: timeSchema("Time at which it was acknowledged or failed."),
    nextAttemptAt: timeSchema("Time at which the next attempt is due."),
  }),
  Attempt: objectSchema({
    number: integerSchema("Number, from 1.", { minimum: 1 }),
    startedAt: timeSchema("Start time."),
    url: textSchema("The URL of the endpoint at that time."),
    manual: flagSchema("Whether `resend` requested it."),
  }, {
    finishedAt: timeSchema("End time; absent while it runs."),
    result: choiceSchema(RESULTS, "Result."),
    status: integerSchema("The status of the response."),
    errorKind: choiceSchema(ERROR_KINDS, "The kind of the error."),
    error: textSchema("Human-readable error."),
    response: textSchema("The start of the response's body, at most 16 KiB; lists omit it."),
  }),
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

const EMPTY_BODY = { schema: closedSchema({}), example: {}, isOptional: true } as const;
const PAUSE_ANSWER = {
  description: "Whether all deliveries are paused.",
  schema: objectSchema({ paused: flagSchema("Whether all deliveries are paused.") }, {
    since: timeSchema("Start of the pause."),
    by: textSchema("The administrator who paused them."),
  }),
  example: { paused: true, since: EXAMPLE_TIME, by: "admin" },
};

/** Operations of `/deliveries`. */
export const DELIVERY_OPERATIONS = {
  "GET /deliveries": {
    id: "listDeliveries",
    role: "read",
    summary: "List deliveries",
    query: listParameters("deliveries", {
      ...ENDPOINT_FILTER,
      ...EVENT_ID_FILTER,
      ...stateFilter(STATES),
      ...EVENT_FILTER,
    }),
    answers: { 200: pageAnswer(schemaOf("Delivery"), EXAMPLE) },
  },
  "GET /deliveries/pause": {
    id: "getDeliveryPause",
    role: "read",
    summary: "Show whether all deliveries are paused",
    answers: { 200: PAUSE_ANSWER },
  },
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
  "GET /deliveries/:id": {
    id: "getDelivery",
    role: "read",
    summary: "Show a delivery with its attempts",
    answers: { 200: { description: "The delivery.", schema: schemaOf("Delivery"), example: EXAMPLE } },
  },
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
