import type { DescriptorStatus } from "../decision.ts";
import type { ConditionalLimit } from "../algorithms/conditional_limit.ts";
import type { Counted, Taken } from "../algorithms/taken.ts";
import { isConditional } from "./counter_cache.ts";
import type { PlannedDescriptor } from "./plan.ts";
import type { Policy } from "./policy.ts";
import { NO_STATS, type RuleStats, ruleStats } from "../rules/rule_stats.ts";
import type { RateLimit } from "../rules/rules.ts";
import { secondsUntilReset, wholeSeconds } from "./window.ts";

/** In place of a count: the local cache knows that the key is over its limit. */
export const OVER_LIMIT_LOCALLY = -1;
/** In place of a count: the cache failed and the descriptor is allowed, or another window of its rule refused it. */
export const ALLOWED_UNCOUNTED = -Infinity;
/** In place of a count: the cache failed and the descriptor is denied. */
export const DENIED_UNCOUNTED = Infinity;

/** The largest `uint32`. */
const UNLIMITED_REMAINING = 4_294_967_295;

/** A key that is over its limit, for the local cache. */
export interface OverLimitKey {
  readonly key: string;
  readonly count: number;
  /** Seconds since the epoch; of a conditional hit, undefined. */
  readonly windowEnd: number | undefined;
  /** Of a conditional hit. */
  readonly limit: ConditionalLimit | undefined;
  /** Milliseconds until one hit would pass, of a conditional hit. */
  readonly retryMs: number;
}

/** The answer to a conditional hit whose key the local cache knows. */
export interface KnownRefusal extends Taken {
  readonly isKnown: true;
}

/** True if the local cache knew that the key of a hit is over its limit. */
export function isKnownOverLimit(count: Counted): boolean {
  return count === OVER_LIMIT_LOCALLY || (typeof count !== "number" && "isKnown" in count);
}

/** A refusal of a `concurrency` limit is not remembered: it ends as soon as another instance gives back. */
export function overLimitKeyOf(
  { hit }: PlannedDescriptor,
  { requestsPerUnit, conditional }: RateLimit,
  count: Counted,
): OverLimitKey | undefined {
  if (hit === undefined || hit.addend < 0) return undefined;
  if (typeof count === "number") {
    if (!(count > requestsPerUnit) || isConditional(hit)) return undefined;
    return { key: hit.key, count, windowEnd: hit.windowEnd, limit: undefined, retryMs: 0 };
  }
  const { granted, available, used, retryMs } = count;
  if (granted || available > 0 || isKnownOverLimit(count)) return undefined;
  if (!isConditional(hit)) {
    return { key: hit.key, count: used, windowEnd: hit.windowEnd, limit: undefined, retryMs: 0 };
  }
  if (retryMs === 0 || conditional === undefined || conditional.algorithm === "concurrency") return undefined;
  const { capacity, limit } = conditional;
  return { key: hit.key, count: capacity, windowEnd: undefined, limit, retryMs };
}

/** The status of a descriptor whose count is known. */
export function statusOf(
  planned: Pick<PlannedDescriptor, "hit">,
  limit: RateLimit,
  count: Counted,
  nowSeconds: number,
): DescriptorStatus {
  if (planned.hit === undefined || limit.current === undefined) {
    return { code: "OK", limitRemaining: UNLIMITED_REMAINING };
  }
  if (typeof count !== "number") {
    return {
      code: count.granted || limit.shadowMode ? "OK" : "OVER_LIMIT",
      currentLimit: limit.current,
      limitRemaining: count.available,
      secondsUntilReset: limit.conditional === undefined
        ? secondsUntilReset(limit, nowSeconds)
        : wholeSeconds(count.granted ? count.freeMs : count.retryMs),
    };
  }
  const over = count === OVER_LIMIT_LOCALLY || count > limit.requestsPerUnit;
  return {
    code: over && !limit.shadowMode ? "OVER_LIMIT" : "OK",
    currentLimit: limit.current,
    limitRemaining: over || count === ALLOWED_UNCOUNTED ? 0 : limit.requestsPerUnit - count,
    secondsUntilReset: limit.conditional === undefined
      ? secondsUntilReset(limit, nowSeconds)
      : wholeSeconds(limit.windowSeconds * 1_000),
  };
}

/** The statistics of a descriptor whose count is known. */
export function statsOf(
  planned: PlannedDescriptor,
  limit: RateLimit,
  count: Counted,
  policy: Policy,
): RuleStats {
  const { hits, negative, hit } = planned;
  if (hit === undefined || count === ALLOWED_UNCOUNTED || count === DENIED_UNCOUNTED) return NO_STATS;
  if (negative) return { ...NO_STATS, returnedHits: hits };
  const { shadowMode } = limit;
  if (typeof count !== "number" && !count.granted) {
    const overLimitWithLocalCache = isKnownOverLimit(count) ? hits : 0;
    return { ...NO_STATS, overLimit: hits, shadowMode: shadowMode ? hits : 0, overLimitWithLocalCache };
  }
  return ruleStats({
    requestsPerUnit: limit.conditional?.capacity ?? limit.requestsPerUnit,
    nearLimitRatio: policy.nearLimitRatio,
    after: typeof count === "number" ? count : count.used,
    hits,
    fromLocalCache: count === OVER_LIMIT_LOCALLY,
    shadowMode,
  });
}
