import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { ThrottledLog } from "../../base/throttled_log.ts";
import { WakeLoop } from "../../threads/wake_loop.ts";
import { type AcceptanceBounds, backlogFull, storeFull } from "../api/bounds.ts";
import type { NewEvent } from "../model/records.ts";
import type { WebhookStore } from "../store/store.ts";
import { Backlogs } from "./backlogs.ts";
import { prefixed, type WebhookMetrics } from "./metrics.ts";

/** The bounds of a store; one that is absent does not apply. */
export interface StoreBoundSettings {
  /** Of the size of the store. */
  readonly maxStoreBytes?: number | undefined;
  /** Of the open deliveries of each endpoint. */
  readonly maxBacklog?: number | undefined;
}

/** Options of `StoreBounds`. */
interface StoreBoundsOptions extends StoreBoundSettings {
  readonly store: Pick<WebhookStore, "read" | "write" | "usedBytes">;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly logger: Logger;
  /** True if this process does the work of the store. */
  readonly isWorking: () => boolean;
}

const MEASURE_MS = 1_000;
/** The size of the store is measured this often. */
const SIZE_MS = 5_000;
const LOG_MS = 60_000;

/**
 * Refuses triggers and events that would exceed the bounds of the store. They are measured from time to time, so what
 * is accepted between two measurements may exceed them.
 */
export class StoreBounds implements AcceptanceBounds {
  readonly #options: StoreBoundsOptions;
  readonly #backlogs: Backlogs | undefined;
  readonly #loop: WakeLoop;
  readonly #log: ThrottledLog;
  readonly #refusals = new Map<"store" | "backlog", number>();
  #usedBytes = 0;
  #isFull = false;
  /** By the clock's `elapsed`. */
  #nextSizeAt = -Infinity;

  constructor(options: StoreBoundsOptions) {
    this.#options = options;
    const { clock, logger, maxBacklog } = options;
    this.#log = new ThrottledLog(logger, { clock, intervalMs: LOG_MS });
    this.#backlogs = maxBacklog === undefined ? undefined : new Backlogs({ ...options, maxBacklog });
    this.#loop = new WakeLoop({ clock, pollMs: MEASURE_MS, round: () => this.#measure() });
  }

  /** Begins to measure. */
  start(): void {
    this.#loop.start();
  }

  /** Ends the measurement under way. */
  async stop(): Promise<void> {
    await this.#loop.stop();
  }

  /** True if the store is larger than its bound. */
  get isFull(): boolean {
    return this.#isFull;
  }

  get mayRefuse(): boolean {
    return this.#isFull || this.#backlogs?.isAnyFull === true;
  }

  admit(): void {
    const { maxStoreBytes = 0 } = this.#options;
    if (!this.#isFull) return;
    this.#countRefusal("store");
    throw storeFull(maxStoreBytes);
  }

  async admitEvent(event: NewEvent): Promise<void> {
    this.admit();
    const full = await this.#backlogs?.fullFor(event) ?? [];
    if (full.length === 0) return;
    this.#countRefusal("backlog");
    throw backlogFull(full, this.#options.maxBacklog ?? 0);
  }

  /** The measured sizes and their bounds; 0 for no bound. */
  metrics(): Pick<WebhookMetrics, "counters" | "gauges"> {
    const { maxStoreBytes = 0, maxBacklog = 0 } = this.#options;
    return {
      counters: prefixed("bound_refusals", this.#refusals),
      gauges: {
        store_used_bytes: this.#usedBytes,
        store_max_bytes: maxStoreBytes,
        largest_backlog: this.#backlogs?.largest ?? 0,
        max_backlog: maxBacklog,
      },
    };
  }

  /** A note for the operator; absent while nothing is refused. */
  get note(): string | undefined {
    const full = this.#backlogs?.full.size ?? 0;
    const notes = [
      ...this.#isFull ? ["the store is larger than WEBHOOK_STORE_MAX_BYTES"] : [],
      ...full > 0 ? [`${full} endpoint${full === 1 ? " has" : "s have"} a full backlog`] : [],
    ];
    return notes.length === 0 ? undefined : notes.join("; ");
  }

  #countRefusal(bound: "store" | "backlog"): void {
    this.#refusals.set(bound, (this.#refusals.get(bound) ?? 0) + 1);
  }

  async #measure(): Promise<boolean> {
    try {
      await this.#measureSize();
      await this.#backlogs?.measure();
      if (this.#options.isWorking()) await this.#backlogs?.failExcess();
    } catch (error) {
      this.#log.warning("measure", "Cannot measure the bounds of the store", { error });
    }
    return false;
  }

  async #measureSize(): Promise<void> {
    const { store, clock, logger, maxStoreBytes = Infinity } = this.#options;
    const elapsed = clock.elapsed();
    if (elapsed < this.#nextSizeAt) return;
    this.#nextSizeAt = elapsed + SIZE_MS;
    const usedBytes = this.#usedBytes = await store.usedBytes();
    const isFull = usedBytes > maxStoreBytes;
    if (isFull && !this.#isFull) {
      logger.warning("Store is full; refusing triggers and events", { usedBytes, maxStoreBytes });
    }
    if (!isFull && this.#isFull) logger.info("Store has room again", { usedBytes, maxStoreBytes });
    this.#isFull = isFull;
  }
}
