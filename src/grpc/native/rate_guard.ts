/** A token bucket. */
interface RateGuardOptions {
  readonly burst: number;
  readonly perSecond: number;
}

/** Limits an action of a peer by a token bucket. */
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

  /** Adds tokens, up to the burst. */
  earn(count: number): void {
    this.#left = Math.min(this.#options.burst, this.#left + count);
  }

  /** True if so many tokens are there without waiting. */
  has(cost: number): boolean {
    return this.#left >= cost;
  }

  /** Takes `cost` tokens; false when there are not enough. */
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
