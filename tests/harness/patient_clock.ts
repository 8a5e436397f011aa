import { type Clock, systemClock } from "../../src/base/clock.ts";

/** Waits of at least so long are limits or pauses of the product, not turns of its work. */
const LIMIT_MS = 500;
const PATIENCE = 30;

/**
 * The time of the machine, but limits strike thirty times as late: what is within them stays so where the machine is slow
 * or stands still for seconds. For tests in which no limit is to strike.
 */
export const patientClock: Clock = {
  ...systemClock,
  after: (delayMs, run) => systemClock.after(delayMs < LIMIT_MS ? delayMs : delayMs * PATIENCE, run),
};
