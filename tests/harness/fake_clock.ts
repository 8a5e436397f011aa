import type { Clock } from "../../src/base/clock.ts";

interface Timer {
  readonly due: number;
  readonly run: () => void;
}

/** A clock that stands still until a test moves it. */
export class FakeClock implements Clock {
  #now: number;
  readonly #timers = new Set<Timer>();

  /** Starts at `now`, in milliseconds since the epoch. */
  constructor(now = 1_700_000_000_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  elapsed(): number {
    return this.#now;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { due: this.#now + Math.max(0, delayMs), run };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** How many timers wait; 0 after everything that used the clock has let go of it. */
  get waiting(): number {
    return this.#timers.size;
  }

  /** Moves time on and runs what became due, in order of time and then of request, new timers included. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (let timer = this.#next(end); timer !== undefined; timer = this.#next(end)) {
      this.#timers.delete(timer);
      this.#now = timer.due;
      timer.run();
    }
    this.#now = end;
  }

  #next(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.due <= end && (first === undefined || timer.due < first.due)) first = timer;
    }
    return first;
  }
}
