import { FakeClock } from "./fake_clock.ts";

/**
 * A clock that goes by the turns of this process: a millisecond is a turn of its event loop, of at least that length. Time
 * stands still while the machine does, so that a limit strikes only after work that was there had its many turns.
 */
export class TurnClock extends FakeClock {
  #ticking: ReturnType<typeof setTimeout> | undefined;

  override after(delayMs: number, run: () => void): () => void {
    const cancel = super.after(delayMs, run);
    this.#tick();
    return () => {
      cancel();
      if (this.waiting === 0) this.#stop();
    };
  }

  /** While anybody waits. */
  #tick(): void {
    if (this.waiting > 0) this.#ticking ??= setTimeout(() => this.#turn(), 1);
  }

  #turn(): void {
    this.#ticking = undefined;
    this.advance(1);
    this.#tick();
  }

  #stop(): void {
    clearTimeout(this.#ticking);
    this.#ticking = undefined;
  }
}
