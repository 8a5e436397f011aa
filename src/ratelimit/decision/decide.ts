import type { Code, Decision, DescriptorStatus, Header } from "../decision.ts";
import { type HeaderContext, responseHeaders } from "./headers.ts";
import { dynamicMetadata } from "./metadata.ts";
import { addFacts, type LimitFact } from "./limit_events.ts";
import type { Counted } from "../algorithms/taken.ts";
import { type OverLimitKey, overLimitKeyOf, statsOf, statusOf } from "./decide_count.ts";
import { type DecidedWindows, decideWindows } from "./decide_windows.ts";
import { isQuota, type Plan } from "./plan.ts";
import { hasHeaders, type Policy } from "./policy.ts";
import type { RuleStats } from "../rules/rule_stats.ts";

/** A decision and its effects. */
export interface Outcome {
  readonly decision: Decision;
  /** One per descriptor; undefined without a limit. */
  readonly stats: readonly (RuleStats | undefined)[];
  /** By descriptor, of those with several windows; undefined without any. */
  readonly windows: readonly (DecidedWindows | undefined)[] | undefined;
  /** True if global shadow mode changed the overall code to OK. */
  readonly globalShadow: boolean;
  readonly overLimitKeys: readonly OverLimitKey[];
  /** The limit events of rules that report them. */
  readonly facts: readonly LimitFact[];
}

/** Decides a plan. `counts` has the count after the hits, or one of the values above, for all that it counts. */
export function decide(plan: Plan, counts: readonly Counted[], policy: Policy, nowSeconds: number): Outcome {
  const { descriptors } = plan;
  const statuses: DescriptorStatus[] = [];
  const stats: (RuleStats | undefined)[] = [];
  let windows: DecidedWindows[] | undefined;
  let overLimitKeys: OverLimitKey[] = NO_KEYS;
  let facts: LimitFact[] = NO_FACTS;
  for (let index = 0, at = 0; index < descriptors.length; index++, at++) {
    const planned = descriptors[index];
    const limit = planned?.limit;
    if (planned === undefined || limit === undefined) {
      statuses.push(NO_LIMIT);
      stats.push(undefined);
      continue;
    }
    if (planned.windows !== undefined) {
      const decided = decideWindows(
        planned.windows,
        counts.slice(at, at + planned.windows.length),
        policy,
        nowSeconds,
      );
      at += planned.windows.length - 1;
      (windows ??= [])[index] = decided;
      statuses.push(decided.status);
      stats.push(decided.stats);
      if (facts === NO_FACTS) facts = [];
      if (overLimitKeys === NO_KEYS) overLimitKeys = [];
      for (const { planned, count, stats } of decided.reported) {
        addFacts(facts, { request: plan.request, planned, count, stats }, policy);
      }
      for (const key of decided.overLimitKeys) overLimitKeys.push(key);
      continue;
    }
    const count = counts[at] ?? 0;
    statuses.push(statusOf(planned, limit, count, nowSeconds));
    const descriptorStats = statsOf(planned, limit, count, policy);
    stats.push(descriptorStats);
    const { overLimit: over, nearLimit: near } = descriptorStats;
    if (limit.events !== undefined && (over > 0 || near > 0)) {
      if (facts === NO_FACTS) facts = [];
      addFacts(facts, { request: plan.request, planned, count, stats: descriptorStats }, policy);
    }
    const overLimit = overLimitKeyOf(planned, limit, count);
    if (overLimit !== undefined) {
      if (overLimitKeys === NO_KEYS) overLimitKeys = [];
      overLimitKeys.push(overLimit);
    }
  }
  const code = overallCode(plan, statuses, policy);
  const globalShadow = policy.shadowMode && code === "OVER_LIMIT";
  const context = { policy, nowSeconds, windows };
  const decision = decisionOf(plan, statuses, globalShadow ? "OK" : code, context);
  return { decision, stats, windows, globalShadow, overLimitKeys, facts };
}

/** The decision with these statuses, and with the headers and the metadata that the policy enables. */
export function decisionOf(
  plan: Plan,
  statuses: readonly DescriptorStatus[],
  overallCode: Code,
  context: HeaderContext,
): Decision {
  const { policy } = context;
  return {
    overallCode,
    statuses,
    responseHeadersToAdd: hasHeaders(policy) ? responseHeaders(plan, statuses, context) : NO_HEADERS,
    dynamicMetadata: policy.dynamicMetadata ? dynamicMetadata(plan, statuses) : undefined,
  };
}

function overallCode(plan: Plan, statuses: readonly DescriptorStatus[], policy: Policy): Code {
  const { descriptors } = plan;
  let quotas = 0;
  let quotasOver = 0;
  for (let index = 0; index < descriptors.length; index++) {
    const planned = descriptors[index];
    if (planned === undefined || planned.limit?.unlimited === true) continue;
    const over = statuses[index]?.code === "OVER_LIMIT";
    if (isQuota(planned, policy)) {
      quotas++;
      if (over) quotasOver++;
    } else if (over) {
      return "OVER_LIMIT";
    }
  }
  return quotas > 0 && quotas === quotasOver ? "OVER_LIMIT" : "OK";
}

const NO_LIMIT: DescriptorStatus = { code: "OK", limitRemaining: 0 };
const NO_KEYS: OverLimitKey[] = [];
const NO_FACTS: LimitFact[] = [];
const NO_HEADERS: readonly Header[] = [];
