import type { RuleCounters } from "../stats_sink.ts";

/** The part of one descriptor in the statistics of its rule. */
export type RuleStats = Readonly<Omit<RuleCounters, "totalHits" | "domainNotFound" | "overLimitPer">>;

/** No statistics. */
export const NO_STATS: RuleStats = {
  overLimit: 0,
  nearLimit: 0,
  withinLimit: 0,
  shadowMode: 0,
  overLimitWithLocalCache: 0,
  returnedHits: 0,
};

/** Adds the part of one descriptor. */
export function addStats(counters: RuleCounters, stats: RuleStats): void {
  counters.overLimit += stats.overLimit;
  counters.nearLimit += stats.nearLimit;
  counters.withinLimit += stats.withinLimit;
  counters.shadowMode += stats.shadowMode;
  counters.overLimitWithLocalCache += stats.overLimitWithLocalCache;
  counters.returnedHits += stats.returnedHits;
}

/** Hits above this count are near the limit. A product of 32-bit floats, for compatibility. */
export function nearLimitThreshold(requestsPerUnit: number, ratio: number): number {
  return Math.floor(Math.fround(Math.fround(requestsPerUnit) * Math.fround(ratio)));
}

/** The number of these hits that are near the limit, if they are within it. */
export function nearHits(after: number, hits: number, near: number): number {
  return after > near ? Math.min(hits, after - near) : 0;
}

/** A count and its limit. */
interface CountState {
  readonly requestsPerUnit: number;
  readonly nearLimitRatio: number;
  readonly after: number;
  readonly hits: number;
  /** True if the local cache knew that the key is over its limit: all hits are over. */
  readonly fromLocalCache: boolean;
  readonly shadowMode: boolean;
}

/** The statistics of hits that were added to a counter. */
export function ruleStats(state: CountState): RuleStats {
  const { requestsPerUnit: limit, after, hits, fromLocalCache, shadowMode } = state;
  if (fromLocalCache) return statsOf(hits, 0, 0, shadowMode ? hits : 0, hits);
  const near = nearLimitThreshold(limit, state.nearLimitRatio);
  const before = after - hits;
  // A count below the hits was only read: upstream's unsigned difference is then very large.
  const wasOnlyRead = before < 0;
  if (after <= limit) {
    return statsOf(0, wasOnlyRead && after > near ? hits : nearHits(after, hits, near), hits, 0, 0);
  }
  const allOver = before >= limit || wasOnlyRead;
  const over = allOver ? hits : after - limit;
  // A 32-bit float may be above a large limit.
  const nearLimit = allOver ? 0 : Math.max(0, limit - Math.max(near, before));
  return statsOf(over, nearLimit, 0, shadowMode ? over : 0, 0);
}

function statsOf(
  overLimit: number,
  nearLimit: number,
  withinLimit: number,
  shadowMode: number,
  overLimitWithLocalCache: number,
): RuleStats {
  return { overLimit, nearLimit, withinLimit, shadowMode, overLimitWithLocalCache, returnedHits: 0 };
}
