import { backoffMs } from "../../base/backoff.ts";
import type { SharedCacheOptions } from "../shared_cache_options.ts";

/** Waits between attempts once there was a connection. */
const RECONNECT = { firstMs: 50, longestMs: 2_000 };
/** The settings allow no wait at all, which would be a storm of attempts. */
const SHORTEST_MS = 10;

/** The waits until the first connection, in milliseconds. */
export interface KvStartupTimes {
  readonly initialMs: number;
  readonly maxMs: number;
  /** The attempts end after this; 0 means never. */
  readonly maxElapsedMs: number;
}

/** What the waits of all connections to one key-value cache depend on. */
export interface KvStartupOptions extends Pick<SharedCacheOptions, "clock" | "random"> {
  /** When absent, the waits at the start are those of a reconnect. */
  readonly times?: KvStartupTimes | undefined;
  /** Called once when there was no connection in time, with the last error. */
  readonly onGivenUp?: ((reason: string) => void) | undefined;
}

/** The waits between attempts to connect, which differ until the first connection. */
export class KvStartup {
  readonly #options: KvStartupOptions;
  readonly #startedAt: number;
  #isOver: boolean;
  #isGivenUp = false;

  constructor(options: KvStartupOptions) {
    this.#options = options;
    this.#startedAt = options.clock.now();
    this.#isOver = options.times === undefined;
  }

  /** There was a connection: from now on the waits are short, and nothing is given up. */
  connected(): void {
    this.#isOver = true;
  }

  /** The wait before the next attempt, counted from 1, or `null` for none; `reason` is why the last one failed. */
  delayMs(attempt: number, reason: string): number | null {
    const { times, clock, random } = this.#options;
    if (this.#isOver || times === undefined) return backoffMs(attempt, random(), RECONNECT);
    const waits = { firstMs: Math.max(times.initialMs, SHORTEST_MS), longestMs: times.maxMs };
    const delay = Math.max(SHORTEST_MS, backoffMs(attempt, random(), waits));
    if (times.maxElapsedMs === 0) return delay;
    const left = this.#startedAt + times.maxElapsedMs - clock.now();
    if (left > 0) return Math.min(delay, left);
    if (!this.#isGivenUp) this.#options.onGivenUp?.(reason);
    this.#isGivenUp = true;
    return null;
  }
}
