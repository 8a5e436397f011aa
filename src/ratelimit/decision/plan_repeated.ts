import type { CurrentLimit } from "../decision.ts";
import type { RateLimitRequest } from "../request.ts";
import type { StatsSink } from "../stats_sink.ts";
import { type LoadedRules, ruleCountersOf } from "./call.ts";
import type { CounterCache } from "./counter_cache.ts";
import { type Plan, type PlanContext, planHits } from "./plan.ts";
import {
  type KeptCounters,
  repeatableOf,
  repeatablesOf,
  type RepeatedHit,
  RepeatedList,
  RepeatedRequest,
} from "./repeated_request.ts";
import { RepeatedWindows } from "./repeated_windows.ts";
import { countersOf } from "./take_hits.ts";

/** Inputs of a repeated request, in addition to those of its plan. */
interface RepeatContext<Form> extends PlanContext {
  readonly cache: CounterCache;
  readonly counters: KeptCounters;
  readonly stats: StatsSink;
  readonly formOf: (limit: CurrentLimit) => Form | undefined;
}

/** Plans a request that has the same effects each time, if its limit has a form. */
export function planRepeated<Form>(
  loaded: LoadedRules,
  request: RateLimitRequest,
  context: RepeatContext<Form>,
): RepeatedRequest<Form> | RepeatedList | undefined {
  const { cache, policy, stats, formOf, nowSeconds } = context;
  const plan = planHits(loaded.rules, request, context);
  if (plan.descriptors.length > 1) return planList(loaded, plan, context);
  const planned = repeatableOf(plan);
  const form = planned?.limit.current === undefined ? undefined : formOf(planned.limit.current);
  if (planned === undefined || form === undefined) return undefined;
  const counters = ruleCountersOf(loaded, planned, stats, request.domain);
  const counter = context.counters.counterOf(planned.hit);
  const windows = planned.windows === undefined
    ? undefined
    : RepeatedWindows.of(planned.windows, cache, { formOf, nearLimitRatio: policy.nearLimitRatio });
  if (planned.windows !== undefined && windows === undefined) return undefined;
  return new RepeatedRequest(plan, planned, { nowSeconds, counter, counters, form, windows });
}

/** With the policy that reads first, the hits of a list depend on each other. */
function planList(
  loaded: LoadedRules,
  plan: Plan,
  { policy, counters, stats, nowSeconds }: Omit<RepeatContext<unknown>, "formOf">,
): RepeatedList | undefined {
  const planned = policy.stopIncrementWhenOverLimit ? undefined : repeatablesOf(plan);
  if (planned === undefined) return undefined;
  const all = planned.map((one): RepeatedHit => {
    const { hit, hits, limit } = one;
    return { hit, hits, limit, counters: ruleCountersOf(loaded, one, stats, plan.request.domain) };
  });
  const takers = countersOf(counters, all.map(({ hit }) => hit));
  return new RepeatedList(plan, all, { nowSeconds, takers });
}
