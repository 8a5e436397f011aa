/** How often a peer may do what costs us and brings nothing. */
export interface RateGuardOptions {
  /** How many times at once. */
  readonly burst: number;
  /** How many times a second in the long run. */
  readonly perSecond: number;
}

/** Counts what a peer does against a bound that fills up again with time. */
export class RateGuard {
  readonly #options: RateGuardOptions;
  #left: number;
  #filledAt: number;

  /** `now` in milliseconds; only differences count. */
  constructor(options: RateGuardOptions, now: number) {
    this.#options = options;
    this.#left = options.burst;
    this.#filledAt = now;
  }

  /** Allows so many more, never more than the burst. */
  earn(count: number): void {
    this.#left = Math.min(this.#options.burst, this.#left + count);
  }

  /** Counts `cost`; false when that was too much. */
  allows(now: number, cost = 1): boolean {
    if (this.#left < cost) {
      const { burst, perSecond } = this.#options;
      this.#left = Math.min(burst, this.#left + Math.max(0, now - this.#filledAt) * perSecond / 1000);
      this.#filledAt = now;
    }
    this.#left -= cost;
    return this.#left >= 0;
  }
}
