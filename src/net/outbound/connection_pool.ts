import type { Clock } from "../../base/clock.ts";

/** A connection that a pool may keep. */
export interface PooledConnection {
  /** By the clock's `elapsed`. */
  readonly createdAt: number;
  readonly isFree: boolean;
  destroy(): void;
}

/** Most idle connections for one host, which may serve many endpoints, and for all. */
const MAX_IDLE_OF_HOST = 250;
const MAX_IDLE = 500;
/** Less than the five seconds after which many servers close an idle connection. */
const IDLE_MS = 4_000;
/** This side closes a connection so much sooner than its server. */
const SERVER_MARGIN_MS = 1_000;
/** Older connections are replaced, so that a name that moved is followed. */
const MAX_AGE_MS = 60_000;

interface Idle<T> {
  readonly connection: T;
  /** When to close it, by the clock's `elapsed`. */
  readonly end: number;
}

/** Idle connections by where they lead. */
export class ConnectionPool<T extends PooledConnection> {
  readonly #clock: Clock;
  /** Those most recently used last. */
  readonly #idle = new Map<string, Idle<T>[]>();
  #size = 0;
  #cancelSweep: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#size;
  }

  /** The idle connection used most recently, so that those not needed expire. */
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

  /** Keeps a connection for the next request; closes one that is too many, or too old. */
  keep(key: string, connection: T, serverIdleMs = Infinity): void {
    const now = this.#clock.elapsed();
    const idleMs = Math.min(IDLE_MS, serverIdleMs - SERVER_MARGIN_MS);
    const waiting = this.#idle.get(key) ?? [];
    const isFull = this.#size >= MAX_IDLE || waiting.length >= MAX_IDLE_OF_HOST;
    if (isFull || idleMs <= 0 || now - connection.createdAt > MAX_AGE_MS) return connection.destroy();
    waiting.push({ connection, end: now + idleMs });
    this.#idle.set(key, waiting);
    this.#size++;
    this.#cancelSweep ??= this.#clock.after(idleMs, () => this.#sweep());
  }

  /** Forgets a closed connection. */
  forget(key: string, connection: T): void {
    const waiting = this.#idle.get(key);
    const at = waiting?.findIndex((idle) => idle.connection === connection) ?? -1;
    if (waiting === undefined || at === -1) return;
    waiting.splice(at, 1);
    this.#size--;
    if (waiting.length === 0) this.#idle.delete(key);
  }

  close(): void {
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
    for (const waiting of this.#idle.values()) for (const { connection } of waiting) connection.destroy();
    this.#idle.clear();
    this.#size = 0;
  }

  /** Closes the expired ones. One timer serves all: most are used again long before. */
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
