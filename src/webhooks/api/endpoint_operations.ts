import {
  flagSchema,
  integerSchema,
  listSchema,
  objectSchema,
  schemaOf,
  type SchemaProperties,
  textSchema,
  timeSchema,
} from "../../base/json_schema.ts";
import {
  ATTEMPT_HOUR,
  ENDPOINT_CHECK,
  ENDPOINT_FIELDS,
  ENDPOINT_RECOVERY,
  ENDPOINT_ROTATION,
  ENDPOINTS,
} from "../resources/endpoint.ts";
import { changeFields, newFields } from "../resources/field.ts";
import { credentialSchemas } from "./endpoint_credentials.ts";
import { bodySchema, innerSchemas, onceSchema, recordSchema } from "./field_schemas.ts";
import type { AdministrationOperations } from "./operation.ts";
import { listOperation, readOperation, removal } from "./resource_operations.ts";

/** Deliveries that one call of `recover` opens again. */
export const MAX_RECOVERED = 10_000;

const EXAMPLE_ID = "2a408522-2e64-4252-85b6-a125e9aea5da";
const EXAMPLE_TIME = "2026-11-22T02:43:02.047Z";

/** Schemas of endpoints, by name. */
export const ENDPOINT_SCHEMAS: SchemaProperties = {
  ...innerSchemas(ENDPOINT_FIELDS),
  ...credentialSchemas(),
  Endpoint: recordSchema(ENDPOINT_FIELDS),
  NewEndpoint: bodySchema(newFields(ENDPOINT_FIELDS), " for a new endpoint"),
  EndpointChange: bodySchema(changeFields(ENDPOINT_FIELDS)),
  AttemptHour: recordSchema(ATTEMPT_HOUR),
  CheckedStage: objectSchema({
    stage: textSchema("`filter`, `url`, `resolve`, `address`, `connect`, `tls`, `token` or `sample`."),
    ok: flagSchema("Whether it succeeded."),
    detail: textSchema("The result, or the reason why the stage failed or was skipped."),
  }),
};

const EXAMPLE = {
  id: EXAMPLE_ID,
  url: "https://app.example/hooks",
  events: ["order.*"],
  description: "",
  enabled: true,
  failingSince: EXAMPLE_TIME,
  consecutiveFailures: 3,
  attempts: [{ period: "1h", attempts: 120, failures: 3, successRate: 0.975, meanMs: 34, maxMs: 810 }],
  headers: [],
  concurrency: 4,
  standardWebhooks: true,
  secrets: [{
    id: "5c0df42a-55f2-4f0f-8f0b-3f0f9a4fbd11",
    createdAt: EXAMPLE_TIME,
    activeAt: EXAMPLE_TIME,
    signs: true,
    state: "signing",
  }],
  createdAt: EXAMPLE_TIME,
  updatedAt: EXAMPLE_TIME,
};
const SECRET_EXAMPLE = "whsec_3bufM8XfCNWX9j6F6/Rn1XYVaEkJq30HqvyNge0mhSo=";
const SHOWN = { description: "The endpoint.", schema: schemaOf("Endpoint"), example: EXAMPLE };

const COUNTED = {
  schema: objectSchema({ count: integerSchema("The number of deliveries.") }),
  example: { count: 12 },
};

/** Operations of `/endpoints`. */
export const ENDPOINT_OPERATIONS = {
  "POST /endpoints": {
    id: "createEndpoint",
    role: "admin",
    summary: "Create an endpoint",
    body: {
      schema: schemaOf("NewEndpoint"),
      example: { url: "https://app.example/hooks", events: ["order.*"] },
    },
    answers: {
      201: {
        description: "The endpoint and its signing secret.",
        schema: { allOf: [schemaOf("Endpoint"), onceSchema(ENDPOINT_FIELDS)] },
        example: { ...EXAMPLE, secret: SECRET_EXAMPLE },
      },
    },
  },
  "GET /endpoints": listOperation(ENDPOINTS, "Endpoint", EXAMPLE),
  "GET /endpoints/:id": readOperation("getEndpoint", "Show an endpoint", SHOWN),
  "GET /endpoints/:id/attempts": readOperation(
    "listEndpointAttempts",
    "Count the attempts of an endpoint by hour",
    {
      description: "The current hour and the 23 before it, without hours that have no attempts.",
      schema: objectSchema({ items: listSchema(schemaOf("AttemptHour"), "The oldest first.") }),
      example: { items: [{ at: EXAMPLE_TIME, succeeded: 117, failed: 3 }] },
    },
  ),
  "PATCH /endpoints/:id": {
    id: "updateEndpoint",
    role: "admin",
    summary: "Change fields of an endpoint",
    body: { schema: schemaOf("EndpointChange"), example: { enabled: true } },
    answers: {
      200: {
        description: "The endpoint. If the call has enabled it, also the number of missed deliveries.",
        schema: {
          allOf: [
            schemaOf("Endpoint"),
            objectSchema({}, {
              missed: integerSchema(
                "If the call has enabled the endpoint: the number of failed deliveries to recover.",
              ),
              missedSince: timeSchema("If there are any: the `since` of the call that recovers them."),
            }),
          ],
        },
        example: { ...EXAMPLE, missed: 12, missedSince: EXAMPLE_TIME },
      },
    },
  },
  "DELETE /endpoints/:id": {
    ...removal("deleteEndpoint", "Delete an endpoint", "The endpoint was deleted."),
    description: "Its open deliveries fail with the reason `endpoint_deleted`.",
  },
  "POST /endpoints/:id/rotate": {
    id: "rotateEndpointSecret",
    role: "admin",
    summary: "Create a new signing secret",
    body: { schema: bodySchema(ENDPOINT_ROTATION), example: { activeIn: "1h" }, isOptional: true },
    answers: {
      200: {
        description: "The new secret.",
        schema: recordSchema({
          secret: { ...ENDPOINT_FIELDS.secret, shown: "always" },
          activeAt: ENDPOINT_FIELDS.secrets.fields.activeAt,
        }),
        example: { secret: SECRET_EXAMPLE, activeAt: EXAMPLE_TIME },
      },
    },
    problems: ["too_many_secrets"],
  },
  "POST /endpoints/:id/test": {
    id: "testEndpoint",
    role: "admin",
    summary: "Send a signed test event to an endpoint",
    description: "With `event` or `data`, or for an endpoint with a filter, the first stage is `filter`.",
    body: {
      schema: bodySchema(ENDPOINT_CHECK),
      example: { event: "order.created", data: { customer: { plan: "pro" } } },
      isOptional: true,
    },
    answers: {
      200: {
        description: "The result, stage by stage.",
        schema: objectSchema({
          url: textSchema("The URL of the endpoint."),
          ok: flagSchema("Whether every stage succeeded."),
          stages: listSchema(schemaOf("CheckedStage"), "Stages in order."),
        }),
        example: {
          url: "https://app.example/hooks",
          ok: false,
          stages: [{ stage: "url", ok: true, detail: "https://app.example" }, {
            stage: "resolve",
            ok: false,
            detail: "getaddrinfo ENOTFOUND app.example",
          }],
        },
      },
    },
  },
  "POST /endpoints/:id/recover": {
    id: "recoverDeliveries",
    role: "admin",
    summary: "Reopen failed deliveries of an endpoint",
    description:
      `Reopens failed deliveries that were created in the range, with a new retry schedule; at most ${MAX_RECOVERED} deliveries, the oldest first.`,
    body: {
      schema: bodySchema(ENDPOINT_RECOVERY),
      example: { since: "48h", until: "0s" },
    },
    answers: {
      200: { ...COUNTED, description: "Number of deliveries that a dry run found." },
      202: { ...COUNTED, description: "Number of reopened deliveries." },
    },
  },
} as const satisfies AdministrationOperations;
