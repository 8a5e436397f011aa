import type { Clock } from "./clock.ts";

/** Length of a slice. */
const SLICE_MS = 4;
/** Steps between two looks at the clock. */
const STEPS_PER_LOOK = 64;

/** Work that is done in slices, so that other work of the thread goes on in between. The first slice is done immediately. */
export class SlicedWork {
  readonly #clock: Clock;
  readonly #ended = Promise.withResolvers<void>();
  #steps: Iterator<void> | undefined;
  #failure: { readonly error: unknown } | undefined;
  #cancel = () => {};

  constructor(steps: Iterator<void>, clock: Clock) {
    this.#clock = clock;
    this.#steps = steps;
    this.#slice();
  }

  /** True if nothing is left to do. */
  get isDone(): boolean {
    return this.#steps === undefined;
  }

  /** Settles when the last step is done; rejects with what a step throws after the first slice. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Does nothing more; `ended` stays pending. */
  cancel(): void {
    this.#cancel();
  }

  /** Does all that is left immediately; throws what a step threw. */
  finish(): void {
    this.#cancel();
    if (this.#failure !== undefined) throw this.#failure.error;
    while (this.#do(STEPS_PER_LOOK));
  }

  #slice(): void {
    const end = this.#clock.elapsed() + SLICE_MS;
    while (this.#do(STEPS_PER_LOOK)) {
      if (this.#clock.elapsed() < end) continue;
      this.#cancel = this.#clock.after(0, () => {
        try {
          this.#slice();
        } catch (error) {
          this.#failure = { error };
          this.#ended.reject(error);
        }
      });
      return;
    }
  }

  /** Does some steps; whether any are left. */
  #do(count: number): boolean {
    for (let step = 0; step < count; step++) {
      if (this.#steps?.next().done === false) continue;
      this.#steps = undefined;
      this.#ended.resolve();
      return false;
    }
    return true;
  }
}
