import type { Code, Decision, DescriptorStatus, Header } from "./decision.ts";
import { responseHeaders } from "./headers.ts";
import { dynamicMetadata } from "./metadata.ts";
import { isQuota, type Plan, type PlannedDescriptor } from "./plan.ts";
import type { Policy } from "./policy.ts";
import { NO_STATS, type RuleStats, ruleStats } from "./rule_stats.ts";
import type { RateLimit } from "./rules.ts";
import { secondsUntilReset } from "./window.ts";

/** In place of a count: the local cache knows that the key is over its limit. */
export const OVER_LIMIT_LOCALLY = -1;
/** In place of a count: the cache failed and the descriptor is allowed. */
export const ALLOWED_UNCOUNTED = -Infinity;
/** In place of a count: the cache failed and the descriptor is denied. */
export const DENIED_UNCOUNTED = Infinity;

/** The largest `uint32`. */
const UNLIMITED_REMAINING = 4_294_967_295;

/** A key that is over its limit, for the local cache. */
export interface OverLimitKey {
  readonly key: string;
  readonly count: number;
  /** Seconds since the epoch. */
  readonly windowEnd: number;
}

/** A decision and its effects. */
export interface Outcome {
  readonly decision: Decision;
  /** One per descriptor; undefined without a limit. */
  readonly stats: readonly (RuleStats | undefined)[];
  /** Whether global shadow mode changed the overall code to OK. */
  readonly globalShadow: boolean;
  readonly overLimitKeys: readonly OverLimitKey[];
}

/** Decides a plan. `counts` has the count after the hits, or one of the values above, for each counted descriptor. */
export function decide(plan: Plan, counts: readonly number[], policy: Policy, nowSeconds: number): Outcome {
  const { descriptors } = plan;
  const statuses: DescriptorStatus[] = [];
  const stats: (RuleStats | undefined)[] = [];
  let overLimitKeys: OverLimitKey[] = NO_KEYS;
  for (let index = 0; index < descriptors.length; index++) {
    const planned = descriptors[index];
    const limit = planned?.limit;
    if (planned === undefined || limit === undefined) {
      statuses.push(NO_LIMIT);
      stats.push(undefined);
      continue;
    }
    const count = counts[index] ?? 0;
    const { hit } = planned;
    statuses.push(statusOf(planned, limit, count, nowSeconds));
    stats.push(statsOf(planned, limit, count, policy));
    if (hit !== undefined && hit.addend >= 0 && count > limit.requestsPerUnit) {
      if (overLimitKeys === NO_KEYS) overLimitKeys = [];
      overLimitKeys.push({ key: hit.key, count, windowEnd: hit.windowEnd });
    }
  }
  const code = overallCode(plan, statuses, policy);
  const globalShadow = policy.shadowMode && code === "OVER_LIMIT";
  const decision: Decision = {
    overallCode: globalShadow ? "OK" : code,
    statuses,
    responseHeadersToAdd: policy.responseHeaders === undefined
      ? NO_HEADERS
      : responseHeaders(plan, statuses, policy, nowSeconds),
    dynamicMetadata: policy.dynamicMetadata ? dynamicMetadata(plan, statuses) : undefined,
  };
  return { decision, stats, globalShadow, overLimitKeys };
}

function statusOf(
  planned: PlannedDescriptor,
  limit: RateLimit,
  count: number,
  nowSeconds: number,
): DescriptorStatus {
  if (planned.hit === undefined || limit.current === undefined) {
    return { code: "OK", limitRemaining: UNLIMITED_REMAINING };
  }
  const over = count === OVER_LIMIT_LOCALLY || count > limit.requestsPerUnit;
  return {
    code: over && !limit.shadowMode ? "OVER_LIMIT" : "OK",
    currentLimit: limit.current,
    limitRemaining: over || count === ALLOWED_UNCOUNTED ? 0 : limit.requestsPerUnit - count,
    secondsUntilReset: secondsUntilReset(nowSeconds, limit.windowSeconds),
  };
}

function statsOf(planned: PlannedDescriptor, limit: RateLimit, count: number, policy: Policy): RuleStats {
  const { hits, negative, hit } = planned;
  if (hit === undefined || count === ALLOWED_UNCOUNTED || count === DENIED_UNCOUNTED) return NO_STATS;
  if (negative) return { ...NO_STATS, returnedHits: hits };
  return ruleStats({
    requestsPerUnit: limit.requestsPerUnit,
    nearLimitRatio: policy.nearLimitRatio,
    after: count,
    hits,
    fromLocalCache: count === OVER_LIMIT_LOCALLY,
    shadowMode: limit.shadowMode,
  });
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
const NO_HEADERS: readonly Header[] = [];
