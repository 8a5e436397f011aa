/** When a delivery is retried, in milliseconds after its first failure. */
export const SLOTS_MS: readonly number[] = [
  0,
  30_000,
  60_000,
  300_000,
  1_800_000,
  7_200_000,
  28_800_000,
  86_400_000,
];
/** The last retry, after the first failure. */
export const LAST_SLOT_MS = 86_400_000;
/** Jitter delays attempts by at most this part of the gap to the previous slot. */
const JITTER_SHARE = 0.1;
/** Jitter delays attempts by no more than this. */
const MAX_JITTER_MS = 300_000;

/** Facts that decide on the next attempt. */
interface NextAttemptOptions {
  /** Number of used slots, skipped ones included. */
  readonly slot: number;
  readonly firstFailureAt: number;
  readonly now: number;
  /** True if the first retry may be immediate after this failure. */
  readonly mayRetryImmediately: boolean;
  /** Time that earlier retries have waited for the rate limit of the endpoint, which delays the later ones. */
  readonly waitedMs?: number | undefined;
  /** From the receiver's `Retry-After`. */
  readonly retryAfterMs?: number | undefined;
  /** From 0 to below 1. */
  readonly random: number;
}

/** The next attempt of a delivery. */
interface NextAttempt {
  /** Index in `SLOTS_MS`. */
  readonly slot: number;
  readonly dueAt: number;
}

/**
 * The attempt after a failure; nothing when the schedule is used up. Slots whose time has passed become one attempt now.
 * If the clock was set back to before the first failure, `now` counts as the time of that failure.
 */
export function nextAttempt(options: NextAttemptOptions): NextAttempt | undefined {
  const { slot: used, now, mayRetryImmediately, waitedMs = 0 } = options;
  const firstFailureAt = Math.min(options.firstFailureAt, now);
  const beginsAt = firstFailureAt + waitedMs;
  const first = used === 0 && !mayRetryImmediately ? 1 : used;
  if (first >= SLOTS_MS.length) return undefined;
  const passed = lastPassed(first, now - beginsAt);
  if (passed !== undefined) return { slot: passed, dueAt: delayed(passed, now, firstFailureAt, options) };
  const dueAt = Math.min(beginsAt + jittered(first, options.random), firstFailureAt + LAST_SLOT_MS);
  return { slot: first, dueAt: delayed(first, dueAt, firstFailureAt, options) };
}

/** The number of slots that an attempt which began at `startedAt` uses up: its own, and those that had passed by then. */
export function slotsUsed(slot: number, firstFailureAt: number, startedAt: number): number {
  return (lastPassed(slot, startedAt - firstFailureAt) ?? slot) + 1;
}

/** The last slot, from `first` on, whose time has come, jitter aside. */
function lastPassed(first: number, elapsedMs: number): number | undefined {
  const passed = SLOTS_MS.findLastIndex((offsetMs) => offsetMs <= elapsedMs);
  return passed >= first ? passed : undefined;
}

/** The offset of a slot with jitter, which spreads the attempts of deliveries that failed together. */
function jittered(slot: number, random: number): number {
  const offsetMs = SLOTS_MS[slot] ?? LAST_SLOT_MS;
  const gapMs = offsetMs - (SLOTS_MS[slot - 1] ?? 0);
  const jitterMs = Math.floor(random * Math.min(gapMs * JITTER_SHARE, MAX_JITTER_MS));
  return Math.min(offsetMs + jitterMs, LAST_SLOT_MS);
}

/** A time, delayed as the receiver asked, but not past the last slot; an immediate retry is not delayed. */
function delayed(slot: number, dueAt: number, firstFailureAt: number, options: NextAttemptOptions): number {
  const { retryAfterMs, now } = options;
  if (retryAfterMs === undefined || slot === 0) return dueAt;
  return Math.max(dueAt, Math.min(now + Math.ceil(retryAfterMs), firstFailureAt + LAST_SLOT_MS));
}
