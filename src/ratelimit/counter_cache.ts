/** A change of one counter. */
export interface Hit {
  /** The cache key, which contains the start of the window. */
  readonly key: string;
  /** Added to the counter. 0 only reads it; a negative value subtracts, down to 0. */
  readonly addend: number;
  readonly windowEnd: number;
  /** Expiry in a shared cache, in seconds: the window and the jitter. */
  readonly expiresInSeconds: number;
  /** Whether the limit is per second, which may have its own cache. */
  readonly perSecond: boolean;
}

/** The caller that waits for counts. */
export interface Caller {
  /** Unsent hits of a cancelled caller need not be counted. */
  readonly cancelled: boolean;
  /** The start of the timeout in milliseconds, shared by several calls; undefined to start with each call. */
  readonly since?: number;
}

/**
 * Shared counters. An adapter only counts and knows no limits. Methods throw `CacheError` when they fail or time out;
 * its `counts` are those of the hits that succeeded, and other hits may or may not have been counted.
 */
export interface CounterCache {
  /**
   * Adds the hits in order and returns the count after each, so that two hits of one key get successive counts. A
   * missing counter is 0, and is not created to read or subtract.
   */
  add(hits: readonly Hit[], caller?: Caller): number[] | Promise<number[]>;
  /** Returns the current counts, in the order of the hits. */
  read(hits: readonly Hit[], caller?: Caller): number[] | Promise<number[]>;
  remove(keys: readonly string[]): Promise<void>;
  /** Closes connections and timers; called last. */
  close(): Promise<void>;
}

/** Keys that are known to be over their limit, which need no call to the shared cache. */
export interface LocalCache {
  /** The last known count of the key in its window. */
  get(key: string, nowSeconds: number): number | undefined;
  /** Remembers the count until the window ends; may evict other keys. */
  set(key: string, count: number, windowEnd: number, nowSeconds: number): void;
  forget(key: string): void;
}
