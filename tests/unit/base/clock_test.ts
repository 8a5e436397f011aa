import { assertEquals } from "#assert";
import { steadyClock, systemClock } from "../../../src/base/clock.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Runs `body` with its own timers: `fire` ends the one that was set last. */
function withTimers(body: (delays: readonly number[], fire: () => void) => void): void {
  const { setTimeout, clearTimeout } = globalThis;
  const delays: number[] = [];
  let pending: (() => void) | undefined;
  const set = (run: () => void, delayMs: number) => {
    pending = run;
    return delays.push(delayMs);
  };
  Object.assign(globalThis, { setTimeout: set, clearTimeout: () => (pending = undefined) });
  try {
    body(delays, () => pending?.());
  } finally {
    Object.assign(globalThis, { setTimeout, clearTimeout });
  }
}

Deno.test("system clock: a delay longer than the platform's longest timer is waited for in parts", () => {
  let runs = 0;
  withTimers((delays, fire) => {
    systemClock.after(2 * LONGEST_TIMER_MS + 5, () => runs++);
    for (let left = 3; left > 0; left--) fire();
    assertEquals([runs, delays], [1, [LONGEST_TIMER_MS, LONGEST_TIMER_MS, 5]]);
  });
});

Deno.test("system clock: a long delay can be cancelled in its second part", () => {
  let runs = 0;
  withTimers((delays, fire) => {
    const cancel = systemClock.after(LONGEST_TIMER_MS + 5, () => runs++);
    fire();
    cancel();
    fire();
    assertEquals([runs, delays], [0, [LONGEST_TIMER_MS, 5]]);
  });
});

Deno.test("a steady clock stands still for up to a second, and takes a time that is set back further", () => {
  const clock = new FakeClock(100_000);
  const steady = steadyClock(clock);
  const steps: number[] = [];
  const cancel = steady.onSetBack((now) => void steps.push(now));
  const read = (ms: number) => {
    clock.aheadMs += ms;
    return steady.now();
  };
  assertEquals([read(0), read(-1_000), read(999), read(2)], [100_000, 100_000, 100_000, 100_001]);
  assertEquals([read(-1_001), read(5), read(-3_600_000)], [99_000, 99_005, -3_500_995]);
  cancel();
  assertEquals([read(10_000), read(-9_000), steps], [-3_490_995, -3_499_995, [99_000, -3_500_995]]);
  // All that share a clock share its steps.
  assertEquals([steadyClock(clock) === steady, steadyClock(steady) === steady], [true, true]);
});
