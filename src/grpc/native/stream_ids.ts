import { LIMITS } from "./limits.ts";

/** Remembers ids of former streams, to tell late frames from wrong ones. */
export class StreamIds {
  /** The highest id that was opened. */
  last = 0;
  /** Ranges of ids that the peer skipped. */
  readonly #skipped: (readonly [from: number, to: number])[] = [];
  readonly #resetHere = new Set<number>();

  /** Opens a stream, whose id is above the last one. */
  open(id: number): void {
    if (id > this.last + 2) {
      this.#skipped.push([this.last + 1, id - 1]);
      if (this.#skipped.length > LIMITS.remembered) this.#skipped.shift();
    }
    this.last = id;
  }

  /** True if the id was skipped when a higher one was opened. */
  wasSkipped(id: number): boolean {
    return this.#skipped.some(([from, to]) => id >= from && id <= to);
  }

  /** We reset the stream: frames already on their way are ignored. */
  rememberReset(id: number): void {
    this.#resetHere.add(id);
    if (this.#resetHere.size <= LIMITS.remembered) return;
    const [oldest] = this.#resetHere;
    if (oldest !== undefined) this.#resetHere.delete(oldest);
  }

  /** True if we reset the stream recently. */
  wasResetHere(id: number): boolean {
    return this.#resetHere.has(id);
  }
}
