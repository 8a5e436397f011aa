import type { CallFigures } from "../grpc_service.ts";

/** With so many calls noted the clock is read without waiting for the next output. */
const MAX_NOTED = 256;

/**
 * Calls that are over and whose duration is not told yet. The clock is read once for all that end before
 * the same output goes out, because a reading costs as much as a good part of a call.
 */
export class EndedCalls {
  readonly #now: () => number;
  readonly #startedAt = new Float64Array(MAX_NOTED);
  readonly #figures: CallFigures[] = [];
  #noted = 0;

  /** `now` answers milliseconds; only differences count. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Takes note of a call that started then and is over. */
  note(figures: CallFigures, startedAt: number): void {
    this.#startedAt[this.#noted] = startedAt;
    this.#figures[this.#noted] = figures;
    this.#noted++;
    if (this.#noted === MAX_NOTED) this.tell();
  }

  /** Tells how long the calls took that ended since it was last asked to. */
  tell(): void {
    if (this.#noted === 0) return;
    const now = this.#now();
    const count = this.#noted;
    this.#noted = 0;
    for (let index = 0; index < count; index++) {
      this.#figures[index]?.ended(now - (this.#startedAt[index] ?? now));
    }
  }
}
