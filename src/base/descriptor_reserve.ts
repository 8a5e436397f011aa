import { isOutOfDescriptors } from "./accept_guard.ts";

/** Enough to read files, to log and to start a worker. */
const RESERVED = 16;

/**
 * File descriptors that are held so that the process never has none: Deno 2.9.3 ends the process when a worker is
 * started, or the stack of an error is read for the first time, with no descriptor left.
 */
export class DescriptorReserve {
  readonly #held: Deno.FsFile[] = [];

  /** Holds the reserve. Throws when not all of it, and one more, can be had; then it is released. */
  hold(): void {
    try {
      while (this.#held.length < RESERVED) this.#held.push(Deno.openSync("/dev/null"));
      Deno.openSync("/dev/null").close();
    } catch (error) {
      if (!isOutOfDescriptors(error)) return;
      this.release();
      throw error;
    }
  }

  /** Gives the descriptors to the rest of the process. */
  release(): void {
    for (const file of this.#held.splice(0)) file.close();
  }
}
