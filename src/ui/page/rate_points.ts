/** How many seconds are kept and shown. */
export const SECONDS = 120;

/** The decisions of one second. */
export interface RatePoint {
  readonly at: number;
  readonly perSecond: number;
  /** 0 to 1. */
  readonly overShare: number;
}

/** Keeps what was seen of the last two minutes. */
export function withPoint(points: readonly RatePoint[], point: RatePoint): readonly RatePoint[] {
  const since = point.at - SECONDS * 1_000;
  return [...points.filter(({ at }) => at > since && at < point.at), point];
}
