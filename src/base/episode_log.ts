import type { Clock } from "./clock.ts";

/** A state that comes back within this time is not logged again. */
const INTERVAL_MS = 10_000;

/** Logs when a state begins and ends, and keeps one that comes and goes from filling the log. */
export class EpisodeLog {
  readonly #clock: Pick<Clock, "elapsed">;
  #isLogged = false;
  #loggedAt = -Infinity;

  constructor(clock: Pick<Clock, "elapsed">) {
    this.#clock = clock;
  }

  /** The state holds; called again while it does. `write` is called when it begins, or soon after another one. */
  begin(write: () => void): void {
    if (this.#isLogged) return;
    const now = this.#clock.elapsed();
    this.#isLogged = now - this.#loggedAt >= INTERVAL_MS;
    if (!this.#isLogged) return;
    this.#loggedAt = now;
    write();
  }

  /** The state is over; `write` is called when its beginning was logged. */
  end(write: () => void): void {
    if (this.#isLogged) write();
    this.#isLogged = false;
  }
}
