import { backoffMs } from "../../../base/backoff.ts";
import type { SharedCacheOptions } from "../../shared_cache_options.ts";

/** Pause between two looks while nothing is wrong. */
const REST_MS = 30_000;
/** Least time between the begin of two looks, and longest pause while something is wrong. */
const RETRY = { firstMs: 100, longestMs: 1_000 };

/** When the state of the cluster is read: now and then, on request, and with backoff while something is wrong. */
export class KvClusterRefresh {
  /** Settles at the end of the current look; absent without one. */
  running: Promise<void> | undefined;
  readonly #look: () => Promise<boolean>;
  readonly #options: Pick<SharedCacheOptions, "clock" | "random">;
  #startedAt = -Infinity;
  #isRequested = false;
  #failures = 0;
  #next: { readonly dueAt: number; readonly cancel: () => void } | undefined;
  #isClosed = false;

  /** `look` reads the state and returns whether all nodes are healthy; it never throws. */
  constructor(look: () => Promise<boolean>, options: Pick<SharedCacheOptions, "clock" | "random">) {
    this.#look = look;
    this.#options = options;
  }

  /** Looks soon, and once more if the current look may have missed the cause. */
  request(): void {
    if (this.running !== undefined) this.#isRequested = true;
    else this.#schedule(RETRY.firstMs - this.#elapsed());
  }

  /** Something is wrong: looks soon, and less often the longer it lasts. */
  suspect(): void {
    if (this.running === undefined) this.#schedule(this.#retryMs() - this.#elapsed());
  }

  start(): void {
    this.#next?.cancel();
    this.#next = undefined;
    this.#startedAt = this.#options.clock.elapsed();
    this.running = this.#run();
  }

  /** Ends the timer; the current look is the last one. */
  close(): void {
    this.#isClosed = true;
    this.#next?.cancel();
    this.#next = undefined;
  }

  async #run(): Promise<void> {
    const isWell = await this.#look();
    this.running = undefined;
    this.#failures = isWell ? 0 : this.#failures + 1;
    this.#schedule(isWell ? REST_MS : this.#retryMs());
    if (!this.#isRequested) return;
    this.#isRequested = false;
    this.request();
  }

  #retryMs(): number {
    return Math.max(RETRY.firstMs, backoffMs(this.#failures + 1, this.#options.random(), RETRY));
  }

  #elapsed(): number {
    return Math.min(this.#options.clock.elapsed() - this.#startedAt, RETRY.longestMs);
  }

  /** An earlier look that is planned stays. */
  #schedule(delayMs: number): void {
    if (this.#isClosed) return;
    const { clock } = this.#options;
    const wait = Math.max(0, delayMs);
    const dueAt = clock.elapsed() + wait;
    if (this.#next !== undefined && this.#next.dueAt <= dueAt) return;
    this.#next?.cancel();
    this.#next = { dueAt, cancel: clock.after(wait, () => this.start()) };
  }
}
