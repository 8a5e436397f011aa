import type { Clock } from "../../src/base/clock.ts";

interface Timer {
  readonly due: number;
  readonly run: () => void;
}

/** The clock of the machine, of which a test may skip some time: what is due by then comes at once. */
export class HurriedClock implements Clock {
  readonly #timers = new Map<Timer, ReturnType<typeof setTimeout>>();
  #skippedMs = 0;

  now(): number {
    return Math.floor(Date.now() + this.#skippedMs);
  }

  elapsed(): number {
    return performance.now() + this.#skippedMs;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { due: this.elapsed() + delayMs, run };
    this.#timers.set(timer, setTimeout(() => this.#end(timer), delayMs));
    return () => this.#drop(timer);
  }

  /** Skips so much time: runs what is due by then, in its order, new timers included. */
  hurry(ms: number): void {
    const end = this.elapsed() + ms;
    for (;;) {
      const [first] = [...this.#timers.keys()].sort((a, b) => a.due - b.due);
      if (first === undefined || first.due > end) break;
      this.#skippedMs += Math.max(0, first.due - this.elapsed());
      this.#end(first);
    }
    this.#skippedMs += Math.max(0, end - this.elapsed());
  }

  #end(timer: Timer): void {
    this.#drop(timer);
    timer.run();
  }

  #drop(timer: Timer): void {
    clearTimeout(this.#timers.get(timer));
    this.#timers.delete(timer);
  }
}
