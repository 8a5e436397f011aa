import { type Clock, systemClock } from "../../src/base/clock.ts";

/** How a clock differs from the one that it goes by. */
export interface ScaledClockOptions {
  /** The clock that it goes by; that of the machine if absent. */
  readonly of?: Clock;
  /** How many times as long every delay is, and how many times slower `elapsed` goes; 1 if absent. */
  readonly factor?: number;
  /** Shorter delays keep their length: they are turns of the work, not limits. With it, `elapsed` is not scaled. */
  readonly fromMs?: number;
  /** The time of day, in milliseconds since the epoch, in place of that of the other clock. */
  readonly now?: number | (() => number);
  /** How far the wall clock is ahead. */
  readonly aheadMs?: number;
}

/** A clock that goes by another one. */
export interface ScaledClock extends Clock {
  /** How far the wall clock is ahead; a test may set it. */
  aheadMs: number;
  /** How much more time `elapsed` has counted; a test may set it. */
  elapsedAheadMs: number;
}

/**
 * A clock that goes by another one, with delays that are longer, or a time of day that differs: limits of the product do
 * not strike on a slow machine, and no window ends during a test.
 */
export function scaledClock(
  { of = systemClock, factor = 1, fromMs, now = () => of.now(), aheadMs = 0 }: ScaledClockOptions = {},
): ScaledClock {
  const time = typeof now === "number" ? () => now : now;
  const slower = fromMs === undefined ? factor : 1;
  const clock: ScaledClock = {
    aheadMs,
    elapsedAheadMs: 0,
    now: () => time() + clock.aheadMs,
    elapsed: () => of.elapsed() / slower + clock.elapsedAheadMs,
    after: (delayMs, run) => of.after(delayMs < (fromMs ?? 0) ? delayMs : delayMs * factor, run),
  };
  return clock;
}

/** The time of the machine, but limits strike thirty times as late. For tests in which no limit is to strike. */
export const patientClock: Clock = scaledClock({ factor: 30, fromMs: 500 });

/**
 * Sets the wall clock of this thread ahead, as if somebody had set that of its machine; what measures how long something
 * takes is left alone, as it is there.
 */
export function shiftWallClock(aheadMs = 0): void {
  if (aheadMs === 0) return;
  const real = Date.now;
  Date.now = () => real() + aheadMs;
}
