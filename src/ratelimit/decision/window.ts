/** The start of the window that contains `nowSeconds`, aligned to the epoch. */
export function windowStart(nowSeconds: number, windowSeconds: number): number {
  return nowSeconds - (nowSeconds % windowSeconds);
}

/** The largest duration in the protocols: 10,000 years in seconds. */
export const MAX_DURATION_SECONDS = 315_576_000_000;
/** The end of the year 9999, the last second in RFC 3339. */
const MAX_INSTANT_SECONDS = 253_402_300_799;

/** Seconds until the window ends, at least 1. */
export function secondsUntilReset(nowSeconds: number, windowSeconds: number): number {
  return Math.min(windowSeconds - (nowSeconds % windowSeconds), MAX_DURATION_SECONDS);
}

/** Milliseconds in seconds, rounded up and at least 1. */
export function wholeSeconds(ms: number): number {
  return Math.min(Math.max(1, Math.ceil(ms / 1_000)), MAX_DURATION_SECONDS);
}

/** Seconds since the epoch as RFC 3339, at most the end of the year 9999. */
export function instantText(seconds: number): string {
  return new Date(Math.min(seconds, MAX_INSTANT_SECONDS) * 1_000).toISOString().replace(".000Z", "Z");
}
