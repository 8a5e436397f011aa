import type { CallMetrics } from "../grpc_service.ts";

/** After so many calls the clock is read without waiting for the next output. */
const MAX_NOTED = 256;

/**
 * Calls that are over and whose duration is not recorded yet. The clock is read once for all calls that end before
 * the same output is written, because a reading costs a good part of a call.
 */
export class EndedCalls {
  readonly #now: () => number;
  readonly #startedAt = new Float64Array(MAX_NOTED);
  readonly #metrics: CallMetrics[] = [];
  #noted = 0;

  /** `now` returns milliseconds; only differences count. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Notes a call that is over. */
  note(metrics: CallMetrics, startedAt: number): void {
    this.#startedAt[this.#noted] = startedAt;
    this.#metrics[this.#noted] = metrics;
    this.#noted++;
    if (this.#noted === MAX_NOTED) this.flush();
  }

  /** Records the durations of the calls noted since the last time. */
  flush(): void {
    if (this.#noted === 0) return;
    const now = this.#now();
    const count = this.#noted;
    this.#noted = 0;
    for (let index = 0; index < count; index++) {
      this.#metrics[index]?.ended(now - (this.#startedAt[index] ?? now));
    }
  }
}
