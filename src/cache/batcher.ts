import type { Clock } from "../base/clock.ts";
import { afterDelay, TurnTask } from "../base/turn.ts";
import type { Ask, HitBatch, SingleAsk, WaitingAsk } from "./hit_batch.ts";

/** Behind this many batches in flight a small one waits a moment: large batches cost a third less. */
const EAGER_BATCHES = 3;
const LARGE_BATCH_KEYS = 64;
const MAX_HOLD_MS = 5;

/** How hits are gathered, and where they go. */
export interface BatcherOptions<B extends HitBatch, Connection> {
  /** For how long hits gather before they are written, in milliseconds; 0 is the end of this turn. */
  readonly windowMs: number;
  readonly clock: Clock;
  /** How many batches are in flight. No batch is held back when absent. */
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
export class Batcher<B extends HitBatch, Connection> {
  readonly #options: BatcherOptions<B, Connection>;
  readonly #window: TurnTask;
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

  add(ask: Ask): void {
    const current = this.#joined(ask);
    current.batch.add(ask);
    this.#flushLarge(current);
  }

  /** Adds what only this kind of batch takes. */
  addBy(ask: WaitingAsk, put: (batch: B) => void): void {
    const current = this.#joined(ask);
    put(current.batch);
    this.#flushLarge(current);
  }

  addOne(ask: SingleAsk): void {
    const current = this.#joined(ask);
    current.batch.addOne(ask);
    this.#flushLarge(current);
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

  /** The current batch for an ask, which notes when it joined one that waits. */
  #joined(ask: WaitingAsk): CurrentBatch<B> {
    const current = this.#current ?? this.#begin();
    if (current.waitingSince !== undefined) ask.waitsFrom = this.#options.clock.elapsed();
    return current;
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

  #flushLarge({ batch, isDue }: CurrentBatch<B>): void {
    if (isDue && batch.size >= LARGE_BATCH_KEYS) this.flush();
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
