interface Known {
  value: number;
  /** The last round in which the name was there. */
  round: number;
}

/** What one sink was told of each counter, so that it hears only what came since. */
export class FlushCounts {
  readonly #known = new Map<string, Known>();
  #round = 0;
  #seen = 0;

  /** How many names are remembered. */
  get size(): number {
    return this.#known.size;
  }

  /** What a counter grew by since it was last asked for; one that began anew grew by all that it shows. */
  delta(name: string, value: number): number {
    const known = this.#known.get(name);
    if (known === undefined) {
      this.#known.set(name, { value, round: this.#round });
      this.#seen++;
      return value;
    }
    if (known.round !== this.#round) this.#seen++;
    known.round = this.#round;
    const delta = value - known.value;
    known.value = value;
    return delta < 0 ? value : delta;
  }

  /** Every counter was asked for: names that were not among them are forgotten. */
  endRound(): void {
    if (this.#seen < this.#known.size) {
      for (const [name, { round }] of this.#known) if (round !== this.#round) this.#known.delete(name);
    }
    this.#round++;
    this.#seen = 0;
  }
}
