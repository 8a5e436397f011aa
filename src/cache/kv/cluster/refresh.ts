import { backoffMs } from "../../../base/backoff.ts";
import type { Clock } from "../../../base/clock.ts";

/** How often the cluster is looked at when nothing is wrong. */
const REST_MS = 30_000;
/** Least time between the beginnings of two looks. */
const LEAST_GAP_MS = 100;
/** Longest wait for the next look while something is wrong. */
const MAX_RETRY_MS = 1_000;

/** What is done, and with whose time and chance. */
export interface KvClusterRefreshOptions {
  /** Looks at the cluster; answers whether all is well. It never throws. */
  readonly look: () => Promise<boolean>;
  readonly clock: Clock;
  readonly random: () => number;
}

/** When the cluster is looked at: now and then, soon when asked for, and again and again while something is wrong. */
export class KvClusterRefresh {
  readonly #options: KvClusterRefreshOptions;
  #running: Promise<void> | undefined;
  #startedAt: number | undefined;
  #asked = false;
  #troubles = 0;
  #next: { readonly dueAt: number; readonly cancel: () => void } | undefined;
  #closed = false;

  constructor(options: KvClusterRefreshOptions) {
    this.#options = options;
  }

  /** Settles when the look that is under way ends; absent when none is. */
  get running(): Promise<void> | undefined {
    return this.#running;
  }

  /** Looks as soon as the least gap allows, and once more if a look is under way that may have missed the cause. */
  request(): void {
    if (this.#running !== undefined) this.#asked = true;
    else this.#schedule(LEAST_GAP_MS - this.#elapsed());
  }

  /** Something is wrong: looks soon, and less often the longer it lasts. */
  suspect(): void {
    if (this.#running === undefined) this.#schedule(this.#retryMs() - this.#elapsed());
  }

  /** Looks at once. */
  start(): void {
    this.#next?.cancel();
    this.#next = undefined;
    this.#startedAt = this.#options.clock.elapsed();
    this.#running = this.#run();
  }

  /** Ends the timer; a look that is under way is the last one. */
  close(): void {
    this.#closed = true;
    this.#next?.cancel();
    this.#next = undefined;
  }

  async #run(): Promise<void> {
    const well = await this.#options.look();
    this.#running = undefined;
    if (well) this.#troubles = 0;
    else this.#troubles++;
    this.#schedule(well ? REST_MS : this.#retryMs());
    if (!this.#asked) return;
    this.#asked = false;
    this.request();
  }

  #retryMs(): number {
    const times = { firstMs: LEAST_GAP_MS, longestMs: MAX_RETRY_MS };
    return Math.max(LEAST_GAP_MS, backoffMs(this.#troubles + 1, this.#options.random(), times));
  }

  /** Time since the last look began. */
  #elapsed(): number {
    if (this.#startedAt === undefined) return MAX_RETRY_MS;
    return this.#options.clock.elapsed() - this.#startedAt;
  }

  /** An earlier look that is planned stands. */
  #schedule(delayMs: number): void {
    if (this.#closed) return;
    const { clock } = this.#options;
    const wait = Math.max(0, delayMs);
    const now = clock.elapsed();
    if (this.#next !== undefined && this.#next.dueAt <= now + wait) return;
    this.#next?.cancel();
    this.#next = { dueAt: now + wait, cancel: clock.after(wait, () => this.start()) };
  }
}
