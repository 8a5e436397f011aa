import type { Clock } from "../../src/base/clock.ts";

interface Timer {
  readonly due: number;
  readonly run: () => void;
}

type Flow = "by hand" | "by turns" | "by waits";

/** A clock that stands still until a test advances it, or that advances in a way which does not depend on the machine. */
export class FakeClock implements Clock {
  /** How far the wall clock is ahead of the time that passes; a test may set it. */
  aheadMs = 0;
  /** Every delay that was asked for, in milliseconds. */
  readonly waits: number[] = [];
  readonly #flow: Flow;
  readonly #timers = new Set<Timer>();
  #now: number;
  #ticking: ReturnType<typeof setTimeout> | undefined;

  /** Starts at `now`, in milliseconds since the epoch. */
  constructor(now = 1_700_000_000_000, flow: Flow = "by hand") {
    this.#now = now;
    this.#flow = flow;
  }

  /**
   * A clock on which a millisecond is a turn of the event loop, of at least that length, while anything waits. Time stands
   * still while the machine does, so that a limit strikes only after work that was there had its many turns.
   */
  static byTurns(now?: number): FakeClock {
    return new FakeClock(now, "by turns");
  }

  /** A clock on which every wait ends immediately and moves time to its end. For calls without limits. */
  static byWaits(now?: number): FakeClock {
    return new FakeClock(now, "by waits");
  }

  now(): number {
    return this.#now + this.aheadMs;
  }

  elapsed(): number {
    return this.#now;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { due: this.#now + Math.max(0, delayMs), run };
    this.#timers.add(timer);
    this.waits.push(delayMs);
    if (this.#flow === "by turns") this.#tick();
    if (this.#flow === "by waits") queueMicrotask(() => this.#skipTo(timer));
    return () => {
      this.#timers.delete(timer);
      if (this.waiting > 0) return;
      clearTimeout(this.#ticking);
      this.#ticking = undefined;
    };
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

  #skipTo(timer: Timer): void {
    if (this.#timers.has(timer)) this.advance(timer.due - this.#now);
  }

  #tick(): void {
    if (this.waiting === 0) return;
    this.#ticking ??= setTimeout(() => {
      this.#ticking = undefined;
      this.advance(1);
      this.#tick();
    }, 1);
  }
}
