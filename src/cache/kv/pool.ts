import type { Metrics } from "../../base/metrics.ts";
import type { KV_POOL_METRICS } from "../metrics.ts";
import type { SharedCacheOptions } from "../shared_cache_options.ts";
import type { KvConnection, KvConnectionEvents } from "./connection.ts";

/** What the owner of a pool is notified of. */
export interface KvPoolEvents {
  /** There is a new connection, which may lead to another server than those before. */
  connected(): void;
  free(): void;
  lost(reason: string): void;
  /** No connection was free for this long. */
  exhausted(reason: string, waitedMs: number): void;
}

/** The time of what waits for a connection, in milliseconds. */
export interface KvPoolWait {
  /** Until its timeout. */
  leftMs(): number;
  /** Since it first asked for a connection. */
  waitedMs(): number;
}

/** How connections are held. */
export interface KvPoolOptions extends Pick<SharedCacheOptions, "clock" | "onConnection"> {
  readonly connect: (events: KvConnectionEvents) => KvConnection;
  readonly poolSize: number;
  /** What happens when all of them stay taken for `onEmptyWaitMs`: one more, an error, or a longer wait. */
  readonly onEmpty: "CREATE" | "ERROR" | "WAIT";
  readonly onEmptyWaitMs: number;
  readonly events: KvPoolEvents;
}

/** Time between two groups of calls that fail: removing some from a batch costs as much as removing all. */
const GROUP_MS = 5;

/** The connections to one node. The first one is made immediately, the others once it is there. */
export class KvPool {
  readonly #options: KvPoolOptions;
  /** Resolved at the first connection. */
  readonly ready = Promise.withResolvers<void>();
  /** All of them, also those that are not usable yet. */
  readonly #connections = new Set<KvConnection>();
  /** Taken or not. */
  readonly #usable = new Set<KvConnection>();
  /** Those beyond the pool's size; closed as soon as they are free. */
  readonly #overflow = new Set<KvConnection>();
  #free: KvConnection[] = [];
  #cancelWait: (() => void) | undefined;
  #opened = 0;
  #closedHere = 0;
  #exhausted = 0;
  #reason = "";
  #isDown = false;
  #isClosed = false;

  constructor(options: KvPoolOptions) {
    this.#options = options;
    this.#open();
  }

  get connected(): boolean {
    return this.#usable.size > 0;
  }

  get reason(): string {
    return this.#reason === "" ? "no connection" : `no connection: ${this.#reason}`;
  }

  get metrics(): Metrics<typeof KV_POOL_METRICS> {
    return {
      counters: {
        cx_total: () => this.#opened,
        cx_local_close: () => this.#closedHere,
        exhausted: () => this.#exhausted,
      },
      gauges: { cx_active: () => this.#usable.size },
    };
  }

  /** A connection that may be taken, for a command that can wait behind others. */
  shared(): KvConnection | undefined {
    return [...this.#usable].find(({ isUsable }) => isUsable);
  }

  /** Takes a connection. Without a free one `free` or `exhausted` follows, after `leftMs` at most. */
  take(wait: KvPoolWait): KvConnection | undefined {
    for (let last = this.#free.pop(); last !== undefined; last = this.#free.pop()) {
      if (!last.isUsable) continue;
      this.#endWait();
      return last;
    }
    if (this.#cancelWait === undefined) this.#wait(wait.leftMs(), wait.waitedMs());
    return undefined;
  }

  give(connection: KvConnection): void {
    if (!this.#usable.has(connection) || !connection.isUsable) return;
    this.#free.push(connection);
    this.#options.events.free();
    // It is still free, so nothing waits for it.
    if (this.#overflow.has(connection) && this.#free.includes(connection)) this.#end(connection);
  }

  renew(connection: KvConnection, reason: string): void {
    if (!this.#usable.has(connection)) return;
    this.#closedHere++;
    connection.renew(reason);
  }

  /** Makes every connection again: the name may resolve to another server by now. */
  renewAll(reason: string): void {
    for (const connection of [...this.#usable]) this.renew(connection, reason);
  }

  close(): void {
    this.#isClosed = true;
    this.#endWait();
    for (const connection of [...this.#connections]) this.#end(connection);
  }

  #open(): KvConnection {
    const connection = this.#options.connect({
      ready: () => this.#becameReady(connection),
      lost: (reason) => this.#lost(connection, reason),
    });
    this.#connections.add(connection);
    return connection;
  }

  #becameReady(connection: KvConnection): void {
    if (this.#isClosed || !this.#connections.has(connection)) return;
    this.#usable.add(connection);
    this.#opened++;
    this.#reason = "";
    const { events, onConnection, poolSize } = this.#options;
    events.connected();
    if (this.#usable.size === 1) {
      this.#isDown = false;
      this.ready.resolve();
      onConnection?.(true, "");
    }
    while (this.#connections.size - this.#overflow.size < poolSize) this.#open();
    this.give(connection);
  }

  #lost(connection: KvConnection, reason: string): void {
    if (this.#overflow.has(connection)) this.#end(connection);
    else this.#forget(connection);
    this.#reason = reason;
    this.#options.events.lost(reason);
    if (this.#usable.size > 0 || this.#isDown || this.#isClosed) return;
    this.#endWait();
    this.#isDown = true;
    this.#options.onConnection?.(false, reason);
  }

  #forget(connection: KvConnection): void {
    this.#usable.delete(connection);
    this.#free = this.#free.filter((free) => free !== connection);
  }

  #end(connection: KvConnection): void {
    this.#forget(connection);
    this.#overflow.delete(connection);
    if (!this.#connections.delete(connection)) return;
    this.#closedHere++;
    connection.close();
  }

  /** Waits as set, at most half of the time that there was, and then for the rest unless that is an error. */
  #wait(leftMs: number, waitedMs: number): void {
    const { clock, onEmpty, onEmptyWaitMs } = this.#options;
    const allMs = leftMs + waitedMs;
    const firstMs = onEmptyWaitMs < allMs ? onEmptyWaitMs : allMs / 2;
    const waitMs = onEmpty === "WAIT" ? allMs : firstMs;
    // A timer ignores fractions and would fire too early. Calls that came one after the other fail in groups.
    const delayMs = Math.max(waitedMs === 0 ? 0 : GROUP_MS, Math.ceil(waitMs - waitedMs));
    this.#cancelWait = clock.after(delayMs, () => {
      if (onEmpty !== "CREATE") return this.#giveUp(waitMs);
      // At most as many again as the pool holds, so that a server that hangs is not flooded.
      if (this.#overflow.size < this.#options.poolSize) this.#overflow.add(this.#open());
      this.#cancelWait = clock.after(Math.max(0, leftMs - delayMs), () => this.#giveUp(allMs));
    });
  }

  #giveUp(waitedMs: number): void {
    this.#cancelWait = undefined;
    this.#exhausted++;
    this.#options.events.exhausted(`no connection was free within ${Math.round(waitedMs)} ms`, waitedMs);
  }

  #endWait(): void {
    this.#cancelWait?.();
    this.#cancelWait = undefined;
  }
}
