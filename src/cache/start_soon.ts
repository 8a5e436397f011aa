import { clearImmediate, setImmediate } from "node:timers";
import type { Clock } from "../base/clock.ts";

/** Below this a timer is less exact than the next turn of the event loop, which is some microseconds away. */
const SHORTEST_TIMER_MS = 2;

/**
 * Runs something when others have had so many milliseconds to join: at the end of this turn for 0, in the
 * next turn for less than a timer can tell. The answer cancels it, as far as that is still of use.
 */
export function startSoon(delayMs: number, clock: Clock, run: () => void): () => void {
  if (delayMs >= SHORTEST_TIMER_MS) return clock.after(delayMs, run);
  if (delayMs > 0) {
    const immediate = setImmediate(run);
    return () => clearImmediate(immediate);
  }
  queueMicrotask(run);
  return nothing;
}

function nothing(): void {}
