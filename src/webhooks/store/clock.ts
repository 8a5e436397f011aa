import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { ThrottledLog } from "../../base/throttled_log.ts";

/** For a store clock. */
interface StoreClockOptions {
  /** The clock of this machine; its wall clock is only compared. */
  readonly clock: Clock;
  readonly logger: Logger;
}

const MEASURE_MS = 5_000;
/** Queries per measurement, of which the fastest counts. */
const QUERIES = 3;
/** A larger difference of the wall clock and `elapsed` means that the machine slept, or that a clock was set. */
const STEP_MS = 500;
const STEP_PAUSE_MS = 1_000;
/** A larger offset of the wall clock is logged, this often. */
const FAR_MS = 60_000;
const LOG_MS = 60_000;

/**
 * The time of the database that several machines share: `elapsed` of this machine and the offset of the database's
 * clock, so that all machines agree whatever their own clocks show. Until `start` it is the time of this machine.
 */
export class StoreClock implements Clock {
  readonly #clock: Clock;
  readonly #log: ThrottledLog;
  #query: (() => Promise<number>) | undefined;
  /** The database's clock and the wall clock minus `elapsed` at the last measurement. */
  #ahead: { readonly database: number; readonly wall: number } | undefined;
  #measuring: Promise<void> | undefined;
  #isClosed = false;
  #nextStep = -Infinity;
  #cancel = () => {};

  constructor({ clock, logger }: StoreClockOptions) {
    this.#clock = clock;
    this.#log = new ThrottledLog(logger, { clock, intervalMs: LOG_MS });
  }

  /** Measures the time of the database, now and every 5 seconds; throws when it is unavailable now. */
  async start(databaseTime: () => Promise<number>): Promise<void> {
    this.#query = databaseTime;
    await this.#measure();
    this.#measureLater();
  }

  /** Stops measuring. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#measuring;
  }

  /** In whole milliseconds. */
  now(): number {
    if (this.#ahead === undefined) return Math.floor(this.#clock.now());
    const elapsed = this.#clock.elapsed();
    const step = this.#clock.now() - elapsed - this.#ahead.wall;
    // `elapsed` may stop while the machine sleeps.
    if (Math.abs(step) > STEP_MS && elapsed >= this.#nextStep) {
      this.#nextStep = elapsed + STEP_PAUSE_MS;
      this.remeasure();
    }
    return Math.floor(elapsed + this.#ahead.database);
  }

  elapsed(): number {
    return this.#clock.elapsed();
  }

  after(delayMs: number, run: () => void): () => void {
    return this.#clock.after(delayMs, run);
  }

  /** Measures again, such as after a reconnection, possibly to another server. */
  remeasure(): void {
    if (this.#ahead === undefined || this.#isClosed) return;
    this.#measuring ??= this.#measure().catch(() => {}).finally(() => this.#measuring = undefined);
  }

  /** The wall clock of this machine minus the database's, in milliseconds. */
  get wallAheadMs(): number {
    return this.#ahead === undefined ? 0 : this.#clock.now() - this.#clock.elapsed() - this.#ahead.database;
  }

  /** The error of this machine's wall clock, as a sentence; absent while it is near the database's. */
  get problem(): string | undefined {
    const ahead = this.wallAheadMs;
    if (Math.abs(ahead) <= FAR_MS) return undefined;
    const seconds = Math.round(Math.abs(ahead) / 1_000);
    return `the clock of this machine is ${seconds} s ${
      ahead > 0 ? "ahead of" : "behind"
    } that of the database`;
  }

  #measureLater(): void {
    if (this.#isClosed) return;
    this.#cancel = this.#clock.after(MEASURE_MS, () => {
      this.remeasure();
      this.#measureLater();
    });
  }

  async #measure(): Promise<void> {
    const best = await this.#fastest();
    if (best === undefined) return;
    const { ahead, error } = best;
    // Changed no further than the measurement requires, so that the clock does not jitter.
    const database = Math.min(Math.max(this.#ahead?.database ?? ahead, ahead - error), ahead + error);
    this.#ahead = { database, wall: this.#clock.now() - this.#clock.elapsed() };
    this.#logProblem();
  }

  /** The offset of the database's clock, and the largest error of it. */
  async #fastest(): Promise<{ readonly ahead: number; readonly error: number } | undefined> {
    let best: { ahead: number; error: number } | undefined;
    for (let query = 0; query < QUERIES && !this.#isClosed; query++) {
      const begin = this.#clock.elapsed();
      const time = await this.#query?.();
      if (time === undefined) break;
      const error = (this.#clock.elapsed() - begin) / 2;
      if (best === undefined || error < best.error) best = { ahead: time - begin - error, error };
    }
    return best;
  }

  #logProblem(): void {
    const { problem } = this;
    if (problem === undefined) return;
    const message = "Wall clock differs from the database; stored times are those of the database";
    this.#log.warning("far", message, { problem });
  }
}
