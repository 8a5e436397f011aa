import type { Clock } from "./clock.ts";

/** A state that returns within this time is not logged again. */
const INTERVAL_MS = 10_000;

/** Logs when a state begins and ends, unless it comes and goes too often. */
export class EpisodeLog {
  readonly #clock: Pick<Clock, "elapsed">;
  #isLogged = false;
  #loggedAt = -Infinity;

  constructor(clock: Pick<Clock, "elapsed">) {
    this.#clock = clock;
  }

  /** Call this while the state holds; `write` runs when it begins. */
  begin(write: () => void): void {
    if (this.#isLogged) return;
    const now = this.#clock.elapsed();
    this.#isLogged = now - this.#loggedAt >= INTERVAL_MS;
    if (!this.#isLogged) return;
    this.#loggedAt = now;
    write();
  }

  /** The state is over; `write` runs if its beginning was logged. */
  end(write: () => void): void {
    if (this.#isLogged) write();
    this.#isLogged = false;
  }
}
