import type { AdministrationCall, WebhookAnswer } from "./calls.ts";
import { DELIVERY_ROUTES } from "./deliveries.ts";
import { ENDPOINT_ROUTES } from "./endpoints.ts";
import { EVENT_ROUTES } from "./events.ts";
import { EXECUTION_ROUTES } from "./executions.ts";
import { FieldReader, jsonObjectOf } from "./field_reader.ts";
import { notFound, refusal, type WebhookRefusal } from "./problem.ts";
import type { AdministrationParts } from "./route.ts";
import { TRIGGER_ROUTES } from "./triggers.ts";
import { WORKFLOW_ROUTES } from "./workflows.ts";

const ROUTES = Object.entries({
  ...ENDPOINT_ROUTES,
  ...TRIGGER_ROUTES,
  ...EVENT_ROUTES,
  ...DELIVERY_ROUTES,
  ...EXECUTION_ROUTES,
  ...WORKFLOW_ROUTES,
}).map(([route, handle]) => {
  const [method = "", pattern = ""] = route.split(" ");
  return { method, pattern: pattern.split("/"), handle };
});

/** Answers a call about records. Refusals are thrown as `WebhookRefusal`. */
export async function administer(
  { method, path, query, idempotencyKey, body }: AdministrationCall,
  parts: AdministrationParts,
): Promise<WebhookAnswer> {
  const segments = path.split("/");
  const found = ROUTES.filter(({ pattern }) => isMatch(pattern, segments));
  if (found.length === 0) throw notFound("this path");
  const match = found.find((route) => route.method === method);
  if (match === undefined) throw wrongMethod(found.map((route) => route.method));
  const [id = "", keyId = ""] = segments.filter((_, index) => match.pattern[index]?.startsWith(":"));
  return await match.handle({
    ...parts,
    ...{ id, keyId, query: new URLSearchParams(query), idempotencyKey },
    fields(schemas, options) {
      const isAbsent = body === undefined && options?.optional === true;
      return new FieldReader(isAbsent ? {} : jsonObjectOf(body ?? ""), schemas);
    },
  });
}

function isMatch(pattern: readonly string[], segments: readonly string[]): boolean {
  return pattern.length === segments.length &&
    pattern.every((part, index) => part.startsWith(":") ? segments[index] !== "" : part === segments[index]);
}

function wrongMethod(methods: readonly string[]): WebhookRefusal {
  const allow = methods.join(", ");
  const detail = `Cannot answer this method: expected ${allow}`;
  return refusal("method_not_allowed", detail, { headers: { allow } });
}
