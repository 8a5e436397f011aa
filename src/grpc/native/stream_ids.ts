import { LIMITS } from "./limits.ts";

/** Which streams of a connection there have been, to tell frames that come late from frames that are wrong. */
export class StreamIds {
  /** The highest stream that was opened. */
  last = 0;
  /** Ranges of ids that the peer left out; they were never open. */
  readonly #skipped: (readonly [from: number, to: number])[] = [];
  readonly #resetHere = new Set<number>();

  /** A stream is opened; its id is above the last one. */
  open(id: number): void {
    if (id > this.last + 2) {
      this.#skipped.push([this.last + 1, id - 1]);
      if (this.#skipped.length > LIMITS.remembered) this.#skipped.shift();
    }
    this.last = id;
  }

  /** Whether the id was left out when a higher one was opened. */
  wasSkipped(id: number): boolean {
    return this.#skipped.some(([from, to]) => id >= from && id <= to);
  }

  /** We reset the stream: frames that are on their way are to be passed over. */
  rememberReset(id: number): void {
    this.#resetHere.add(id);
    if (this.#resetHere.size <= LIMITS.remembered) return;
    const [oldest] = this.#resetHere;
    if (oldest !== undefined) this.#resetHere.delete(oldest);
  }

  /** Whether we reset the stream, as far as it is remembered. */
  wasResetHere(id: number): boolean {
    return this.#resetHere.has(id);
  }
}
