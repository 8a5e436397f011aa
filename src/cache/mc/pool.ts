import { backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import { type McAddress, McConnection, type McConnectionOptions, type McExchange } from "./connection.ts";

/** Waits between attempts to connect. */
const RECONNECT = { firstMs: 50, longestMs: 2_000 };
/** A connection that was there for so long was no failure, whoever ended it. */
const SETTLED_MS = 1_000;
/** After a further connection could not be had, those that are there have to do for so long. */
const NO_MORE_MS = 1_000;

/** What a pool tells its owner. */
export interface McPoolEvents {
  /** A connection can be taken. */
  ready(): void;
  answered(connection: McConnection, exchange: McExchange, replies: readonly string[]): void;
  /** A connection is gone, and whatever was written on it gets no replies. */
  lost(connection: McConnection, reason: string): void;
  /** There is no connection, and who waits for one gets none. */
  down(reason: string): void;
}

/** How connections are held. */
export interface McPoolOptions extends McConnectionOptions {
  readonly address: McAddress;
  /** How many are held at most; 0 is taken as 1. */
  readonly maxIdleConnections: number;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly tally: { connectionsOpened: number };
  readonly onConnection?: ((connected: boolean, reason: string) => void) | undefined;
  readonly events: McPoolEvents;
}

/**
 * Connections to one node. The first one is made at once and made again whenever it is lost; a further
 * one, up to the number, is made when something is to be sent while all others wait for replies. They
 * stay open.
 */
export class McPool {
  readonly #options: McPoolOptions;
  readonly #ready = Promise.withResolvers<void>();
  /** Those that can be used or are being made. */
  readonly #connections = new Set<McConnection>();
  /** Those that get nothing more; somebody may still wait for a reply. */
  readonly #retired = new Set<McConnection>();
  /** Since when each can be used, by the clock that is never set back; ever since, once it has answered. */
  readonly #usableSince = new WeakMap<McConnection, number>();
  #failures = 0;
  #noMoreUntil = -Infinity;
  #reason = "";
  /** What was told of it. */
  #told: boolean | undefined;
  #closed = false;
  #cancelRetry: (() => void) | undefined;

  constructor(options: McPoolOptions) {
    this.#options = options;
    this.#open();
  }

  /** Settles at the first connection. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Whether there is a connection. */
  get connected(): boolean {
    return this.#usable().length > 0;
  }

  /** There is a connection, or one is on its way and nothing speaks against it. */
  get hopeful(): boolean {
    return this.connected || this.#failures === 0 && this.#connections.size > 0;
  }

  /** Connections that are open. */
  get size(): number {
    return this.#usable().length + this.#retired.size;
  }

  /** Why there is none. */
  get reason(): string {
    return this.#reason === "" ? "no connection" : `no connection: ${this.#reason}`;
  }

  /** The connection that has the least to do; absent when there is none. */
  take(): McConnection | undefined {
    const [first, ...others] = this.#usable();
    if (first === undefined) return undefined;
    const least = others.reduce((best, one) => one.inFlight < best.inFlight ? one : best, first);
    if (least.inFlight > 0) this.#openFurther();
    return least;
  }

  /** A connection gets nothing more: its peer does not answer. */
  retire(connection: McConnection, reason: string): void {
    if (!this.#connections.delete(connection)) return;
    this.#retired.add(connection);
    this.#reason = reason;
    if (this.#connections.size === 0) this.#open();
  }

  /** Ends retired connections, but for those that somebody needs. */
  endRetired(needed: ReadonlySet<McConnection>): void {
    for (const connection of [...this.#retired]) {
      if (!needed.has(connection)) connection.end(this.#reason);
    }
  }

  /** Ends all connections. */
  close(): void {
    this.#closed = true;
    this.#cancelRetry?.();
    for (const connection of [...this.#connections, ...this.#retired]) connection.end("it is closed");
  }

  #usable(): McConnection[] {
    return [...this.#connections].filter(({ usable }) => usable);
  }

  #open(): void {
    const connection = new McConnection(this.#options, {
      ready: (one) => this.#isReady(one),
      answered: (one, exchange, replies) => {
        this.#usableSince.set(one, -Infinity);
        this.#failures = 0;
        this.#options.events.answered(one, exchange, replies);
        if (this.#retired.has(one) && one.inFlight === 0) one.end(this.#reason);
      },
      lost: (one, reason) => this.#lost(one, reason),
    });
    this.#connections.add(connection);
  }

  #openFurther(): void {
    const { clock, maxIdleConnections } = this.#options;
    if (this.#connections.size < maxIdleConnections && clock.elapsed() >= this.#noMoreUntil) this.#open();
  }

  #isReady(connection: McConnection): void {
    this.#usableSince.set(connection, this.#options.clock.elapsed());
    this.#options.tally.connectionsOpened++;
    this.#ready.resolve();
    this.#tell(true, "");
    this.#options.events.ready();
  }

  #lost(connection: McConnection, reason: string): void {
    const wasRetired = this.#retired.delete(connection);
    this.#connections.delete(connection);
    const { clock, events } = this.#options;
    events.lost(connection, reason);
    if (this.#closed || wasRetired) return;
    this.#reason = reason;
    const since = this.#usableSince.get(connection) ?? Infinity;
    // A server may close what is idle; one that closes what is new is not to be pestered.
    if (clock.elapsed() - since >= SETTLED_MS) this.#failures = 0;
    else this.#failures++;
    if (this.#connections.size > 0) this.#noMoreUntil = clock.elapsed() + NO_MORE_MS;
    else this.#openAgain(reason);
  }

  #openAgain(reason: string): void {
    const { clock, random, events } = this.#options;
    events.down(reason);
    if (this.#failures === 0) return this.#open();
    this.#cancelRetry = clock.after(backoffMs(this.#failures, random(), RECONNECT), () => this.#open());
    this.#tell(false, reason);
  }

  #tell(connected: boolean, reason: string): void {
    if (this.#told === connected) return;
    this.#told = connected;
    this.#options.onConnection?.(connected, reason);
  }
}
