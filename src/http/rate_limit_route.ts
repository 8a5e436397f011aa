import type { Clock } from "../base/clock.ts";
import type { Caller } from "../ratelimit/counter_cache.ts";
import type { Decision } from "../ratelimit/decision.ts";
import { CacheError, InvalidRequestError, NoConfigurationError } from "../ratelimit/errors.ts";
import type { RateLimitRequest } from "../ratelimit/request.ts";
import { readBody } from "./body.ts";
import { JsonRequestError, readRateLimitRequest, writeDecision } from "./json.ts";
import type { Refusal } from "./problem.ts";
import type { Call, Route } from "./router.ts";

/** What the route works with. */
export interface RateLimitRouteOptions {
  /**
   * Throws `InvalidRequestError` (400), `NoConfigurationError` or `CacheError` (503). The caller may be
   * gone before it is answered.
   */
  decide(request: RateLimitRequest, caller: Caller): Decision | Promise<Decision>;
  readonly clock: Clock;
  /** Called for each body that is not valid JSON of a request and so never reaches `decide`. */
  readonly onMalformed?: () => void;
}

/** Largest body of a request, in bytes. */
export const MAX_BODY_BYTES = 1_048_576;

/** How long a body may take to arrive. */
export const BODY_TIMEOUT_MS = 10_000;

/** `POST /json`: one decision, 200 when it is OK and 429 when it is OVER_LIMIT. */
export function rateLimitRoute(options: RateLimitRouteOptions): Route {
  return { path: "/json", methods: ["POST"], handle: (call) => answer(call, options) };
}

async function answer(call: Call, options: RateLimitRouteOptions): Promise<Response> {
  const bounds = { maxBytes: MAX_BODY_BYTES, timeoutMs: BODY_TIMEOUT_MS, clock: options.clock };
  const body = await readBody(call.request, bounds);
  if (typeof body !== "string") {
    if (body.kind === "malformed") options.onMalformed?.();
    return call.refuse(body);
  }
  try {
    const decision = await options.decide(readRateLimitRequest(body), callerOf(call));
    const status = decision.overallCode === "OVER_LIMIT" ? 429 : 200;
    return new Response(writeDecision(decision), { status, headers: { "content-type": "application/json" } });
  } catch (error) {
    if (error instanceof JsonRequestError) options.onMalformed?.();
    const refusal = refusalOf(error);
    if (refusal === undefined) throw error;
    return call.refuse(refusal);
  }
}

/** The runtime makes the signal of a request when it is first asked for, so it is asked for late. */
function callerOf({ request }: Call): Caller {
  return {
    get gone() {
      return request.signal.aborted;
    },
  };
}

/** How an error of the decision is answered; undefined for one that nobody expects. */
function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof JsonRequestError) {
    const { field, reason, message } = error;
    return { kind: field === "body" ? "malformed" : "invalid", field, reason, detail: message };
  }
  if (error instanceof InvalidRequestError) {
    const { field, message } = error;
    return { kind: "invalid", ...(field === undefined ? {} : { field }), reason: message };
  }
  if (error instanceof NoConfigurationError) return { kind: "no_configuration", reason: error.message };
  if (error instanceof CacheError) return { kind: "cache", reason: error.message };
  return undefined;
}
