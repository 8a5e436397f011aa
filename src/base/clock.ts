import { setImmediate } from "node:timers";

/** The source of time; tests inject their own. */
export interface Clock {
  /** Wall clock time in milliseconds since the Unix epoch, with fractions. */
  now(): number;
  /** Monotonic milliseconds, with fractions, to measure durations. */
  elapsed(): number;
  /**
   * Calls `run` once after `delayMs`; the returned function cancels it and may be called twice. A late call runs after
   * the pending input was read: what arrived while the thread was blocked was in time.
   */
  after(delayMs: number, run: () => void): () => void;
}

/** The longest delay of a platform timer; a longer one fires immediately. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A timer that fires later than this is late; timers of the platform are up to 2 ms late on an idle machine. */
const LATE_MS = 5;

/** The clock of the system. */
export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(delayMs, run) {
    if (delayMs > LONGEST_TIMER_MS) return afterLong(delayMs, run);
    const dueAt = performance.now() + delayMs;
    let cancel = () => clearTimeout(timer);
    const timer = setTimeout(() => {
      if (performance.now() - dueAt > LATE_MS) cancel = afterInput(run);
      else run();
    }, delayMs);
    return () => cancel();
  },
};

/** The platform looks for input when it has nothing else to do, or after 61 turns of the event loop. */
const TURNS_OF_INPUT = 80;
/** A turn that takes longer, because it has much to do or its thread has no core. */
const LONG_TURN_MS = 10;
/** Long turns, such as those of a blocked store, may not postpone a timer without end. */
const MAX_LONG_TURNS = 8;

/** When a late timer runs: with the first one of these turns, counted among all and among the long ones. */
interface InputEnd {
  readonly turn: number;
  readonly longTurn: number;
}

/** Work that runs after input was read, in the order in which it is due. */
const afterTurns = new Map<() => void, InputEnd>();
let turns = 0;
let longTurns = 0;
let turnedAtMs = 0;
/** True while the next turn is awaited: two at the same time would count each turn twice. */
let isTurning = false;

/** Runs something after all input that is there was read, which takes less than a millisecond on an idle machine. */
function afterInput(run: () => void): () => void {
  const own = () => run();
  afterTurns.set(own, { turn: turns + TURNS_OF_INPUT, longTurn: longTurns + MAX_LONG_TURNS });
  if (!isTurning) awaitTurn();
  return () => void afterTurns.delete(own);
}

function nextTurn(): void {
  turns++;
  if (performance.now() - turnedAtMs > LONG_TURN_MS) longTurns++;
  for (const [run, { turn, longTurn }] of afterTurns) {
    if (turn > turns && longTurn > longTurns) break;
    // In separate steps: one may throw, or cancel another.
    queueMicrotask(() => {
      if (afterTurns.delete(run)) run();
    });
  }
  isTurning = false;
  if (afterTurns.size > 0) awaitTurn();
}

function awaitTurn(): void {
  isTurning = true;
  turnedAtMs = performance.now();
  setImmediate(nextTurn);
}

function afterLong(delayMs: number, run: () => void): () => void {
  const rest = () => cancel = systemClock.after(delayMs - LONGEST_TIMER_MS, run);
  let cancel = systemClock.after(LONGEST_TIMER_MS, rest);
  return () => cancel();
}

/** A clock that never goes back by less than a second, and says so when it goes back further. */
export interface SteadyClock extends Clock {
  /** Calls `run` with the new time after each step back by more than a second; the returned function ends that. */
  onSetBack(run: (now: number) => void): () => void;
}

/** A step back up to this long is waited for: time stands still. */
const HELD_MS = 1_000;
/** All that decide by one clock see the same steps. */
const steadyClocks = new WeakMap<Clock, SteadyClock>();

/** The clock that decisions read, for a clock that may be set back; always the same one for the same clock. */
export function steadyClock(clock: Clock): SteadyClock {
  if (clock instanceof HeldClock) return clock;
  let steady = steadyClocks.get(clock);
  if (steady === undefined) steadyClocks.set(clock, steady = new HeldClock(clock));
  return steady;
}

class HeldClock implements SteadyClock {
  readonly #clock: Clock;
  readonly #listeners = new Set<(now: number) => void>();
  /** The latest time that was read. */
  #latest = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    const now = this.#clock.now();
    if (now < this.#latest) return this.#behind(now);
    return this.#latest = now;
  }

  elapsed(): number {
    return this.#clock.elapsed();
  }

  after(delayMs: number, run: () => void): () => void {
    return this.#clock.after(delayMs, run);
  }

  onSetBack(run: (now: number) => void): () => void {
    this.#listeners.add(run);
    return () => void this.#listeners.delete(run);
  }

  #behind(now: number): number {
    if (this.#latest - now <= HELD_MS) return this.#latest;
    this.#latest = now;
    for (const run of this.#listeners) run(now);
    return now;
  }
}
