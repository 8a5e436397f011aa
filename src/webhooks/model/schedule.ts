/** When a delivery is tried again, as milliseconds after its first failure; the first of them is at once. */
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
/** The last time that a delivery is tried, after its first failure. */
export const LAST_SLOT_MS = 86_400_000;
/** Attempts are put off by up to this part of the gap to the slot before. */
export const JITTER_SHARE = 0.1;
/** Attempts are put off by no more than this. */
export const MAX_JITTER_MS = 300_000;

/** What the next attempt depends on. */
export interface NextAttemptOptions {
  /** How many slots have been used; those that are skipped count. */
  readonly slot: number;
  readonly firstFailureAt: number;
  readonly now: number;
  /** Whether the failure is one after which the first retry is made at once. */
  readonly mayRetryAtOnce: boolean;
  /** How long the receiver asked to be left alone. */
  readonly retryAfterMs?: number | undefined;
  /** From 0 to below 1. */
  readonly random: number;
}

/** When a delivery is tried again, and in which slot. */
export interface NextAttempt {
  /** Index in `SLOTS_MS`: how many slots have been used before it. */
  readonly slot: number;
  readonly dueAt: number;
}

/**
 * The attempt that follows a failure; nothing when the schedule is used up. Slots whose time has passed are one
 * attempt, now. With a clock that went back to before the first failure, `now` counts as the time of that failure.
 */
export function nextAttempt(options: NextAttemptOptions): NextAttempt | undefined {
  const { slot: used, now, mayRetryAtOnce } = options;
  const firstFailureAt = Math.min(options.firstFailureAt, now);
  const first = used === 0 && !mayRetryAtOnce ? 1 : used;
  if (first >= SLOTS_MS.length) return undefined;
  const passed = lastPassed(first, now - firstFailureAt);
  if (passed !== undefined) return { slot: passed, dueAt: heldBack(passed, now, firstFailureAt, options) };
  const dueAt = firstFailureAt + jittered(first, options.random);
  return { slot: first, dueAt: heldBack(first, dueAt, firstFailureAt, options) };
}

/** How many slots an attempt uses up that began then: its own, and those that had passed by that time. */
export function slotsUsed(slot: number, firstFailureAt: number, startedAt: number): number {
  return (lastPassed(slot, startedAt - firstFailureAt) ?? slot) + 1;
}

/** The last slot, from `first` on, whose time has come; the jitter of a slot does not put that off. */
function lastPassed(first: number, elapsedMs: number): number | undefined {
  const passed = SLOTS_MS.findLastIndex((offsetMs) => offsetMs <= elapsedMs);
  return passed >= first ? passed : undefined;
}

/** The offset of a slot with its jitter, which spreads the attempts of many deliveries that failed together. */
function jittered(slot: number, random: number): number {
  const offsetMs = SLOTS_MS[slot] ?? LAST_SLOT_MS;
  const gapMs = offsetMs - (SLOTS_MS[slot - 1] ?? 0);
  const jitterMs = Math.floor(random * Math.min(gapMs * JITTER_SHARE, MAX_JITTER_MS));
  return Math.min(offsetMs + jitterMs, LAST_SLOT_MS);
}

/** A time, put off as the receiver asked, but not past the last slot; the immediate retry is not put off. */
function heldBack(slot: number, dueAt: number, firstFailureAt: number, options: NextAttemptOptions): number {
  const { retryAfterMs, now } = options;
  if (retryAfterMs === undefined || slot === 0) return dueAt;
  return Math.max(dueAt, Math.min(now + Math.ceil(retryAfterMs), firstFailureAt + LAST_SLOT_MS));
}
