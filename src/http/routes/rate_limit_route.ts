import type { Clock } from "../../base/clock.ts";
import type { Caller } from "../../ratelimit/decision/counter_cache.ts";
import type { Decision } from "../../ratelimit/decision.ts";
import type { RateLimitRequest } from "../../ratelimit/request.ts";
import { decodeText } from "../../wire/text.ts";
import { readBody } from "../server/body.ts";
import { readRateLimitRequest, writeDecision } from "./rate_limit_json.ts";
import { JsonRequestError } from "../server/json_reader.ts";
import { refusalOf } from "../server/problem.ts";
import type { Call, Route } from "../server/router.ts";

/** Options of `rateLimitRoute`. */
export interface RateLimitRouteOptions {
  /** Throws `InvalidRequestError` (400), `NoConfigurationError` or `CacheError` (503). */
  decide(request: RateLimitRequest, caller: Caller): Decision | Promise<Decision>;
  readonly clock: Clock;
  /** Called for each body that is not valid JSON of a request and so never reaches `decide`. */
  readonly onMalformed?: () => void;
}

/** Largest body of a request, in bytes. */
export const MAX_BODY_BYTES = 1_048_576;

/** Timeout of receiving a body. */
export const BODY_TIMEOUT_MS = 10_000;

/** Headers of the response itself, whatever the settings name the headers of a limit. */
const OWN_HEADERS = ["connection", "content-length", "date", "transfer-encoding"];

/** `POST /json`: one decision, 200 when it is OK and 429 when it is OVER_LIMIT. */
export function rateLimitRoute(options: RateLimitRouteOptions): Route {
  return { path: "/json", methods: ["POST"], handle: (call) => answer(call, options) };
}

async function answer(call: Call, options: RateLimitRouteOptions): Promise<Response> {
  const { clock } = options;
  const body = await readBody(call.request, {
    maxBytes: MAX_BODY_BYTES,
    timeoutMs: BODY_TIMEOUT_MS,
    clock,
    decode: decodeText,
  });
  if (typeof body !== "string") {
    if (body.kind === "malformed") options.onMalformed?.();
    return call.refuse(body);
  }
  try {
    const decision = await options.decide(readRateLimitRequest(body), callerOf(call));
    const status = decision.overallCode === "OVER_LIMIT" ? 429 : 200;
    return new Response(writeDecision(decision), { status, headers: headersOf(decision) });
  } catch (error) {
    if (error instanceof JsonRequestError) options.onMalformed?.();
    return call.refuse(refusalOf(error));
  }
}

/** The headers that a proxy would add, and after a refusal the delay in which each refused descriptor has passed. */
function headersOf({ overallCode, statuses, responseHeadersToAdd }: Decision): Headers {
  const headers = new Headers();
  if (overallCode === "OVER_LIMIT") {
    const refused = statuses.filter(({ code }) => code === "OVER_LIMIT");
    headers.set(
      "retry-after",
      `${Math.max(1, ...refused.map(({ secondsUntilReset = 1 }) => secondsUntilReset))}`,
    );
  }
  for (const { key, value } of responseHeadersToAdd) {
    if (!OWN_HEADERS.includes(key.toLowerCase())) headers.set(key, value);
  }
  headers.set("content-type", "application/json");
  return headers;
}

/** Lazy, because the signal of a request is created when it is first read. */
function callerOf({ request }: Call): Caller {
  return {
    get cancelled() {
      return request.signal.aborted;
    },
  };
}
