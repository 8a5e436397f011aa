import { backoffMs, fullBackoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";

/** Failures in a row that open it. */
const FAILURES_TO_OPEN = 5;
/** Waits before the next attempt. */
const WAITS = { firstMs: 100, longestMs: 5_000 };

/** A circuit breaker. Open, it lets one attempt pass after each wait, which closes it or makes the wait longer. */
export class Breaker {
  /** The number of times that it opened. */
  opened = 0;
  readonly #options: { readonly clock: Clock; readonly random: () => number };
  #failures = 0;
  #trying = false;
  /** Counted from 1 since it opened; 0 while it is closed. */
  #attempt = 0;
  #retryAt = 0;
  #reason = "";

  /** `random` returns a number from 0 to below 1. */
  constructor({ clock, random }: { readonly clock: Clock; readonly random: () => number }) {
    this.#options = { clock, random };
  }

  get isOpen(): boolean {
    return this.#attempt > 0;
  }

  /** Why nothing passes. */
  get refusal(): string {
    return `it failed again and again, last: ${this.#reason}`;
  }

  /** Returns true if an attempt may be made; it ends with one of the next three calls. */
  tryPass(): boolean {
    if (!this.isOpen) return true;
    const left = this.#retryAt - this.#options.clock.now();
    // A clock that was set back does not keep it open.
    if (this.#trying || (left > 0 && left <= fullBackoffMs(this.#attempt, WAITS))) return false;
    this.#trying = true;
    return true;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#trying = false;
    this.#attempt = 0;
  }

  failed(reason: string): void {
    this.#reason = reason;
    // The attempt began before the breaker opened.
    if (this.isOpen && !this.#trying) return;
    if (!this.isOpen) {
      if (++this.#failures < FAILURES_TO_OPEN) return;
      this.opened++;
    }
    this.#attempt++;
    this.#trying = false;
    const { clock, random } = this.#options;
    this.#retryAt = clock.now() + backoffMs(this.#attempt, random(), WAITS);
  }

  /** An attempt was not made after all. */
  released(): void {
    this.#trying = false;
  }
}
