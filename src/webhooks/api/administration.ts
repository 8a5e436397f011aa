import type { AdministrationCall, WebhookAnswer } from "./calls.ts";
import { DELIVERY_ROUTES } from "./deliveries.ts";
import { DELIVERY_OPERATIONS } from "./delivery_operations.ts";
import { ENDPOINT_OPERATIONS } from "./endpoint_operations.ts";
import { ENDPOINT_ROUTES } from "./endpoints.ts";
import { EVENT_OPERATIONS } from "./event_operations.ts";
import { EVENT_ROUTES } from "./events.ts";
import { AUDIT_OPERATIONS, EXECUTION_OPERATIONS } from "./execution_operations.ts";
import { AUDIT_ROUTES, EXECUTION_ROUTES } from "./executions.ts";
import { jsonObjectOf, readFields } from "./field_reader.ts";
import { wholeBody, wholeQuery, wholeSegments } from "./id_prefix.ts";
import type { AdministrationOperations } from "./operation.ts";
import { notFound, roleProblem, WebhookRefusal, wrongMethod } from "./problem.ts";
import { REPLAY_OPERATIONS } from "./replay_operations.ts";
import { REPLAY_ROUTES } from "./replays.ts";
import type { AdministrationParts, RoutesOf } from "./route.ts";
import { TRIGGER_OPERATIONS } from "./trigger_operations.ts";
import { TRIGGER_ROUTES } from "./triggers.ts";
import { WORKFLOW_OPERATIONS } from "./workflow_operations.ts";
import { WORKFLOW_ROUTES } from "./workflows.ts";

const ROUTES = [
  ...routesOf(ENDPOINT_OPERATIONS, ENDPOINT_ROUTES),
  ...routesOf(TRIGGER_OPERATIONS, TRIGGER_ROUTES),
  ...routesOf(EVENT_OPERATIONS, EVENT_ROUTES),
  ...routesOf(DELIVERY_OPERATIONS, DELIVERY_ROUTES),
  ...routesOf(REPLAY_OPERATIONS, REPLAY_ROUTES),
  ...routesOf(EXECUTION_OPERATIONS, EXECUTION_ROUTES),
  ...routesOf(AUDIT_OPERATIONS, AUDIT_ROUTES),
  ...routesOf(WORKFLOW_OPERATIONS, WORKFLOW_ROUTES),
];

function routesOf<O extends AdministrationOperations>(operations: O, handlers: RoutesOf<O>) {
  return Object.entries(operations).map(([route, { role }]) => {
    const [method = "", pattern = ""] = route.split(" ");
    const identifiers = pattern.split(":").length - 1;
    return { method, role, pattern: pattern.split("/"), identifiers, handle: handlers[route as keyof O] };
  });
}

/** Answers a call about records. Refusals are thrown as `WebhookRefusal`. */
export async function administer(
  { administrator, method, path, query, idempotencyKey, body }: AdministrationCall,
  parts: AdministrationParts,
): Promise<WebhookAnswer> {
  // The path of earlier releases.
  const segments = path.replace(/^(\/endpoints\/[^/]+)\/check$/, "$1/test").split("/");
  const matches = ROUTES.filter(({ pattern }) => isMatch(pattern, segments));
  if (matches.length === 0) throw notFound("this path");
  // A literal path takes precedence over one with an identifier.
  const fewest = Math.min(...matches.map(({ identifiers }) => identifiers));
  const found = matches.filter(({ identifiers }) => identifiers === fewest);
  const match = found.find((route) => route.method === method);
  if (match === undefined) throw new WebhookRefusal(wrongMethod(found.map((route) => route.method)));
  const problem = roleProblem(administrator, match.role);
  if (problem !== undefined) throw new WebhookRefusal(problem);
  const whole = await wholeSegments(match.pattern, segments, parts.store);
  const [id = "", keyId = ""] = whole.filter((_, index) => match.pattern[index]?.startsWith(":"));
  return await match.handle({
    ...parts,
    administrator,
    id,
    keyId,
    query: await wholeQuery(new URLSearchParams(query), parts.store),
    idempotencyKey,
    body: body ?? "",
    async fields(fields, options) {
      const isAbsent = body === undefined && options?.optional === true;
      const object = isAbsent ? {} : await wholeBody(jsonObjectOf(body ?? ""), fields, parts.store);
      return readFields(object, fields, { text: body, now: parts.clock.now() });
    },
  });
}

function isMatch(pattern: readonly string[], segments: readonly string[]): boolean {
  return pattern.length === segments.length &&
    pattern.every((part, index) => part.startsWith(":") ? segments[index] !== "" : part === segments[index]);
}
