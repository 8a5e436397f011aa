import { systemClock } from "../../src/base/clock.ts";

const TICK_MS = 5;

/**
 * Looks how long this process stood still at the most, until the end of a `using`. Where that is long the machine had no
 * time for its processes, and what they have to do within short limits of their own cannot be told from it.
 */
export class PauseWatch implements Disposable {
  #longestMs = 0;
  #cancel = () => {};

  constructor() {
    this.#tick();
  }

  /** The longest time until now. */
  get longestMs(): number {
    return this.#longestMs;
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }

  #tick(): void {
    const begin = systemClock.elapsed();
    this.#cancel = systemClock.after(TICK_MS, () => {
      this.#longestMs = Math.max(this.#longestMs, systemClock.elapsed() - begin);
      this.#tick();
    });
  }
}
