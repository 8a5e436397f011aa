/** Start of the window that `nowSeconds` falls into, aligned to the epoch; both in whole seconds. */
export function windowStart(nowSeconds: number, windowSeconds: number): number {
  return nowSeconds - (nowSeconds % windowSeconds);
}

/** Largest duration that the protocols can carry: 10,000 years in seconds. */
export const MAX_DURATION_SECONDS = 315_576_000_000;

/** Whole seconds until the window ends: at least 1, at most the window. */
export function secondsUntilReset(nowSeconds: number, windowSeconds: number): number {
  return Math.min(windowSeconds - (nowSeconds % windowSeconds), MAX_DURATION_SECONDS);
}
