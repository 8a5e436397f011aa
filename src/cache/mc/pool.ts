import { backoffMs } from "../../base/backoff.ts";
import type { SharedCacheOptions } from "../shared_cache_options.ts";
import { McConnection, type McConnectionOptions } from "./connection.ts";

/** Waits between attempts to connect. */
const RECONNECT = { firstMs: 50, longestMs: 2_000 };
/** A connection that was usable for this long was no failure. */
const SETTLED_MS = 1_000;
/** How long no further connection is tried after one failed. */
const NO_MORE_MS = 1_000;

/** What the owner of a pool is notified of. */
export interface McPoolEvents {
  ready(): void;
  /** What was written on this connection gets no replies. */
  lost(connection: McConnection, reason: string): void;
  /** There is no connection. */
  down(reason: string): void;
}

/** How connections are held. */
export interface McPoolOptions extends McConnectionOptions, SharedCacheOptions {
  /** How many are held at most; 0 is taken as 1. */
  readonly maxIdleConnections: number;
  readonly tally: { cx_total: number };
  readonly events: McPoolEvents;
}

/**
 * The connections to one node, which stay open. The first one is made immediately, and again whenever it is
 * lost; a further one is made when something is to be sent while all others wait for replies.
 */
export class McPool {
  readonly #options: McPoolOptions;
  /** Resolved at the first connection. */
  readonly ready = Promise.withResolvers<void>();
  /** Usable or being made. */
  readonly #connections = new Set<McConnection>();
  /** Nothing more is written on them; replies may still come. */
  readonly #retired = new Set<McConnection>();
  /** Since when each is usable, by `clock.elapsed()`; `-Infinity` once it has answered. */
  readonly #usableSince = new WeakMap<McConnection, number>();
  #failures = 0;
  #noMoreUntil = -Infinity;
  #reason = "";
  #reported: boolean | undefined;
  #isClosed = false;
  #cancelRetry: (() => void) | undefined;

  constructor(options: McPoolOptions) {
    this.#options = options;
    this.#open();
  }

  get connected(): boolean {
    return this.#usable().length > 0;
  }

  /** Whether there is a connection, or a first attempt to make one. */
  get isHopeful(): boolean {
    return this.connected || this.#failures === 0 && this.#connections.size > 0;
  }

  get size(): number {
    return this.#usable().length + this.#retired.size;
  }

  get reason(): string {
    return this.#reason === "" ? "no connection" : `no connection: ${this.#reason}`;
  }

  /** The connection with the fewest writes in flight; absent when there is none. */
  take(): McConnection | undefined {
    const [least] = this.#usable().sort((one, other) => one.inFlight - other.inFlight);
    if (least === undefined) return undefined;
    const { clock, maxIdleConnections } = this.#options;
    const isMore = this.#connections.size < maxIdleConnections && clock.elapsed() >= this.#noMoreUntil;
    if (least.inFlight > 0 && isMore) this.#open();
    return least;
  }

  write(
    connection: McConnection,
    commands: Parameters<McConnection["write"]>[0],
    answered: (replies: readonly string[]) => void,
  ): void {
    connection.write(commands, (replies) => {
      this.#usableSince.set(connection, -Infinity);
      this.#failures = 0;
      answered(replies);
      if (this.#retired.has(connection) && connection.inFlight === 0) connection.end(this.#reason);
    });
  }

  /** Takes a connection out of use, because its peer does not answer. */
  retire(connection: McConnection, reason: string): void {
    if (!this.#connections.delete(connection)) return;
    this.#retired.add(connection);
    this.#reason = reason;
    if (this.#connections.size === 0) this.#open();
  }

  /** Ends retired connections, except those on which requests wait. */
  endRetired(needed: ReadonlySet<unknown>): void {
    for (const connection of [...this.#retired]) {
      if (!needed.has(connection)) connection.end(this.#reason);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelRetry?.();
    for (const connection of [...this.#connections, ...this.#retired]) connection.end("it is closed");
  }

  #usable(): McConnection[] {
    return [...this.#connections].filter(({ isUsable }) => isUsable);
  }

  #open(): void {
    const { clock, tally, events } = this.#options;
    const connection = new McConnection(this.#options, {
      ready: () => {
        this.#usableSince.set(connection, clock.elapsed());
        tally.cx_total++;
        this.ready.resolve();
        this.#report(true, "");
        events.ready();
      },
      lost: (reason) => this.#lost(connection, reason),
    });
    this.#connections.add(connection);
  }

  #lost(connection: McConnection, reason: string): void {
    const wasRetired = this.#retired.delete(connection);
    this.#connections.delete(connection);
    const { clock, random, events } = this.#options;
    events.lost(connection, reason);
    if (this.#isClosed || wasRetired) return;
    this.#reason = reason;
    const since = this.#usableSince.get(connection) ?? Infinity;
    // A server may close an idle connection; one that closes a new connection gets a pause.
    if (clock.elapsed() - since >= SETTLED_MS) this.#failures = 0;
    else this.#failures++;
    if (this.#connections.size > 0) {
      this.#noMoreUntil = clock.elapsed() + NO_MORE_MS;
      return;
    }
    events.down(reason);
    if (this.#failures === 0) return this.#open();
    this.#cancelRetry = clock.after(backoffMs(this.#failures, random(), RECONNECT), () => this.#open());
    this.#report(false, reason);
  }

  #report(connected: boolean, reason: string): void {
    if (this.#reported === connected) return;
    this.#reported = connected;
    this.#options.onConnection?.(connected, reason);
  }
}
