import type { Clock } from "../base/clock.ts";
import { afterDelay, TurnTask } from "../base/turn.ts";
import type { WaitingAsk } from "./hit_batch.ts";

/** Behind this many batches in flight a small one waits a moment: large batches cost a third less. */
const EAGER_BATCHES = 3;
const LARGE_BATCH_KEYS = 64;
const MAX_HOLD_MS = 5;

/** Asks that are sent together. */
interface AskBatch<A extends WaitingAsk> {
  readonly isEmpty: boolean;
  /** The number of steps that it takes. */
  readonly size: number;
  add(ask: A): void;
  /** Fails callers that no longer wait, and leaves out their hits. */
  dropGone(): void;
  /** Fails some callers, and leaves out their hits. */
  drop(isDropped: (ask: WaitingAsk) => boolean, state: string): void;
}

/** Options of a batcher. */
interface BatcherOptions<B, Connection> {
  /** Time in which hits gather before they are written, in milliseconds; 0 is the end of this turn. */
  readonly windowMs: number;
  readonly clock: Clock;
  /** The number of batches in flight. No batch is held back when absent. */
  readonly inFlight?: () => number;
  readonly createBatch: () => B;
  /**
   * A connection for what began then and waits for one since then, by `clock.elapsed()`; without one, `flush` is called
   * when one is free.
   */
  readonly take: (startedAt: number, waitingSince: number | undefined) => Connection | undefined;
  readonly write: (batch: B, connection: Connection, startedAt: number) => void;
  /** The batch became empty, so that the connection it had taken is free again. */
  readonly dropped: (batch: B, connection: Connection) => void;
}

interface CurrentBatch<B> {
  readonly batch: B;
  startedAt: number;
  /** Since when its first hits wait for a connection. */
  waitingSince?: number;
  /** The window is over. */
  isDue: boolean;
  isUrgent: boolean;
  cancelHold?: () => void;
}

/** Gathers the hits for one node: what is asked for within the window is one batch. */
export class Batcher<A extends WaitingAsk, B extends AskBatch<A>, Connection> {
  readonly #options: BatcherOptions<B, Connection>;
  readonly #window: TurnTask;
  readonly #large = new TurnTask(() => this.flush());
  #current: CurrentBatch<B> | undefined;

  constructor(options: BatcherOptions<B, Connection>) {
    this.#options = options;
    this.#window = new TurnTask(() => {
      if (this.#current !== undefined) this.#current.isDue = true;
      this.flush();
    }, afterDelay(options.windowMs, options.clock));
  }

  /** When the current batch began, by `clock.elapsed()`; absent without one. */
  get startedAt(): number | undefined {
    return this.#current?.startedAt;
  }

  /** The current batch, begun now if there is none. */
  get batch(): B {
    return (this.#current ?? this.#begin()).batch;
  }

  /** Adds hits to the current batch. Those of one turn are in one batch. */
  add(ask: A): void {
    const current = this.#current ?? this.#begin();
    if (current.waitingSince !== undefined) ask.waitsFrom = this.#options.clock.elapsed();
    current.batch.add(ask);
    if (current.isDue && current.batch.size >= LARGE_BATCH_KEYS) this.#large.request();
  }

  /** Writes the current batch if its window is over and a connection is free. */
  flush(): void {
    const current = this.#current;
    if (current?.isDue !== true || this.#isHeldBack(current)) return;
    const { take, write, dropped, clock } = this.#options;
    const { batch, startedAt } = current;
    const connection = take(startedAt, current.waitingSince);
    if (connection === undefined) {
      current.waitingSince ??= clock.elapsed();
      return;
    }
    batch.dropGone();
    this.#current = undefined;
    current.cancelHold?.();
    if (batch.isEmpty) dropped(batch, connection);
    else write(batch, connection, startedAt);
  }

  /** Gives up the current batch, or only one that waits for a connection by now, and returns it. */
  giveUp(which: "any" | "due" = "any"): B | undefined {
    const current = this.#current;
    if (current === undefined || (which === "due" && !current.isDue)) return undefined;
    this.#current = undefined;
    this.#window.cancel();
    current.cancelHold?.();
    return current.batch;
  }

  /** Fails what has waited this long for a connection; returns whether something else waits. */
  failWaiting(waitedMs: number, reason: string): boolean {
    const current = this.#current;
    if (current?.waitingSince === undefined) return current !== undefined;
    const { waitingSince, batch } = current;
    const latest = this.#options.clock.elapsed() - waitedMs;
    let oldest = Infinity;
    batch.drop(({ waitsFrom = waitingSince }) => {
      if (waitsFrom <= latest) return true;
      oldest = Math.min(oldest, waitsFrom);
      return false;
    }, reason);
    if (oldest === Infinity) return false;
    if (oldest > waitingSince) current.startedAt = oldest;
    current.waitingSince = oldest;
    return true;
  }

  #begin(): CurrentBatch<B> {
    const { clock, createBatch } = this.#options;
    this.#window.request();
    return this.#current = {
      batch: createBatch(),
      startedAt: clock.elapsed(),
      isDue: false,
      isUrgent: false,
    };
  }

  #isHeldBack(current: CurrentBatch<B>): boolean {
    const { clock, inFlight } = this.#options;
    if (inFlight === undefined || current.isUrgent || inFlight() < EAGER_BATCHES) return false;
    if (current.batch.size >= LARGE_BATCH_KEYS) return false;
    current.cancelHold ??= clock.after(MAX_HOLD_MS, () => {
      current.isUrgent = true;
      this.flush();
    });
    return true;
  }
}
