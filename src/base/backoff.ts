/** How waits grow, in milliseconds. */
export interface BackoffTimes {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** Doublings after which only the bound can hold; more of them would leave the numbers. */
const MOST_DOUBLINGS = 30;

/** The wait before this attempt, counted from 1. Its upper half is jitter: `random` is from 0 to below 1. */
export function backoffMs(attempt: number, random: number, times: BackoffTimes): number {
  const full = fullBackoffMs(attempt, times);
  return full / 2 + (full / 2) * random;
}

/** The most that the wait before this attempt can be: it doubles from attempt to attempt up to the bound. */
export function fullBackoffMs(attempt: number, { firstMs, longestMs }: BackoffTimes): number {
  return Math.min(firstMs * 2 ** Math.min(attempt - 1, MOST_DOUBLINGS), longestMs);
}
