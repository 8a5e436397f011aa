import { type Clock, systemClock } from "../../src/base/clock.ts";

const TIMES = 8;

/**
 * A clock by which everything takes longer before it is given up: for what has short limits that no setting changes, and
 * is to be answered however busy the machine is. It tells the same time of day as the one that is given.
 */
export function slowClock(clock: Clock = systemClock): Clock {
  return {
    now: () => clock.now(),
    elapsed: () => systemClock.elapsed() / TIMES,
    after: (delayMs, run) => systemClock.after(delayMs * TIMES, run),
  };
}
