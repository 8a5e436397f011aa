import type { Clock } from "../../base/clock.ts";

/** What waits in a pool. */
export interface PooledConnection {
  /** When it was made, by the clock's `elapsed`. */
  readonly madeAt: number;
  /** Whether it can be used. */
  readonly isFree: boolean;
  destroy(): void;
}

/** How many connections wait for their next request, for one host and for all. */
const MAX_IDLE_OF_HOST = 100;
const MAX_IDLE = 500;
/** How long one waits: less than the five seconds after which many servers close it. */
const IDLE_MS = 4_000;
/** How much sooner than its server a connection is given up here. */
const SERVER_MARGIN_MS = 1_000;
/** After this a connection is made anew, so that a name that moved is followed. */
const MAX_AGE_MS = 60_000;

interface Idle<T> {
  readonly connection: T;
  /** When it has waited long enough, by the clock's `elapsed`. */
  readonly end: number;
}

/** Connections that wait for their next request, by where they lead. */
export class ConnectionPool<T extends PooledConnection> {
  readonly #clock: Clock;
  /** Those that wait the shortest time last. */
  readonly #idle = new Map<string, Idle<T>[]>();
  #size = 0;
  #cancelSweep: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many wait. */
  get size(): number {
    return this.#size;
  }

  /** One that waits, the one that came last: what is not needed grows old. */
  take(key: string): T | undefined {
    const waiting = this.#idle.get(key) ?? [];
    const now = this.#clock.elapsed();
    for (let idle = waiting.pop(); idle !== undefined; idle = waiting.pop()) {
      this.#size--;
      if (waiting.length === 0) this.#idle.delete(key);
      if (idle.end > now && idle.connection.isFree) return idle.connection;
      idle.connection.destroy();
    }
    return undefined;
  }

  /** Keeps a connection for the next request; ends one that is too many, or too old. */
  keep(key: string, connection: T, serverIdleMs = Infinity): void {
    const now = this.#clock.elapsed();
    const idleMs = Math.min(IDLE_MS, serverIdleMs - SERVER_MARGIN_MS);
    const waiting = this.#idle.get(key) ?? [];
    const isFull = this.#size >= MAX_IDLE || waiting.length >= MAX_IDLE_OF_HOST;
    if (isFull || idleMs <= 0 || now - connection.madeAt > MAX_AGE_MS) return connection.destroy();
    waiting.push({ connection, end: now + idleMs });
    this.#idle.set(key, waiting);
    this.#size++;
    this.#cancelSweep ??= this.#clock.after(idleMs, () => this.#sweep());
  }

  /** Forgets one that was closed. */
  forget(key: string, connection: T): void {
    const waiting = this.#idle.get(key);
    const at = waiting?.findIndex((idle) => idle.connection === connection) ?? -1;
    if (waiting === undefined || at === -1) return;
    waiting.splice(at, 1);
    this.#size--;
    if (waiting.length === 0) this.#idle.delete(key);
  }

  /** Ends all that wait. */
  close(): void {
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
    for (const waiting of this.#idle.values()) for (const { connection } of waiting) connection.destroy();
    this.#idle.clear();
    this.#size = 0;
  }

  /** Ends those that have waited long enough. One timer serves all: most are used again long before. */
  #sweep(): void {
    this.#cancelSweep = undefined;
    const now = this.#clock.elapsed();
    let next = Infinity;
    for (const [key, waiting] of this.#idle) {
      const left = waiting.filter(({ end }) => end > now);
      for (const { connection, end } of waiting) if (end <= now) connection.destroy();
      this.#size -= waiting.length - left.length;
      for (const { end } of left) next = Math.min(next, end);
      if (left.length > 0) this.#idle.set(key, left);
      else this.#idle.delete(key);
    }
    if (next < Infinity) this.#cancelSweep = this.#clock.after(next - now, () => this.#sweep());
  }
}
