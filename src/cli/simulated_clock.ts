import type { Clock } from "../base/clock.ts";

/** A clock that is where it was moved to last. A timer that is late runs once, when the clock has moved. */
export class SimulatedClock implements Clock {
  #now = 0;
  readonly #timers = new Set<{ readonly due: number; readonly run: () => void }>();

  now(): number {
    return this.#now;
  }

  elapsed(): number {
    return this.#now;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { due: this.#now + delayMs, run };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Moves on to a time in milliseconds since the epoch; one that is past is not gone back to. */
  moveTo(time: number): void {
    if (time <= this.#now) return;
    this.#now = time;
    for (const timer of [...this.#timers]) {
      if (timer.due > time || !this.#timers.delete(timer)) continue;
      timer.run();
    }
  }
}
