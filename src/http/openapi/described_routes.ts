import type { SchemaProperties } from "../../base/json_schema.ts";
import { DELIVERY_OPERATIONS, DELIVERY_SCHEMAS } from "../../webhooks/api/delivery_operations.ts";
import { ENDPOINT_OPERATIONS, ENDPOINT_SCHEMAS } from "../../webhooks/api/endpoint_operations.ts";
import {
  EVENT_CALL_OPERATIONS,
  EVENT_OPERATIONS,
  EVENT_SCHEMAS,
} from "../../webhooks/api/event_operations.ts";
import {
  AUDIT_OPERATIONS,
  EXECUTION_OPERATIONS,
  EXECUTION_SCHEMAS,
} from "../../webhooks/api/execution_operations.ts";
import { REPLAY_OPERATIONS, REPLAY_SCHEMAS } from "../../webhooks/api/replay_operations.ts";
import { WORKFLOW_OPERATIONS, WORKFLOW_SCHEMAS } from "../../webhooks/api/workflow_operations.ts";
import type { Credential, Operation, Operations } from "../../webhooks/api/operation.ts";
import type { ProblemCode } from "../../webhooks/api/problem_codes.ts";
import {
  TRIGGER_CALL_OPERATIONS,
  TRIGGER_OPERATIONS,
  TRIGGER_SCHEMAS,
} from "../../webhooks/api/trigger_operations.ts";
import { CALLER_OPERATIONS, DEBUG_OPERATIONS, DEBUG_SCHEMAS, PORT_OPERATIONS } from "./port_operations.ts";
import { QUOTA_SCHEMAS } from "./quota_schema.ts";
import { COUNTER_OPERATIONS, DECISION_OPERATIONS, RATE_LIMIT_SCHEMAS } from "./rate_limit_operations.ts";

/** A method of a path, and everything that is known of it. */
export interface DescribedRoute {
  readonly method: string;
  /** As in an OpenAPI document, such as `/api/v1/endpoints/{id}`. */
  readonly path: string;
  readonly tag: string;
  readonly port: "http" | "debug";
  readonly operation: Operation;
  /** Any of these opens it; none are required when empty. */
  readonly credentials: readonly Credential[];
  readonly problems: readonly ProblemCode[];
  /** Refusals without a code, by status. */
  readonly refusals: Readonly<Record<number, string>>;
}

/** Groups of operations, and what they are for. */
export const TAGS = {
  decisions: "Rate limit decisions",
  health: "Health of the process",
  administration: "The caller of the administration API",
  counters: "Counters of rate limits; requires an administration token",
  endpoints: "Receivers of webhooks; requires an administration token and `WEBHOOK_STORE`",
  triggers: "Triggers of workflows",
  events: "Events and event keys",
  deliveries: "Deliveries of events to endpoints",
  replays: "New deliveries of past events, and retries of deliveries",
  executions: "Runs of workflows",
  audit: "The audit log",
  debug: "The debug port",
} as const;

/** Schemas of requests and answers, by name. */
export const SCHEMAS: SchemaProperties = {
  ...RATE_LIMIT_SCHEMAS,
  ...ENDPOINT_SCHEMAS,
  ...TRIGGER_SCHEMAS,
  ...EVENT_SCHEMAS,
  ...DELIVERY_SCHEMAS,
  ...REPLAY_SCHEMAS,
  ...EXECUTION_SCHEMAS,
  ...WORKFLOW_SCHEMAS,
  ...QUOTA_SCHEMAS,
  ...DEBUG_SCHEMAS,
};

const API = "/api/v1";
/** Of every call with a body. */
const BODY_PROBLEMS: readonly ProblemCode[] = [
  "malformed_json",
  "timeout",
  "too_large",
  "unsupported_media_type",
];
/** Of every call that the webhook service answers. */
const SERVICE_PROBLEMS: readonly ProblemCode[] = [
  "internal",
  "store_unavailable",
  "webhooks_unavailable",
  "shutting_down",
];
const COUNTER_PROBLEMS: readonly ProblemCode[] = [
  ...["unauthorized", "not_found", "invalid_field", "no_configuration", "cache_unavailable"] as const,
  ...BODY_PROBLEMS,
];
const DECISION_REFUSALS = {
  400: "The body is not JSON, a field is unknown or invalid, or a limit of a call is exceeded",
  408: "The body did not arrive within 10 s",
  413: "The body is larger than 1048576 bytes",
  415: "`Content-Encoding` is not gzip, or the charset of `Content-Type` is unknown",
  503: "No rules are loaded, the cache cannot be reached, or the service is stopping",
};
const UNAUTHORIZED = { 401: "`DEBUG_TOKEN` is set and the bearer token is missing or wrong" };
const DEBUG_REFUSALS: Readonly<Record<string, Readonly<Record<number, string>>>> = {
  "GET /explain": {
    400: "A parameter is missing, unknown or invalid",
    503: "No rules are loaded",
  },
  "GET /debug/pprof/profile": {
    400: "`seconds` is invalid",
    409: "Another CPU profile is being recorded",
  },
};

/** Facts about the routes of a group. */
interface Described {
  readonly base?: string;
  readonly port?: "http" | "debug";
  readonly problems?: (operation: Operation) => readonly ProblemCode[];
  readonly refusals?: (route: string) => Readonly<Record<number, string>>;
}

const WEBHOOKS: Described = { base: API, problems: webhookProblems };

/** Every route of the HTTP APIs. */
export const DESCRIBED_ROUTES: readonly DescribedRoute[] = [
  ...routes("decisions", DECISION_OPERATIONS, { refusals: () => DECISION_REFUSALS }),
  ...routes("health", PORT_OPERATIONS),
  ...routes("administration", CALLER_OPERATIONS, {
    base: API,
    problems: () => ["unauthorized", "not_found"],
  }),
  ...routes("counters", COUNTER_OPERATIONS, { base: API, problems: () => COUNTER_PROBLEMS }),
  ...routes("endpoints", ENDPOINT_OPERATIONS, WEBHOOKS),
  ...routes("triggers", { ...TRIGGER_OPERATIONS, ...TRIGGER_CALL_OPERATIONS }, WEBHOOKS),
  ...routes("events", { ...EVENT_OPERATIONS, ...EVENT_CALL_OPERATIONS }, WEBHOOKS),
  ...routes("deliveries", DELIVERY_OPERATIONS, WEBHOOKS),
  ...routes("replays", REPLAY_OPERATIONS, WEBHOOKS),
  ...routes("executions", EXECUTION_OPERATIONS, WEBHOOKS),
  ...routes("audit", AUDIT_OPERATIONS, WEBHOOKS),
  ...routes("triggers", WORKFLOW_OPERATIONS, WEBHOOKS),
  ...routes("debug", DEBUG_OPERATIONS, {
    port: "debug",
    refusals: (route) => ({ ...(route === "GET /" ? {} : UNAUTHORIZED), ...DEBUG_REFUSALS[route] }),
  }),
];

function routes(
  tag: keyof typeof TAGS,
  operations: Operations,
  { base = "", port = "http", problems, refusals }: Described = {},
): DescribedRoute[] {
  return Object.entries(operations).map(([route, operation]) => {
    const [method = "", path = ""] = route.split(" ");
    return {
      method,
      path: `${base}${path.replace(/:(\w+)/g, "{$1}")}`,
      tag,
      port,
      operation,
      credentials: operation.credentials ?? [port === "debug" ? "debug" : "admin"],
      problems: [...problems?.(operation) ?? [], ...prefixProblems(route), ...roleProblems(operation)],
      refusals: refusals?.(route) ?? {},
    };
  });
}

/** Of calls that take shortened identifiers. */
function prefixProblems(route: string): readonly ProblemCode[] {
  return /:(?:id|keyId|secretId)\b|^GET \/(?:deliveries|replays)$/.test(route) &&
      !route.includes("/workflows/")
    ? ["ambiguous_id"]
    : [];
}

function roleProblems(operation: Operation): readonly ProblemCode[] {
  return "role" in operation && operation.role === "admin" ? ["role_not_allowed"] : [];
}

function webhookProblems({ body, query, problems = [], credentials }: Operation): readonly ProblemCode[] {
  if (credentials?.length === 0) return [...problems, ...SERVICE_PROBLEMS];
  const isInput = credentials?.includes("trigger") === true;
  const ofBody: readonly ProblemCode[] = body === undefined
    ? []
    : [...BODY_PROBLEMS, "not_an_object", "too_deep"];
  const ofFields: readonly ProblemCode[] = (body === undefined || isInput) && query === undefined
    ? []
    : ["invalid_field"];
  return [...ofBody, ...ofFields, ...problems, "unauthorized", "not_found", ...SERVICE_PROBLEMS];
}
