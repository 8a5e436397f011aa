import {
  choiceSchema,
  closedSchema,
  flagSchema,
  idSchema,
  integerSchema,
  type JsonSchema,
  listSchema,
  objectSchema,
  openSchema,
  schemaOf,
  type SchemaProperties,
  textSchema,
  timeSchema,
} from "../../base/json_schema.ts";
import { MAX_FILTER_PATHS, MAX_FILTER_TEXT, MAX_FILTER_VALUES } from "../model/event_filter.ts";
import { MAX_ENDPOINT_SECRETS } from "../model/records.ts";
import { listParameters, pageAnswer } from "./list_parameters.ts";
import type { AdministrationOperations } from "./operation.ts";
import {
  DELAY_SCHEMA,
  kindSchema,
  kindsSchema,
  lineSchema,
  momentSchema,
  STATIC_HEADER,
} from "./text_forms.ts";

/** Concurrent attempts of an endpoint whose call does not set `concurrency`. */
export const DEFAULT_CONCURRENCY = 4;
/** Most static headers of an endpoint. */
export const MAX_HEADERS = 32;
/** Longest value of a static header. */
export const MAX_HEADER_VALUE = 4_096;
/** Deliveries that one call of `recover` opens again. */
export const MAX_RECOVERED = 10_000;

const PATTERNS = listSchema(
  kindsSchema("A kind, a prefix such as `agent.*`, or `*`."),
  "Kinds of events that the endpoint receives. Default for a new endpoint: `*`.",
  { minItems: 1, maxItems: 100 },
);
const EXAMPLE_ID = "2a408522-2e64-4252-85b6-a125e9aea5da";
const EXAMPLE_TIME = "2026-11-22T02:43:02.047Z";

const FILTER = {
  propertyNames: {
    maxLength: MAX_FILTER_TEXT,
    pattern: "^[^.\\u0000-\\u001f\\u007f-\\u009f]+(?:\\.[^.\\u0000-\\u001f\\u007f-\\u009f]+)*$",
  },
  additionalProperties: {
    type: "array",
    items: {
      anyOf: [
        // The bound is that of the JSON, which takes two characters for a quote or a backslash.
        {
          type: "string",
          maxLength: MAX_FILTER_TEXT - 2,
          pattern: '^[^"\\\\\\u0000-\\u001f\\u007f-\\u009f]*$',
        },
        lineSchema("A text.", { maxLength: MAX_FILTER_TEXT / 2 - 1 }),
        { type: ["number", "boolean", "null"] },
      ],
    },
    minItems: 1,
    maxItems: MAX_FILTER_VALUES,
  },
  minProperties: 1,
  maxProperties: MAX_FILTER_PATHS,
} as const satisfies JsonSchema;

const SETTABLE: SchemaProperties = {
  events: PATTERNS,
  description: lineSchema("Free-text description."),
  headers: {
    type: ["object", "null"],
    additionalProperties: {
      type: "string",
      maxLength: MAX_HEADER_VALUE,
      pattern: "^[!-~](?:[\\t -~]*[!-~])?$",
    },
    propertyNames: { pattern: STATIC_HEADER },
    maxProperties: MAX_HEADERS,
    description:
      "Static headers of every delivery, by name. Weir encrypts the values and never returns them. `null` removes all headers.",
  },
  concurrency: integerSchema(
    `Maximum number of attempts in flight. Default for a new endpoint: ${DEFAULT_CONCURRENCY}.`,
    {
      minimum: 1,
      maximum: 100,
    },
  ),
  timeoutMs: {
    type: ["integer", "null"],
    minimum: 1,
    maximum: 600_000,
    description: "Timeout of one attempt in milliseconds; `null` or absent means `WEBHOOK_TIMEOUT`.",
  },
  standardWebhooks: flagSchema(
    "Whether deliveries include the headers of Standard Webhooks. Default for a new endpoint: `true`.",
  ),
  filter: {
    type: ["object", "null"],
    ...FILTER,
    description:
      "Values of fields of `data`: the endpoint receives an event only if each path has one of its values. " +
      "`null` removes the filter.",
  },
  enabled: flagSchema("Whether deliveries are attempted. Default for a new endpoint: `true`."),
};
const URL_FIELD = textSchema("Destination URL: https, or http for addresses in `WEBHOOK_ALLOW_CIDRS`.", {
  maxLength: 2_048,
  format: "uri",
});

/** The fields of an endpoint that a call may set. */
export const ENDPOINT_FIELDS: SchemaProperties = { url: URL_FIELD, ...SETTABLE };
/** The fields of a rotation. */
export const ROTATION_FIELDS: SchemaProperties = {
  activeIn: {
    anyOf: [DELAY_SCHEMA, { type: "integer", enum: [0] }],
    description:
      "Delay until Weir signs with the new secret: a duration such as `30m`, at most 30 days, or 0 for immediately; default `24h`.",
  },
};
const RANGE: SchemaProperties = {
  since: momentSchema("The start of the range: a time, or a duration before now such as `48h`."),
  until: momentSchema("The end of the range, exclusive, in the same form; later than `since`."),
};
const DRY_RUN: SchemaProperties = {
  dryRun: flagSchema("Whether to count the deliveries without reopening them; default `false`."),
};
/** The fields of a recovery. */
export const RECOVERY_FIELDS: SchemaProperties = { ...RANGE, ...DRY_RUN };

/** The fields of a dry run: an event to compare with the endpoint. */
export const CHECK_FIELDS: SchemaProperties = {
  event: kindSchema("A kind of event: the check fails unless the endpoint subscribes to it."),
  data: openSchema(
    "A payload: the check fails unless the filter of the endpoint matches. Weir does not send it.",
  ),
};

const ENDPOINT = objectSchema({
  id: idSchema("The identifier."),
  url: URL_FIELD,
  events: PATTERNS,
  description: textSchema("Free-text description."),
  enabled: flagSchema("Whether deliveries are attempted."),
  headers: listSchema({ type: "string" }, "Names of the static headers."),
  concurrency: integerSchema("Maximum number of attempts in flight."),
  standardWebhooks: flagSchema("Whether deliveries include the headers of Standard Webhooks."),
  secrets: listSchema(schemaOf("EndpointSecret"), "Signing secrets, the newest first.", {
    maxItems: MAX_ENDPOINT_SECRETS,
  }),
  createdAt: timeSchema("Creation time."),
  updatedAt: timeSchema("Time of the last change."),
}, {
  timeoutMs: integerSchema("Timeout of one attempt; if absent, `WEBHOOK_TIMEOUT` applies."),
  filter: { type: "object", ...FILTER, description: "Values of fields of `data`; absent for no filter." },
  disabledReason: choiceSchema(
    ["admin", "failing"],
    "If disabled: whether an administrator disabled it, or Weir because its attempts only failed.",
  ),
  disabledAt: timeSchema("If disabled: since when."),
  failingSince: timeSchema(
    "Time of the first failed attempt since the last success; absent if there is none.",
  ),
  consecutiveFailures: integerSchema(
    "Number of failed attempts since the last success; absent if there are none.",
    {
      minimum: 1,
    },
  ),
  attempts: listSchema(
    schemaOf("AttemptStatistics"),
    "Attempts of the last hour and of the last day; a period without attempts is absent.",
    { minItems: 1, maxItems: 2 },
  ),
});

const ATTEMPT_STATISTICS = objectSchema({
  period: choiceSchema(["1h", "24h"], "The last hour or the last day."),
  attempts: integerSchema("Number of attempts."),
  failures: integerSchema("Number of failed attempts."),
  successRate: {
    type: "number",
    minimum: 0,
    maximum: 1,
    description: "Share of successful attempts, from 0 to 1, rounded down to four decimals.",
  },
}, {
  meanMs: integerSchema(
    "Mean time of the attempts with a response, in milliseconds; absent if there are none.",
  ),
  maxMs: integerSchema("The longest of these times, in milliseconds."),
});

const SECRET_TEXT = textSchema("The signing secret. Only this response contains it.", { pattern: "^whsec_" });

/** Schemas of endpoints, by name. */
export const ENDPOINT_SCHEMAS: SchemaProperties = {
  EndpointSecret: objectSchema({
    id: idSchema("The identifier."),
    createdAt: timeSchema("Creation time."),
    activeAt: timeSchema("Time from which Weir signs with this secret."),
    signs: flagSchema("Whether Weir currently signs with this secret."),
    state: choiceSchema(
      ["pending", "signing", "retired"],
      "Whether Weir will sign with this secret, signs with it now, or signed with it before.",
    ),
  }),
  AttemptStatistics: ATTEMPT_STATISTICS,
  Endpoint: ENDPOINT,
  NewEndpoint: closedSchema({ url: URL_FIELD }, SETTABLE),
  EndpointChange: closedSchema({}, ENDPOINT_FIELDS),
  CheckedStage: objectSchema({
    stage: textSchema("`filter`, `url`, `resolve`, `address`, `connect`, `tls` or `sample`."),
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
  concurrency: DEFAULT_CONCURRENCY,
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
        schema: { allOf: [schemaOf("Endpoint"), objectSchema({ secret: SECRET_TEXT })] },
        example: { ...EXAMPLE, secret: SECRET_EXAMPLE },
      },
    },
  },
  "GET /endpoints": {
    id: "listEndpoints",
    role: "read",
    summary: "List endpoints",
    query: listParameters("endpoints"),
    answers: { 200: pageAnswer(schemaOf("Endpoint"), EXAMPLE) },
  },
  "GET /endpoints/:id": {
    id: "getEndpoint",
    role: "read",
    summary: "Show an endpoint",
    answers: { 200: SHOWN },
  },
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
    id: "deleteEndpoint",
    role: "admin",
    summary: "Delete an endpoint",
    description: "Its open deliveries fail with the reason `endpoint_deleted`.",
    answers: { 204: { description: "The endpoint was deleted." } },
  },
  "POST /endpoints/:id/rotate": {
    id: "rotateEndpointSecret",
    role: "admin",
    summary: "Create a new signing secret",
    body: { schema: closedSchema({}, ROTATION_FIELDS), example: { activeIn: "1h" }, isOptional: true },
    answers: {
      200: {
        description: "The new secret.",
        schema: objectSchema({
          secret: SECRET_TEXT,
          activeAt: timeSchema("Time from which Weir signs with this secret."),
        }),
        example: { secret: SECRET_EXAMPLE, activeAt: EXAMPLE_TIME },
      },
    },
    problems: ["too_many_secrets"],
  },
  "POST /endpoints/:id/check": {
    id: "checkEndpoint",
    role: "admin",
    summary: "Send a signed test event to an endpoint",
    description: "With `event` or `data`, or for an endpoint with a filter, the first stage is `filter`.",
    body: {
      schema: closedSchema({}, CHECK_FIELDS),
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
      schema: closedSchema(RANGE, DRY_RUN),
      example: { since: "48h", until: "0s" },
    },
    answers: {
      200: {
        description: "Number of deliveries that a dry run found.",
        schema: objectSchema({ count: integerSchema("The number of deliveries.") }),
        example: { count: 12 },
      },
      202: {
        description: "Number of reopened deliveries.",
        schema: objectSchema({ count: integerSchema("The number of deliveries.") }),
        example: { count: 12 },
      },
    },
  },
} as const satisfies AdministrationOperations;
