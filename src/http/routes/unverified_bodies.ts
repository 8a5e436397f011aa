/** Asks whether so many more bytes may be held. */
export type HoldBytes = (bytes: number) => boolean;

/** Bounds the memory of bodies whose senders are unknown until the whole body was read. */
export class UnverifiedBodies {
  readonly #maxBytes: number;
  #heldBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Runs work on one body; what it holds is released when it ends. */
  async holding<T>(work: (hold: HoldBytes) => Promise<T>): Promise<T> {
    let bytes = 0;
    let isOver = false;
    const hold = (more: number) => {
      // A part may arrive after its body was given up.
      if (isOver || this.#heldBytes + more > this.#maxBytes) return false;
      this.#heldBytes += more;
      bytes += more;
      return true;
    };
    try {
      return await work(hold);
    } finally {
      isOver = true;
      this.#heldBytes -= bytes;
    }
  }
}
