import { PROBLEM_TYPE, problemDetails } from "../../base/problem_details.ts";
import { CacheError, InvalidRequestError, NoConfigurationError } from "../../ratelimit/errors.ts";
import type { WebhookProblem } from "../../webhooks/api/problem.ts";
import { JsonRequestError } from "./json_reader.ts";

/** Every way to refuse an HTTP request, with its status. Log lines are throttled by kind. */
export const REFUSALS = {
  bad_target: 400,
  malformed: 400,
  invalid: 400,
  unauthorized: 401,
  cross_site: 403,
  unknown_host: 403,
  not_found: 404,
  method_not_allowed: 405,
  timeout: 408,
  conflict: 409,
  too_large: 413,
  unsupported_body: 415,
  head_too_large: 431,
  internal: 500,
  not_implemented: 501,
  no_configuration: 503,
  cache: 503,
  busy: 503,
  shutting_down: 503,
  unknown_version: 505,
} as const;

/** The name of a way to refuse. */
type RefusalKind = keyof typeof REFUSALS;

/** Why a request is refused. */
export interface Refusal {
  readonly kind: RefusalKind;
  /** The problem in a few words, for the caller. */
  readonly reason: string;
  /** The whole sentence; the reason when absent. */
  readonly detail?: string;
  /** The wrong field or parameter, where it is one. */
  readonly field?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The refusal of a parameter that cannot be read. */
export function invalidParameter(field: string, reason: string): Refusal {
  return { kind: "invalid", field, reason, detail: `Cannot read "${field}": ${reason}` };
}

/** The refusal as problem details with the members `field`, `reason` and `requestId`. */
export function problemResponse(refusal: Refusal, requestId: string): Response {
  const { kind, reason, detail = reason, field, headers } = refusal;
  const status = REFUSALS[kind];
  const body = problemDetails(status, { detail, field, reason, requestId });
  return new Response(body, { status, headers: { ...headers, "content-type": PROBLEM_TYPE } });
}

/** The refusal for an error of a decision or of its JSON request; rethrows every other error. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof JsonRequestError) {
    const { field, reason, message } = error;
    return { kind: field === "body" ? "malformed" : "invalid", field, reason, detail: message };
  }
  if (error instanceof InvalidRequestError) {
    return { kind: "invalid", field: error.field, reason: error.message };
  }
  if (error instanceof NoConfigurationError) return { kind: "no_configuration", reason: error.message };
  if (error instanceof CacheError) return { kind: "cache", reason: error.message };
  throw error;
}

/** Answers of `/api/v1` for refused bodies and decisions. */
const API_PROBLEMS: Readonly<
  Partial<Record<RefusalKind, Pick<WebhookProblem, "code"> & Partial<WebhookProblem>>>
> = {
  malformed: { code: "malformed_json" },
  invalid: { code: "invalid_field" },
  timeout: { code: "timeout" },
  too_large: { code: "too_large" },
  unsupported_body: { code: "unsupported_media_type" },
  busy: { code: "webhooks_unavailable" },
  no_configuration: { code: "no_configuration", headers: { "retry-after": "1" } },
  cache: { code: "cache_unavailable", headers: { "retry-after": "1" } },
};

/** The refusal as the problem that `/api/v1` answers for it. */
export function apiProblem({ kind, reason, detail = reason, field, headers }: Refusal): WebhookProblem {
  return { code: "internal", detail, field, headers, ...API_PROBLEMS[kind] };
}
