import type { Clock } from "../../../base/clock.ts";

/** Waits that each have a limit, of which at most `most` run at a time, and which end together. */
export class KvClusterWaits {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #ends = new Set<() => void>();
  #isClosed = false;

  constructor(clock: Clock, most = Infinity) {
    this.#clock = clock;
    this.#most = most;
  }

  get isFull(): boolean {
    return this.#ends.size >= this.#most;
  }

  /** Settles as the promise does, or with nothing: after this time, when it is full, and when it is closed. */
  within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
    if (this.#isClosed || ms <= 0 || this.isFull) {
      promise.catch(() => {});
      return Promise.resolve(undefined);
    }
    const { promise: wait, resolve, reject } = Promise.withResolvers<T | undefined>();
    const end = () => {
      this.#ends.delete(end);
      cancel();
      resolve(undefined);
    };
    const cancel = this.#clock.after(ms, end);
    this.#ends.add(end);
    promise.then(resolve, reject).then(end);
    return wait;
  }

  /** Ends every wait, and each later one immediately. */
  close(): void {
    this.#isClosed = true;
    for (const end of [...this.#ends]) end();
  }
}
