import type { Clock } from "../../../base/clock.ts";

/** Waits that each have a limit: bounded in number, and ended all at once. */
export class KvClusterWaits {
  readonly #clock: Clock;
  readonly #most: number;
  readonly #ends = new Set<() => void>();
  #closed = false;

  constructor(clock: Clock, most: number) {
    this.#clock = clock;
    this.#most = most;
  }

  /** Whether nobody else can wait. */
  get full(): boolean {
    return this.#ends.size >= this.#most;
  }

  /**
   * Settles as the promise does, or with nothing: after this time, and at once when too many wait or
   * `close` was called.
   */
  within<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
    if (this.#closed || ms <= 0 || this.full) {
      promise.catch(() => {});
      return Promise.resolve(undefined);
    }
    return new Promise((resolve, reject) => {
      const end = () => {
        this.#ends.delete(end);
        cancel();
        resolve(undefined);
      };
      const cancel = this.#clock.after(ms, end);
      this.#ends.add(end);
      promise.then((value) => {
        resolve(value);
        end();
      }, (error) => {
        reject(error);
        end();
      });
    });
  }

  /** Waits so long. */
  async pause(ms: number): Promise<void> {
    await this.within(new Promise<never>(() => {}), ms);
  }

  /** Ends every wait, and each that is asked for later. */
  close(): void {
    this.#closed = true;
    for (const end of [...this.#ends]) end();
  }
}
