/**
 * A fair choice of at most so many values out of a stream of unknown length: each value has the same chance
 * to be kept. Chance is asked only when a value is kept, not for each that passes, because the distance to
 * the next one to keep is drawn ahead (Li, "Reservoir-Sampling Algorithms", 1994).
 */
export class TimerSamples {
  readonly #most: number;
  readonly #kept: Float64Array;
  readonly #random: () => number;
  #seen = 0;
  /** Which value, counted from 1, is the next to be kept beside those that first fill all places. */
  #next: number;
  /** Chance that the best value so far would still be kept; it shrinks with every value kept. */
  #share = 1;

  /** Keeps at most `most` values between two takes; `random` answers from 0 to below 1. */
  constructor(most: number, random: () => number) {
    this.#most = Math.max(1, Math.floor(most));
    this.#kept = new Float64Array(this.#most);
    this.#next = this.#most;
    this.#random = random;
  }

  /** Takes note of one value. */
  add(value: number): void {
    const seen = ++this.#seen;
    if (seen < this.#next) {
      if (seen < this.#most) this.#kept[seen - 1] = value;
      return;
    }
    const place = seen === this.#most ? seen - 1 : Math.floor(this.#random() * this.#most);
    this.#kept[place] = value;
    this.#drawNext();
  }

  /** The values that were kept since the last take and how many there were; starts anew. */
  take(): { readonly values: readonly number[]; readonly seen: number } {
    const seen = this.#seen;
    this.#seen = 0;
    this.#next = this.#most;
    this.#share = 1;
    return { values: Array.from(this.#kept.subarray(0, seen)), seen };
  }

  #drawNext(): void {
    this.#share *= Math.exp(Math.log(this.#chance()) / this.#most);
    // With a share next to nothing the distance is beyond all numbers: then no value is kept any more.
    const distance = Math.floor(Math.log(this.#chance()) / Math.log1p(-this.#share));
    this.#next = this.#seen + 1 + distance;
  }

  /** Above 0, because the logarithm of 0 is not a distance. */
  #chance(): number {
    return 1 - this.#random();
  }
}
