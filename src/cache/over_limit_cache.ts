import type { Metrics } from "../base/metrics.ts";
import type { LOCAL_CACHE_METRICS } from "./metrics.ts";
import type { KnownKey, LocalCache } from "../ratelimit/decision/counter_cache.ts";

/** The cost of an entry without the characters of its key. */
const ENTRY_BYTES = 120;

interface OverLimitEntry extends KnownKey {
  /** When it was last used, in seconds since the epoch. */
  usedAt: number;
}

/** Over-limit keys of this process, limited in bytes; the least recently used ones are evicted. */
export class OverLimitCache implements LocalCache {
  readonly #maxBytes: number;
  /** In the order of their last use. */
  readonly #entries = new Map<string, OverLimitEntry>();
  #bytes = 0;
  #usedAtSum = 0;
  readonly #tally = { hits: 0, misses: 0, overwritten: 0, expired: 0, evicted: 0 };

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** An estimate of the memory held. */
  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** By the names of the original's metrics, which are all gauges. */
  get metrics(): Metrics<typeof LOCAL_CACHE_METRICS.metrics> {
    return {
      counters: {},
      gauges: {
        entryCount: () => this.#entries.size,
        hitCount: () => this.#tally.hits,
        missCount: () => this.#tally.misses,
        lookupCount: () => this.#tally.hits + this.#tally.misses,
        overwriteCount: () => this.#tally.overwritten,
        expiredCount: () => this.#tally.expired,
        evacuateCount: () => this.#tally.evicted,
        averageAccessTime: () => this.#entries.size === 0 ? 0 : this.#usedAtSum / this.#entries.size,
      },
    };
  }

  get(key: string, nowSeconds: number): KnownKey | undefined {
    // Without entries the key need not be hashed.
    const entry = this.#entries.size === 0 ? undefined : this.#entries.get(key);
    if (entry === undefined) {
      this.#tally.misses++;
      return undefined;
    }
    if (entry.windowEnd <= nowSeconds) {
      this.#remove(key);
      this.#tally.misses++;
      this.#tally.expired++;
      return undefined;
    }
    this.#tally.hits++;
    this.#usedAtSum += nowSeconds - entry.usedAt;
    entry.usedAt = nowSeconds;
    // The last in the order of use.
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  set(key: string, { count, windowEnd, limit }: KnownKey, nowSeconds: number): void {
    if (this.#remove(key)) this.#tally.overwritten++;
    const size = entryBytes(key);
    if (windowEnd <= nowSeconds || size > this.#maxBytes) return;
    for (const [oldest, entry] of this.#entries) {
      if (this.#bytes + size <= this.#maxBytes) break;
      this.#remove(oldest);
      if (entry.windowEnd <= nowSeconds) this.#tally.expired++;
      else this.#tally.evicted++;
    }
    this.#entries.set(key, { count, windowEnd, limit, usedAt: nowSeconds });
    this.#bytes += size;
    this.#usedAtSum += nowSeconds;
  }

  dropUsedAfter(nowSeconds: number): void {
    for (const [key, { usedAt }] of this.#entries) {
      if (usedAt <= nowSeconds) continue;
      this.#remove(key);
      this.#tally.expired++;
    }
  }

  forget(key: string): void {
    this.#remove(key);
  }

  #remove(key: string): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#entries.delete(key);
    this.#bytes -= entryBytes(key);
    this.#usedAtSum -= entry.usedAt;
    return true;
  }
}

/** With two bytes a character, the most that the engine takes. */
function entryBytes(key: string): number {
  return key.length * 2 + ENTRY_BYTES;
}
