import type { Code, CurrentLimit } from "../decision.ts";
import type { RateLimitRequest } from "../request.ts";
import type { JsonObject } from "../rule_source.ts";
import type { StatsSink } from "../stats_sink.ts";
import { type LoadedRules, ruleCountersOf } from "./call.ts";
import type { CounterCache } from "./counter_cache.ts";
import { type HeaderForm, headerForms } from "./headers.ts";
import { dynamicMetadata } from "./metadata.ts";
import { type Plan, type PlanContext, planHits } from "./plan.ts";
import { hasHeaders } from "./policy.ts";
import {
  type CountedDescriptor,
  type KeptCounters,
  repeatablesOf,
  RepeatedList,
  RepeatedRequest,
} from "./repeated_request.ts";
import { RepeatedWindows } from "./repeated_windows.ts";

/** The parts that all responses to a request with one descriptor have in common. */
export interface RepeatedResponse {
  readonly limit: CurrentLimit;
  readonly headers: readonly HeaderForm[];
  /** Of a status that is `OK`, and of one that is not, which has a first part of it; undefined without metadata. */
  readonly metadata: { readonly granted: JsonObject; readonly refused: JsonObject } | undefined;
}

/** Inputs of a repeated request, in addition to those of its plan. */
interface RepeatContext<Form> extends PlanContext {
  readonly cache: CounterCache;
  readonly counters: KeptCounters;
  readonly stats: StatsSink;
  readonly formOf: (response: RepeatedResponse) => Form | undefined;
}

/** Plans a request that has the same effects each time, if its limit has a form. */
export function planRepeated<Form>(
  loaded: LoadedRules,
  request: RateLimitRequest,
  context: RepeatContext<Form>,
): RepeatedRequest<Form> | RepeatedList | undefined {
  const { cache, policy, stats, formOf, nowSeconds } = context;
  const plan = planHits(loaded.rules, request, context);
  const all = repeatablesOf(plan);
  if (all === undefined) return undefined;
  const [planned] = all;
  if (planned === undefined || all.length > 1) return listOf(plan, all, context);
  if (planned.windows !== undefined && (hasHeaders(policy) || policy.dynamicMetadata)) return undefined;
  const form = planned.limit.current === undefined
    ? undefined
    : formOf(responseOf(plan, planned, planned.limit.current, context));
  if (form === undefined) return undefined;
  const counters = ruleCountersOf(loaded, planned, stats, plan);
  const counter = context.counters.counterOf(planned.hit);
  const windows = planned.windows === undefined ? undefined : RepeatedWindows.of(planned.windows, cache, {
    formOf: (limit) => formOf({ limit, headers: [], metadata: undefined }),
    nearLimitRatio: policy.nearLimitRatio,
  });
  if (planned.windows !== undefined && windows === undefined) return undefined;
  return new RepeatedRequest(plan, planned, { nowSeconds, counter, counters, form, windows });
}

function responseOf(
  plan: Plan,
  planned: CountedDescriptor,
  limit: CurrentLimit,
  { policy, nowSeconds }: PlanContext,
): RepeatedResponse {
  const metadataOf = (code: Code) => dynamicMetadata(plan, [{ code, limitRemaining: 0 }]);
  return {
    limit,
    headers: hasHeaders(policy) ? headerForms(planned, policy, nowSeconds) : [],
    metadata: policy.dynamicMetadata
      ? { granted: metadataOf("OK"), refused: metadataOf("OVER_LIMIT") }
      : undefined,
  };
}

/** With the policy that reads first, several hits depend on each other. */
function listOf(
  plan: Plan,
  all: readonly CountedDescriptor[],
  { policy, counters, nowSeconds }: Omit<RepeatContext<unknown>, "formOf">,
): RepeatedList | undefined {
  if (policy.stopIncrementWhenOverLimit) return undefined;
  if (all.some(({ windows }) => windows !== undefined)) return undefined;
  return new RepeatedList(plan, all, { nowSeconds, counters: all.map(({ hit }) => counters.counterOf(hit)) });
}
