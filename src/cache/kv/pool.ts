import type { Redis } from "ioredis";
import type { Clock } from "../../base/clock.ts";
import type { Figures } from "../../base/figures.ts";
import { KvConnection } from "./connection.ts";

/** What a pool tells its owner. */
export interface KvPoolEvents {
  /** A connection is there: it may lead to another server than those before. */
  connected(): void;
  /** A connection can be taken. */
  free(): void;
  /** A connection is gone, and whatever was written on it gets no answer. */
  lost(connection: KvConnection, reason: string): void;
  /** Who waits for a connection gets none. */
  exhausted(reason: string): void;
}

/** How connections are held. */
export interface KvPoolOptions {
  /** A client that is not connected yet. */
  readonly createClient: () => Redis;
  readonly database?: number;
  /** How many connections are held. */
  readonly poolSize: number;
  /** What is done when all of them stay taken for `onEmptyWaitMs`: one more, an error, or waiting on. */
  readonly onEmpty: "CREATE" | "ERROR" | "WAIT";
  readonly onEmptyWaitMs: number;
  readonly clock: Clock;
  readonly onConnection?: ((connected: boolean, reason: string) => void) | undefined;
  readonly events: KvPoolEvents;
}

/** Connections to one node. The first one is made at once, the others when it is there. */
export class KvPool {
  readonly #options: KvPoolOptions;
  readonly #ready = Promise.withResolvers<void>();
  /** All of them, also while they are being made. */
  readonly #connections = new Set<KvConnection>();
  /** Those that can be used, taken or not. */
  readonly #usable = new Set<KvConnection>();
  /** Those that are more than the pool's size; closed as soon as nobody needs them. */
  readonly #overflow = new Set<KvConnection>();
  /** Those that can be taken; the last one given back is the first one taken. */
  readonly #free: KvConnection[] = [];
  #cancelWait: (() => void) | undefined;
  #opened = 0;
  #closedHere = 0;
  #exhausted = 0;
  #reason = "";
  #down = false;
  #closed = false;

  constructor(options: KvPoolOptions) {
    this.#options = options;
    this.#open();
  }

  /** Settles at the first connection. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Whether there is a connection, taken or not. */
  get connected(): boolean {
    return this.#usable.size > 0;
  }

  /** Why there is none. */
  get reason(): string {
    return this.#reason === "" ? "no connection" : `no connection: ${this.#reason}`;
  }

  /** Connections now, and over time. */
  get figures(): Figures {
    return {
      counters: {
        cx_total: () => this.#opened,
        cx_local_close: () => this.#closedHere,
        exhausted: () => this.#exhausted,
      },
      gauges: { cx_active: () => this.#usable.size },
    };
  }

  /** A connection that somebody else may be using, for a command that can stand behind others. */
  shared(): KvConnection | undefined {
    for (const connection of this.#usable) {
      if (connection.usable) return connection;
    }
    return undefined;
  }

  /**
   * Takes a connection. Where none is free, `free` tells of the next one, or `exhausted` that there was
   * none within the time, which is `leftMs` at most.
   */
  take(leftMs: () => number): KvConnection | undefined {
    for (let last = this.#free.pop(); last !== undefined; last = this.#free.pop()) {
      if (!last.usable) continue;
      this.#endWait();
      return last;
    }
    if (this.#cancelWait === undefined) this.#wait(leftMs());
    return undefined;
  }

  /** Gives a connection back that was taken. */
  give(connection: KvConnection): void {
    if (!this.#usable.has(connection) || !connection.usable) return;
    this.#free.push(connection);
    this.#options.events.free();
    // Nobody took it, so nobody waits.
    if (this.#overflow.has(connection) && this.#free.includes(connection)) this.#end(connection);
  }

  /** Makes a connection anew. */
  renew(connection: KvConnection, reason: string): void {
    if (!this.#usable.has(connection)) return;
    this.#closedHere++;
    connection.renew(reason);
  }

  /** Makes every connection anew: the server behind the name is not the one to ask any more. */
  renewAll(reason: string): void {
    for (const connection of [...this.#usable]) this.renew(connection, reason);
  }

  /** Ends all connections. */
  close(): void {
    this.#closed = true;
    this.#endWait();
    for (const connection of [...this.#connections]) this.#end(connection);
  }

  #open(): KvConnection {
    const { createClient, database = 0 } = this.#options;
    const connection = new KvConnection(createClient(), {
      database,
      events: {
        ready: (made) => this.#isReady(made),
        lost: (gone, reason) => this.#lost(gone, reason),
      },
    });
    this.#connections.add(connection);
    return connection;
  }

  #isReady(connection: KvConnection): void {
    if (this.#closed || !this.#connections.has(connection)) return;
    this.#usable.add(connection);
    this.#opened++;
    this.#reason = "";
    const { events, onConnection, poolSize } = this.#options;
    events.connected();
    if (this.#usable.size === 1) {
      this.#down = false;
      this.#ready.resolve();
      onConnection?.(true, "");
    }
    while (this.#connections.size - this.#overflow.size < poolSize) this.#open();
    this.give(connection);
  }

  #lost(connection: KvConnection, reason: string): void {
    if (this.#overflow.has(connection)) this.#end(connection);
    else this.#forget(connection);
    this.#reason = reason;
    this.#options.events.lost(connection, reason);
    if (this.#usable.size > 0 || this.#down || this.#closed) return;
    this.#endWait();
    this.#down = true;
    this.#options.onConnection?.(false, reason);
  }

  /** It cannot be used for the time being. */
  #forget(connection: KvConnection): void {
    this.#usable.delete(connection);
    const position = this.#free.indexOf(connection);
    if (position >= 0) this.#free.splice(position, 1);
  }

  #end(connection: KvConnection): void {
    this.#forget(connection);
    this.#overflow.delete(connection);
    if (!this.#connections.delete(connection)) return;
    this.#closedHere++;
    connection.close();
  }

  /**
   * A batch waits: first for as long as the settings say, then, unless that is an error, until its end. A
   * wait that would take all the time that is left ends halfway, so that what follows still has some.
   */
  #wait(leftMs: number): void {
    const { clock, onEmpty, onEmptyWaitMs } = this.#options;
    const firstMs = onEmptyWaitMs < leftMs ? onEmptyWaitMs : leftMs / 2;
    const waitMs = Math.max(0, onEmpty === "WAIT" ? leftMs : firstMs);
    this.#cancelWait = clock.after(waitMs, () => {
      this.#cancelWait = undefined;
      if (onEmpty !== "CREATE") return this.#giveUp(waitMs);
      // As many again as the pool holds, so that a server that stands still is not drowned.
      if (this.#overflow.size < this.#options.poolSize) this.#overflow.add(this.#open());
      const restMs = leftMs - waitMs;
      this.#cancelWait = clock.after(restMs, () => {
        this.#cancelWait = undefined;
        this.#giveUp(leftMs);
      });
    });
  }

  #giveUp(waitedMs: number): void {
    this.#exhausted++;
    this.#options.events.exhausted(`no connection was free within ${waitedMs} ms`);
  }

  #endWait(): void {
    this.#cancelWait?.();
    this.#cancelWait = undefined;
  }
}
