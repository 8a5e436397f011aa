import { backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";

/** Waits between attempts once there has been a connection. */
const RECONNECT = { firstMs: 50, longestMs: 2_000 };
/** Settings may ask for no wait at all; that would be a storm of attempts. */
const SHORTEST_MS = 10;

/** How attempts go until the first connection, in milliseconds. */
export interface KvStartupTimes {
  readonly initialMs: number;
  readonly maxMs: number;
  /** After this the attempts end; 0 means never. */
  readonly maxElapsedMs: number;
}

/** What the waits of all connections to one key-value cache have in common. */
export interface KvStartupOptions {
  /** When absent, the waits at the start are those that hold later. */
  readonly times?: KvStartupTimes | undefined;
  readonly clock: Clock;
  readonly random: () => number;
  /** Called once when there was no connection in time, with the last error. */
  readonly onGivenUp?: ((reason: string) => void) | undefined;
}

/** The waits between attempts to connect, which are other ones until the first connection. */
export class KvStartup {
  readonly #options: KvStartupOptions;
  readonly #startedAt: number;
  #lastReason = "no attempt has ended";
  #over: boolean;
  #givenUp = false;

  constructor(options: KvStartupOptions) {
    this.#options = options;
    this.#startedAt = options.clock.now();
    this.#over = options.times === undefined;
  }

  /** There was a connection: from now on short waits hold, and nothing is given up. */
  connected(): void {
    this.#over = true;
  }

  /** Remembers why the last attempt failed. */
  failed(reason: string): void {
    this.#lastReason = reason;
  }

  /** The wait before the next attempt, counted from 1, or `null` when there shall be none. */
  delayMs(attempt: number): number | null {
    const { times, clock, random } = this.#options;
    if (this.#over || times === undefined) return reconnectDelayMs(attempt, random());
    const waits = { firstMs: Math.max(times.initialMs, SHORTEST_MS), longestMs: times.maxMs };
    const delay = Math.max(SHORTEST_MS, backoffMs(attempt, random(), waits));
    if (times.maxElapsedMs === 0) return delay;
    const left = this.#startedAt + times.maxElapsedMs - clock.now();
    if (left > 0) return Math.min(delay, left);
    if (!this.#givenUp) this.#options.onGivenUp?.(this.#lastReason);
    this.#givenUp = true;
    return null;
  }
}

/** The wait of a connection that was there before. */
export function reconnectDelayMs(attempt: number, random: number): number {
  return backoffMs(attempt, random, RECONNECT);
}
