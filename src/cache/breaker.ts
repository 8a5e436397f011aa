import { backoffMs, fullBackoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";

/** Failures in a row after which nothing is tried any more. */
const FAILURES_TO_OPEN = 5;
/** Waits before it is tried again. */
const WAITS = { firstMs: 100, longestMs: 5_000 };

/** What a breaker is made with. */
export interface BreakerOptions {
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
}

/**
 * Keeps callers from waiting for something that fails again and again: after several failures in a row
 * it opens, and nothing passes. When a wait is over one attempt passes; what becomes of it closes the
 * breaker or makes the next wait longer.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  #failures = 0;
  #open = false;
  #trying = false;
  /** The attempt that is waited for or made, counted from 1 since it opened. */
  #attempt = 1;
  #retryAt = 0;
  #opened = 0;
  #reason = "";

  constructor(options: BreakerOptions) {
    this.#options = options;
  }

  /** Nothing passes but an attempt now and then. */
  get open(): boolean {
    return this.#open;
  }

  /** How often it opened. */
  get opened(): number {
    return this.#opened;
  }

  /** What failed last. */
  get reason(): string {
    return this.#reason;
  }

  /** Whether an attempt may be made. Who is let pass says what became of it by one of the next three. */
  tryPass(): boolean {
    if (!this.#open) return true;
    const left = this.#retryAt - this.#options.clock.now();
    // A clock that was set back must not keep it open until it has caught up.
    if (this.#trying || (left > 0 && left <= fullBackoffMs(this.#attempt, WAITS))) return false;
    this.#trying = true;
    return true;
  }

  /** An attempt went well. */
  succeeded(): void {
    this.#failures = 0;
    if (!this.#open) return;
    this.#open = false;
    this.#trying = false;
    this.#attempt = 1;
  }

  /** An attempt failed. */
  failed(reason: string): void {
    this.#reason = reason;
    if (!this.#open) {
      if (++this.#failures < FAILURES_TO_OPEN) return;
      this.#open = true;
      this.#opened++;
    } else if (this.#trying) {
      this.#attempt++;
    } else {
      // It was sent before the breaker opened, and says nothing new.
      return;
    }
    this.#trying = false;
    const { clock, random } = this.#options;
    this.#retryAt = clock.now() + backoffMs(this.#attempt, random(), WAITS);
  }

  /** An attempt was not made after all. */
  released(): void {
    this.#trying = false;
  }
}
