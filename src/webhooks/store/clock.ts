import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";

/** What a store clock is made of. */
export interface StoreClockOptions {
  /** The clock of this machine. Of its wall clock nothing is taken, it is only compared. */
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How often the database is asked. */
const MEASURE_MS = 5_000;
/** How often in a row: of these the answer that came back first is believed. */
const QUESTIONS = 3;
/** The wall clock and `elapsed` part by so much when the machine slept, or when one of them was set. */
const STEP_MS = 500;
/** Because of that it is asked no more often than this. */
const STEP_PAUSE_MS = 1_000;
/** A wall clock that is further off is told of, this often. */
const FAR_MS = 60_000;
const TELL_MS = 60_000;

/**
 * The time of the database that several machines share, as each of them knows it: `elapsed` of this machine, and how
 * far the database's clock is ahead of that. So two machines mean the same moment, whatever their own clocks say. Until
 * `start` it has the time of this machine.
 */
export class StoreClock implements Clock {
  readonly #clock: Clock;
  readonly #logger: Logger;
  #ask: (() => Promise<number>) | undefined;
  /** How far the database's clock is ahead of `elapsed`. */
  #ahead: number | undefined;
  /** How far the wall clock was ahead of `elapsed` when the database was asked last. */
  #wallAhead = 0;
  #measuring: Promise<void> | undefined;
  #isClosed = false;
  #nextStep = -Infinity;
  #nextTell = -Infinity;
  #cancel = () => {};

  constructor({ clock, logger }: StoreClockOptions) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** Asks the database for its time, and goes on to; throws when it cannot be asked now. */
  async start(databaseTime: () => Promise<number>): Promise<void> {
    this.#ask = databaseTime;
    await this.#measure();
    this.#measureLater();
  }

  /** Asks the database no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#measuring;
  }

  /** In whole milliseconds, as they are stored. */
  now(): number {
    if (this.#ahead === undefined) return Math.floor(this.#clock.now());
    const elapsed = this.#clock.elapsed();
    const step = this.#clock.now() - elapsed - this.#wallAhead;
    // `elapsed` may stand still while the machine sleeps.
    if (Math.abs(step) > STEP_MS && elapsed >= this.#nextStep) {
      this.#nextStep = elapsed + STEP_PAUSE_MS;
      this.remeasure();
    }
    return Math.floor(elapsed + this.#ahead);
  }

  elapsed(): number {
    return this.#clock.elapsed();
  }

  after(delayMs: number, run: () => void): () => void {
    return this.#clock.after(delayMs, run);
  }

  /** Asks the database soon: another one may answer since a connection was made anew. */
  remeasure(): void {
    if (this.#ahead === undefined || this.#isClosed) return;
    // A database that cannot be asked is told of by those who need it.
    this.#measuring ??= this.#measure().catch(() => {}).finally(() => this.#measuring = undefined);
  }

  /** How far the wall clock of this machine is ahead of the database's. */
  get wallAheadMs(): number {
    return this.#ahead === undefined ? 0 : this.#clock.now() - this.#clock.elapsed() - this.#ahead;
  }

  /** What is wrong with the wall clock of this machine; nothing while it is near the database's. */
  get problem(): string | undefined {
    const ahead = this.wallAheadMs;
    if (Math.abs(ahead) <= FAR_MS) return undefined;
    const side = ahead > 0 ? "ahead of" : "behind";
    return `the clock of this machine is ${
      Math.round(Math.abs(ahead) / 1_000)
    } s ${side} that of the database`;
  }

  #measureLater(): void {
    if (this.#isClosed) return;
    this.#cancel = this.#clock.after(MEASURE_MS, () => {
      this.remeasure();
      this.#measureLater();
    });
  }

  async #measure(): Promise<void> {
    const best = await this.#asked();
    if (best === undefined) return;
    const { ahead, error } = best;
    // What is believed changes no more than what was seen demands, so that the clock does not waver.
    this.#ahead = this.#ahead === undefined
      ? ahead
      : Math.min(Math.max(this.#ahead, ahead - error), ahead + error);
    this.#wallAhead = this.#clock.now() - this.#clock.elapsed();
    this.#tell();
  }

  /** How far the database's clock is ahead, and by how much that may be wrong at most. */
  async #asked(): Promise<{ readonly ahead: number; readonly error: number } | undefined> {
    let best: { ahead: number; error: number } | undefined;
    for (let question = 0; question < QUESTIONS && !this.#isClosed; question++) {
      const begin = this.#clock.elapsed();
      const time = await this.#ask?.();
      if (time === undefined) break;
      const error = (this.#clock.elapsed() - begin) / 2;
      if (best === undefined || error < best.error) best = { ahead: time - begin - error, error };
    }
    return best;
  }

  #tell(): void {
    const { problem } = this;
    const elapsed = this.#clock.elapsed();
    if (problem === undefined || elapsed < this.#nextTell) return;
    this.#nextTell = elapsed + TELL_MS;
    this.#logger.warning("The clocks are apart; what is stored has the time of the database", { problem });
  }
}
