import { assertEquals } from "@std/assert";
import { systemClock } from "../../../src/base/clock.ts";

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Runs `body` with timers of its own: `fire` ends the one that was set last. */
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
