import type { Clock } from "./clock.ts";

/** Length of a slice. */
const SLICE_MS = 4;
/** Steps between two looks at the clock. */
const STEPS_PER_LOOK = 64;

/** Work that is done in slices, so that other work of the thread goes on in between. The first slice is done immediately. */
export class SlicedWork {
  readonly #clock: Clock;
  #steps: Iterator<void> | undefined;
  #cancel = () => {};

  constructor(steps: Iterator<void>, clock: Clock) {
    this.#clock = clock;
    this.#steps = steps;
    this.#slice();
  }

  /** Does all that is left immediately. */
  finish(): void {
    this.#cancel();
    while (this.#do(STEPS_PER_LOOK));
  }

  #slice(): void {
    const end = this.#clock.elapsed() + SLICE_MS;
    while (this.#do(STEPS_PER_LOOK)) {
      if (this.#clock.elapsed() < end) continue;
      this.#cancel = this.#clock.after(0, () => this.#slice());
      return;
    }
  }

  /** Does some steps; whether any are left. */
  #do(count: number): boolean {
    for (let step = 0; step < count; step++) {
      if (this.#steps?.next().done === false) continue;
      this.#steps = undefined;
      return false;
    }
    return true;
  }
}
