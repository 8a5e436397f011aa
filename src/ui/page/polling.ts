import type { PageParts } from "./view.ts";

/** Options of `Polling`. */
interface PollingOptions<T> {
  readonly clock: PageParts["clock"];
  readonly everyMs: number;
  readonly read: () => Promise<T>;
  readonly show: (value: T) => void;
  /** Returns true to stop. */
  readonly fail: (error: unknown) => boolean;
  /** Delays the next read, such as while the reader selects text. */
  readonly isBusy?: () => boolean;
}

/** Reads a value again and again while the page is visible; only the result of the latest read is shown. */
export class Polling<T> {
  readonly #options: PollingOptions<T>;
  #round = 0;
  #isClosed = false;
  #cancel = () => {};

  constructor(options: PollingOptions<T>) {
    this.#options = options;
  }

  /** Reads now, also instead of a read that has not ended; an action that ends after `close` reads nothing. */
  read(): void {
    if (this.#isClosed) return;
    this.#cancel();
    void this.#read(++this.#round);
  }

  close(): void {
    this.#isClosed = true;
    this.#round++;
    this.#cancel();
  }

  async #read(round: number): Promise<void> {
    const { read, show, fail } = this.#options;
    let isOver = false;
    try {
      const value = await read();
      if (round !== this.#round) return;
      show(value);
    } catch (error) {
      if (round !== this.#round) return;
      isOver = fail(error);
    }
    if (!isOver) this.#wait();
  }

  #wait(): void {
    const { clock, everyMs, isBusy } = this.#options;
    this.#cancel = clock.after(everyMs, () => {
      if (document.hidden || isBusy?.() === true) this.#wait();
      else this.read();
    });
  }
}
