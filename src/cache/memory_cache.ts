import type { Clock } from "../base/clock.ts";
import type { CounterCache, Hit } from "../ratelimit/counter_cache.ts";

/** How often counters whose window is over are dropped. */
const SWEEP_INTERVAL_MS = 1_000;

/** Room for keys, on average: longer ones take the place of several. */
const BYTES_PER_KEY = 256;

/** How the embedded cache is made. */
export interface MemoryCacheOptions {
  /** Most counters held at a time. */
  readonly maxKeys: number;
  readonly clock: Clock;
}

interface Counter {
  count: number;
}

/** All counters whose window ends at one moment. */
interface Bucket {
  readonly counters: Map<string, Counter>;
  /** Characters of its keys. */
  keyLength: number;
  /** Goes on where the last eviction stopped, so that evicting many keys looks at each one once. */
  evictor: MapIterator<string> | undefined;
}

/**
 * Counters in the memory of this process, exact and bounded. They lie in buckets by the end of their
 * window, so that those that are over are dropped all at once, and those nearest their end give way
 * first when there is no room. Two windows of different length that share a key share its counter.
 */
export class MemoryCache implements CounterCache {
  readonly #options: MemoryCacheOptions;
  readonly #buckets = new Map<number, Bucket>();
  #size = 0;
  /** Characters of all keys. */
  #keyLength = 0;
  #evicted = 0;
  #cancelSweep: () => void;

  constructor(options: MemoryCacheOptions) {
    this.#options = options;
    this.#cancelSweep = this.#scheduleSweep();
  }

  /** Counters held now. */
  get size(): number {
    return this.#size;
  }

  /** Counters that gave way before their window was over, since the start. */
  get evicted(): number {
    return this.#evicted;
  }

  add(hits: readonly Hit[]): number[] {
    return hits.map((hit) => this.#addOne(hit));
  }

  read(hits: readonly Hit[]): number[] {
    return hits.map((hit) => this.#find(hit)?.count ?? 0);
  }

  remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      for (const bucket of this.#buckets.values()) this.#delete(bucket, key);
    }
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.#cancelSweep();
    this.#buckets.clear();
    this.#size = 0;
    this.#keyLength = 0;
    return Promise.resolve();
  }

  #addOne(hit: Hit): number {
    const counter = this.#find(hit);
    if (counter === undefined) {
      if (hit.addend <= 0) return 0;
      this.#insert(hit, { count: hit.addend });
      return hit.addend;
    }
    counter.count = Math.max(0, counter.count + hit.addend);
    return counter.count;
  }

  #find(hit: Hit): Counter | undefined {
    const counter = this.#buckets.get(hit.windowEnd)?.counters.get(hit.key);
    if (counter !== undefined) return counter;
    for (const { counters } of this.#buckets.values()) {
      const shared = counters.get(hit.key);
      if (shared === undefined) continue;
      this.#insert(hit, shared);
      return shared;
    }
    return undefined;
  }

  #insert(hit: Hit, counter: Counter): void {
    // Room first: making it may take away a bucket whose window is over.
    if (this.#isFull(hit.key)) this.#makeRoom(hit.key);
    let bucket = this.#buckets.get(hit.windowEnd);
    if (bucket === undefined) {
      bucket = { counters: new Map(), keyLength: 0, evictor: undefined };
      this.#buckets.set(hit.windowEnd, bucket);
    }
    bucket.counters.set(hit.key, counter);
    bucket.keyLength += hit.key.length;
    this.#keyLength += hit.key.length;
    this.#size++;
  }

  #isFull(key: string): boolean {
    const { maxKeys } = this.#options;
    return this.#size >= maxKeys || this.#keyLength + key.length > maxKeys * BYTES_PER_KEY && this.#size > 0;
  }

  #makeRoom(wanted: string): void {
    this.#sweep();
    while (this.#isFull(wanted)) {
      const ends = [...this.#buckets].filter(([, { counters }]) => counters.size > 0).map(([end]) => end);
      const bucket = this.#buckets.get(Math.min(...ends));
      const key = bucket === undefined ? undefined : nextKey(bucket);
      if (bucket === undefined || key === undefined) return;
      this.#delete(bucket, key);
      this.#evicted++;
    }
  }

  #delete(bucket: Bucket, key: string): void {
    if (!bucket.counters.delete(key)) return;
    bucket.keyLength -= key.length;
    this.#keyLength -= key.length;
    this.#size--;
  }

  #sweep(): void {
    const nowSeconds = this.#options.clock.now() / 1000;
    for (const [end, { counters, keyLength }] of this.#buckets) {
      if (end > nowSeconds) continue;
      this.#buckets.delete(end);
      this.#size -= counters.size;
      this.#keyLength -= keyLength;
    }
  }

  #scheduleSweep(): () => void {
    return this.#options.clock.after(SWEEP_INTERVAL_MS, () => {
      this.#sweep();
      this.#cancelSweep = this.#scheduleSweep();
    });
  }
}

/** The key that has been in the bucket for the longest time, among those not looked at yet. */
function nextKey(bucket: Bucket): string | undefined {
  bucket.evictor ??= bucket.counters.keys();
  const next = bucket.evictor.next();
  if (next.done !== true) return next.value;
  bucket.evictor = bucket.counters.keys();
  return bucket.evictor.next().value;
}
