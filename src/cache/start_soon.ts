import { clearImmediate, setImmediate } from "node:timers";
import type { Clock } from "../base/clock.ts";

/** No timer ends sooner, however short it is; a turn of the event loop takes some microseconds. */
const SHORTEST_TIMER_MS = 2;

/**
 * Runs something when others have had so many milliseconds to join: at the end of this turn for 0. What is
 * too short for a timer is waited for turn by turn, which keeps the thread busy and holds nothing else up.
 */
export function startSoon(delayMs: number, clock: Clock, run: () => void): () => void {
  if (delayMs >= SHORTEST_TIMER_MS) return clock.after(delayMs, run);
  if (delayMs <= 0) {
    queueMicrotask(run);
    return nothing;
  }
  const dueAt = clock.elapsed() + delayMs;
  let immediate = setImmediate(look);
  function look(): void {
    if (clock.elapsed() >= dueAt) run();
    else immediate = setImmediate(look);
  }
  return () => clearImmediate(immediate);
}

function nothing(): void {}
