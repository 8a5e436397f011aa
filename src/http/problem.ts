/** Every way to refuse an HTTP request, with its status. Each kind is logged on its own. */
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
export type RefusalKind = keyof typeof REFUSALS;

/** Why a request is not answered. */
export interface Refusal {
  readonly kind: RefusalKind;
  /** What is wrong, in a few words, for the caller. */
  readonly reason: string;
  /** The whole sentence; the reason when absent. */
  readonly detail?: string;
  /** Which field or parameter is wrong, where it is one. */
  readonly field?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The reason phrases of refusals, by status. */
export const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  413: "Content Too Large",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  501: "Not Implemented",
  503: "Service Unavailable",
  505: "HTTP Version Not Supported",
};

/**
 * The refusal as problem details (RFC 9457) with the members `field`, `reason` and `requestId`. The type is
 * `about:blank`, because the status and the reason say it all.
 */
export function problemResponse(refusal: Refusal, requestId: string): Response {
  const status = REFUSALS[refusal.kind];
  const body = JSON.stringify({
    type: "about:blank",
    title: TITLES[status],
    status,
    detail: refusal.detail ?? refusal.reason,
    field: refusal.field,
    reason: refusal.reason,
    requestId,
  });
  const headers = { ...refusal.headers, "content-type": "application/problem+json" };
  return new Response(body, { status, headers });
}
