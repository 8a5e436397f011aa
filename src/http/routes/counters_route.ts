import type { Logger } from "../../base/log.ts";
import type { CounterState } from "../../ratelimit/forecast/live_counters.ts";
import type { Entry, RateLimitRequest } from "../../ratelimit/request.ts";
import { decodeText } from "../../wire/text.ts";
import { roleProblem, wrongMethod } from "../../webhooks/api/problem.ts";
import { jsonAnswer } from "../../webhooks/api/route.ts";
import { type ApiOptions, apiRoute, authenticatedCall, refused } from "./api_call.ts";
import { readPeekRequest, readRateLimitRequest } from "./rate_limit_json.ts";
import { COUNTER_OPERATIONS } from "../openapi/rate_limit_operations.ts";
import { apiProblem, refusalOf } from "../server/problem.ts";
import { MAX_BODY_BYTES } from "./rate_limit_route.ts";
import type { Route } from "../server/router.ts";

/** The counters behind the routes: both throw what a decision throws. */
export interface Counters {
  peek(request: RateLimitRequest): Promise<CounterState[]>;
  reset(request: RateLimitRequest): Promise<CounterState[]>;
}

/** The quotas behind `peek`. */
export interface PeekedQuotas {
  /** One bucket; throws what a decision throws. */
  peek(domain: string, pairs: readonly Entry[]): Promise<object>;
}

/** Options of `counterRoutes`. */
export interface CounterRouteOptions {
  readonly administrators: ApiOptions["administrators"];
  readonly clock: ApiOptions["clock"];
  readonly counters: Counters;
  readonly quotas: PeekedQuotas;
  readonly logger: Logger;
}

/** Counters that a reset cannot reach. */
const OTHER_INSTANCES =
  "The local cache of every other instance still denies the keys that it knows to be over their limit, until the window ends";
const MAX_LOGGED_RULES = 10;

/** `POST /api/v1/counters/peek` and `/reset`: take a request as `/json` does, and count nothing; or, for `peek`, a bucket. */
export function counterRoutes(options: CounterRouteOptions): readonly Route[] {
  const { logger, counters, quotas } = options;
  const bounds = { ...options, maxBodyBytes: MAX_BODY_BYTES, decode: decodeText };
  const route = (
    name: "peek" | "reset",
    work: (
      body: string,
      facts: { requestId: string; administrator: string },
    ) => Promise<unknown>,
  ) =>
    apiRoute(`/api/v1/counters/${name}`, async (call) => {
      const known = await authenticatedCall(call, bounds);
      if ("code" in known) return refused(call, known);
      if (call.request.method !== "POST") return refused(call, wrongMethod(["POST"]));
      const { administrator, body } = known;
      const problem = roleProblem(administrator, COUNTER_OPERATIONS[`POST /counters/${name}`].role);
      if (problem !== undefined) return refused(call, problem);
      try {
        const facts = { requestId: call.requestId, administrator: administrator.name };
        return jsonAnswer(200, await work(body, facts));
      } catch (error) {
        return refused(call, apiProblem(refusalOf(error)));
      }
    });
  return [
    route("peek", async (body) => {
      const { bucket, ...request } = readPeekRequest(body);
      if (bucket !== undefined) return await quotas.peek(request.domain, bucket);
      return { descriptors: withDescriptors(await counters.peek(request), request) };
    }),
    route("reset", async (body, facts) => {
      const request = readRateLimitRequest(body);
      const before = await counters.reset(request);
      logger.info("Counters reset", { ...factsOf(before), ...facts });
      const after = withDescriptors(before.map(afterReset), request);
      return { descriptors: after, otherInstances: OTHER_INSTANCES };
    }),
  ];
}

/** The states, each with its descriptor as the command line writes it. */
function withDescriptors(states: readonly object[], { descriptors }: RateLimitRequest): readonly object[] {
  return states.map((state, index) => {
    const entries = descriptors[index]?.entries ?? [];
    return { descriptor: entries.map(({ key, value }) => `${key}=${value}`).join(","), ...state };
  });
}

/** Nothing is used now; `usedBefore` keeps what was. */
function afterReset(state: CounterState): object {
  if (!state.limited) return state;
  const { used, windows, ...rest } = state;
  const after = { ...rest, used: 0, remaining: state.burst ?? state.limit, usedBefore: used };
  return windows === undefined ? after : { ...after, windows: windows.map(afterReset) };
}

/** For the log: rules by their names, and nothing that the caller sent. */
function factsOf(states: readonly CounterState[]): Readonly<Record<string, unknown>> {
  const limited = states.filter((state) => state.limited);
  const rules = [...new Set(limited.flatMap(({ rule }) => rule ?? []))];
  const counters =
    new Set(limited.flatMap((state) => state.windows ?? [state]).map(({ cacheKey }) => cacheKey)).size;
  return { counters, rules: rules.slice(0, MAX_LOGGED_RULES).join(", ") };
}
