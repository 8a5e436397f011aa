import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { CacheError, InvalidRequestError, NoConfigurationError } from "../ratelimit/errors.ts";
import type { CounterState } from "../ratelimit/live_counters.ts";
import type { RateLimitRequest } from "../ratelimit/request.ts";
import { ThrottledLog } from "../telemetry/throttled_log.ts";
import { problemAnswer, type WebhookProblem } from "../webhooks/api/problem.ts";
import type { WebhookAnswer } from "../webhooks/api/calls.ts";
import { bearerTokenOf, isSameToken } from "./bearer_token.ts";
import { readBody } from "./body.ts";
import { JsonRequestError, readRateLimitRequest } from "./json.ts";
import { REFUSALS } from "./problem.ts";
import { BODY_TIMEOUT_MS, MAX_BODY_BYTES } from "./rate_limit_route.ts";
import type { Call, Route } from "./router.ts";

/** The counters behind the routes: both throw what a decision throws. */
export interface Counters {
  peek(request: RateLimitRequest): Promise<CounterState[]>;
  reset(request: RateLimitRequest): Promise<CounterState[]>;
}

/** What the routes work with. */
export interface CounterRouteOptions {
  readonly counters: Counters;
  /** Token of the administration; where it is absent nothing is there. */
  readonly adminToken: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What a reset cannot reach. */
const OTHER_INSTANCES =
  "The local cache of every other instance still denies the keys that it knows to be over their limit, until the window ends";
const JSON_TYPE = /^application\/json[\t ]*(?:;.*)?$/i;
const MAX_LOGGED_PATH = 200;
const MAX_LOGGED_RULES = 10;

/** `POST /api/v1/counters/peek` and `/reset`: a request as `/json` takes it, of which nothing is counted. */
export function counterRoutes(options: CounterRouteOptions): readonly Route[] {
  const { logger, clock, counters } = options;
  const log = new ThrottledLog(logger, { clock });
  const route = (name: string, work: CounterWork): Route => ({
    path: `/api/v1/counters/${name}`,
    methods: [],
    async handle(call) {
      const { status, headers, body, code } = await answer(call, options, work);
      if (code !== undefined) {
        const path = call.url.pathname.slice(0, MAX_LOGGED_PATH);
        const facts = { code, status, method: call.request.method, path, requestId: call.requestId };
        log.warning(code, "HTTP request refused", facts);
      }
      return new Response(body, { status, headers: { ...headers } });
    },
  });
  return [
    route("peek", async (request) => ({ descriptors: await counters.peek(request) })),
    route("reset", async (request, { requestId }) => {
      const before = await counters.reset(request);
      logger.info("Counters reset", { ...factsOf(before), requestId });
      return { descriptors: before.map(afterReset), otherInstances: OTHER_INSTANCES };
    }),
  ];
}

type CounterWork = (request: RateLimitRequest, call: Call) => Promise<unknown>;

async function answer(call: Call, options: CounterRouteOptions, work: CounterWork): Promise<WebhookAnswer> {
  const { request, requestId } = call;
  const { adminToken, clock } = options;
  const refused = (problem: WebhookProblem) => problemAnswer(problem, requestId);
  if (adminToken === undefined) return refused(NOT_FOUND);
  const token = bearerTokenOf(request);
  if (token === undefined || !isSameToken(token, adminToken)) return refused(UNAUTHORIZED);
  const body = await readBody(request, { maxBytes: MAX_BODY_BYTES, timeoutMs: BODY_TIMEOUT_MS, clock });
  if (typeof body !== "string") {
    const { kind, reason, detail = reason, headers } = body;
    const code = kind === "malformed" ? "malformed_json" : kind;
    return refused({ status: REFUSALS[kind], code, field: "body", detail, headers });
  }
  if (body !== "" && !JSON_TYPE.test(request.headers.get("content-type") ?? "")) return refused(WRONG_TYPE);
  if (request.method !== "POST") return refused(WRONG_METHOD);
  try {
    const answered = JSON.stringify(await work(readRateLimitRequest(body), call));
    return { status: 200, headers: { "content-type": "application/json" }, body: answered };
  } catch (error) {
    const problem = problemOf(error);
    if (problem === undefined) throw error;
    return refused(problem);
  }
}

/** What was used is gone; what it was is told beside. */
function afterReset(state: CounterState): unknown {
  if (!state.limited) return state;
  const { used, ...rest } = state;
  return { ...rest, used: 0, remaining: state.limit, usedBefore: used };
}

/** For the log: rules by their own names, and nothing of what the caller sent. */
function factsOf(states: readonly CounterState[]): Readonly<Record<string, unknown>> {
  const limited = states.filter((state) => state.limited);
  const rules = [...new Set(limited.flatMap(({ rule }) => rule ?? []))];
  const counters = new Set(limited.map(({ cacheKey }) => cacheKey)).size;
  return { counters, rules: rules.slice(0, MAX_LOGGED_RULES).join(", ") };
}

function problemOf(error: unknown): WebhookProblem | undefined {
  if (error instanceof JsonRequestError) {
    const { field, message: detail } = error;
    return field === "body"
      ? { status: 400, code: "malformed_json", field, detail }
      : { status: 422, code: "invalid_field", field, detail };
  }
  if (error instanceof InvalidRequestError) {
    return { status: 422, code: "invalid_field", field: error.field, detail: error.message };
  }
  if (error instanceof NoConfigurationError) return away("no_configuration", error.message);
  return error instanceof CacheError ? away("cache_unavailable", error.message) : undefined;
}

function away(code: string, detail: string): WebhookProblem {
  return { status: 503, code, detail, headers: { "retry-after": "1" } };
}

/** The same as the rest of the administration answers. */
const NOT_FOUND: WebhookProblem = { status: 404, code: "not_found", detail: "Cannot find this path" };
const UNAUTHORIZED: WebhookProblem = {
  status: 401,
  code: "unauthorized",
  detail: "Cannot let this call in: a bearer token that is known is wanted",
  headers: { "www-authenticate": "Bearer" },
};
const WRONG_TYPE: WebhookProblem = {
  status: 415,
  code: "unsupported_media_type",
  field: "Content-Type",
  detail: "Cannot read the body: application/json is wanted",
};
const WRONG_METHOD: WebhookProblem = {
  status: 405,
  code: "method_not_allowed",
  detail: "Cannot answer this method: POST would be right",
  headers: { allow: "POST" },
};
