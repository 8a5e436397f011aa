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
  const { requestsPerUnit: limit, after, hits, fromLocalCache, shadowMode } = state;
  if (fromLocalCache) return counted(hits, 0, 0, shadowMode ? hits : 0, hits);
  const near = nearLimitThreshold(limit, state.nearLimitRatio);
  const before = after - hits;
  // A count below the hits was read and not added to; it counts as a very large one, as upstream's unsigned does.
  const unadded = before < 0;
  if (after <= limit) {
    const nearHits = before >= near || unadded ? hits : after - near;
    return counted(0, after > near ? nearHits : 0, hits, 0, 0);
  }
  const allOver = before >= limit || unadded;
  const over = allOver ? hits : after - limit;
  return counted(over, allOver ? 0 : limit - Math.max(near, before), 0, shadowMode ? over : 0, 0);
}

function counted(
  overLimit: number,
  nearLimit: number,
  withinLimit: number,
  shadowMode: number,
  overLimitWithLocalCache: number,
): RuleStats {
  return { overLimit, nearLimit, withinLimit, shadowMode, overLimitWithLocalCache, returnedHits: 0 };
}
