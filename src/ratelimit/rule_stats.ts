/** What one descriptor of a call adds to the statistics of its rule. */
export interface RuleStats {
  readonly overLimit: number;
  readonly nearLimit: number;
  readonly withinLimit: number;
  readonly shadowMode: number;
  readonly overLimitWithLocalCache: number;
  readonly returnedHits: number;
}

/** Nothing to add. */
export const NO_STATS: RuleStats = {
  overLimit: 0,
  nearLimit: 0,
  withinLimit: 0,
  shadowMode: 0,
  overLimitWithLocalCache: 0,
  returnedHits: 0,
};

/**
 * The count from which hits are near a limit, exclusive. The product is that of 32-bit floating
 * point numbers, so that dashboards agree with the best-known implementation.
 */
export function nearLimitThreshold(requestsPerUnit: number, ratio: number): number {
  return Math.floor(Math.fround(Math.fround(requestsPerUnit) * Math.fround(ratio)));
}

/** How a count stands against a limit. */
export interface CountState {
  readonly requestsPerUnit: number;
  readonly nearLimitRatio: number;
  /** The counter after the hits. */
  readonly after: number;
  /** The hits that were asked for. */
  readonly hits: number;
  /** The over-limit answer came from the local cache: all hits are over. */
  readonly fromLocalCache: boolean;
  readonly shadowMode: boolean;
}

/** The statistics of hits that were added to a counter. */
export function ruleStats(state: CountState): RuleStats {
  const { requestsPerUnit: limit, after, hits, fromLocalCache } = state;
  if (fromLocalCache) {
    return {
      ...NO_STATS,
      overLimit: hits,
      overLimitWithLocalCache: hits,
      shadowMode: state.shadowMode ? hits : 0,
    };
  }
  const near = nearLimitThreshold(limit, state.nearLimitRatio);
  const before = after - hits;
  if (after <= limit) {
    // A count below the hits was read and not added to; it counts as a very large one, as upstream's unsigned does.
    const allNear = before >= near || before < 0;
    return { ...NO_STATS, withinLimit: hits, nearLimit: after > near ? (allNear ? hits : after - near) : 0 };
  }
  const over = before >= limit ? hits : after - limit;
  return {
    ...NO_STATS,
    overLimit: over,
    nearLimit: before >= limit ? 0 : limit - Math.max(near, before),
    shadowMode: state.shadowMode ? over : 0,
  };
}
