/** Bounds of backoff delays, in milliseconds. */
export interface BackoffTimes {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** Further doublings exceed every limit. */
const MOST_DOUBLINGS = 30;

/** The delay before this attempt, counted from 1. Its upper half is jitter: `random` is from 0 to below 1. */
export function backoffMs(attempt: number, random: number, times: BackoffTimes): number {
  const full = fullBackoffMs(attempt, times);
  return full / 2 + (full / 2) * random;
}

/** The longest delay before this attempt: it doubles with each one up to the limit. */
export function fullBackoffMs(attempt: number, { firstMs, longestMs }: BackoffTimes): number {
  return Math.min(firstMs * 2 ** Math.min(attempt - 1, MOST_DOUBLINGS), longestMs);
}
