import type { Window } from "../algorithms/calendar_windows.ts";
import type { RateLimit } from "../rules/rules.ts";

/** The windows of a limit: of a calendar, or of one length and aligned to the epoch. */
type Windows = Pick<RateLimit, "windowSeconds" | "calendar">;

/** The window that contains `nowSeconds`. */
export function windowOf({ windowSeconds, calendar }: Windows, nowSeconds: number): Window {
  if (calendar !== undefined) return calendar.at(nowSeconds);
  const start = nowSeconds - (nowSeconds % windowSeconds);
  return { start, end: start + windowSeconds };
}

/** The length of the window that contains `nowSeconds`; of a `concurrency` limit, the lease. */
export function windowLength({ windowSeconds, calendar }: Windows, nowSeconds: number): number {
  if (calendar === undefined) return windowSeconds;
  const { start, end } = calendar.at(nowSeconds);
  return end - start;
}

/** The largest duration in the protocols: 10,000 years in seconds. */
export const MAX_DURATION_SECONDS = 315_576_000_000;
/** The end of the year 9999, the last second in RFC 3339. */
const MAX_INSTANT_SECONDS = 253_402_300_799;

/** Seconds until the window ends, at least 1. */
export function secondsUntilReset({ windowSeconds, calendar }: Windows, nowSeconds: number): number {
  const rest = calendar === undefined
    ? windowSeconds - (nowSeconds % windowSeconds)
    : calendar.at(nowSeconds).end - nowSeconds;
  return Math.min(rest, MAX_DURATION_SECONDS);
}

/** Milliseconds in seconds, rounded up and at least 1. */
export function wholeSeconds(ms: number): number {
  return Math.min(Math.max(1, Math.ceil(ms / 1_000)), MAX_DURATION_SECONDS);
}

/** Seconds since the epoch as RFC 3339, at most the end of the year 9999. */
export function instantText(seconds: number): string {
  return new Date(Math.min(seconds, MAX_INSTANT_SECONDS) * 1_000).toISOString().replace(".000Z", "Z");
}
