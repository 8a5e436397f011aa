import type { Clock } from "../base/clock.ts";

/** Options of `WakeLoop`. */
interface WakeLoopOptions {
  readonly clock: Clock;
  /** Does one round; answers whether another one may follow immediately. Never rejects. */
  readonly round: () => Promise<boolean>;
  /** A round begins at least this often. */
  readonly pollMs: number;
  /** Called before a round that no one asked for. */
  readonly onPoll?: (() => void) | undefined;
}

/** Runs rounds of work, one after the other: the next one when it is woken, when time is up, or while there is more. */
export class WakeLoop {
  readonly #options: WakeLoopOptions;
  #isRunning = false;
  #rounds: Promise<void> = Promise.resolve();
  #wakeUp = () => {};
  #cancelPoll = () => {};
  #cancelWake = () => {};
  /** When the timer of `wakeIn` ends, by the clock's `elapsed`. */
  #wakeAt = Infinity;

  constructor(options: WakeLoopOptions) {
    this.#options = options;
  }

  /** False before the start and from the stop on. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** Begins the first round. */
  start(): void {
    this.#isRunning = true;
    this.#poll();
    this.#rounds = this.#run();
  }

  /** A round begins now, or after the one under way. */
  wake(): void {
    this.#wakeUp();
  }

  /** Wakes after so long; an earlier timer stays, and its round may ask again. */
  wakeIn(ms: number): void {
    const { clock } = this.#options;
    const at = clock.elapsed() + ms;
    if (!this.#isRunning || this.#wakeAt <= at) return;
    this.#cancelWake();
    this.#wakeAt = at;
    this.#cancelWake = clock.after(ms, () => {
      this.#wakeAt = Infinity;
      this.wake();
    });
  }

  /** Begins no more rounds, and waits for the one under way. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#cancelPoll();
    this.#cancelWake();
    this.wake();
    await this.#rounds;
  }

  async #run(): Promise<void> {
    while (this.#isRunning) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wakeUp = resolve;
      if (!await this.#options.round()) await promise;
    }
  }

  #poll(): void {
    this.#cancelPoll = this.#options.clock.after(this.#options.pollMs, () => {
      this.#poll();
      this.#options.onPoll?.();
      this.wake();
    });
  }
}
