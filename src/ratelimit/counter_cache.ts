/** One counter to move. */
export interface Hit {
  /** Name of the counter in the cache; it holds the start of its window. */
  readonly key: string;
  /** Added to the counter. 0 reads it; below 0 gives back, and the counter stops at 0. */
  readonly addend: number;
  /** End of the window in seconds since the epoch. The counter is of no use after it. */
  readonly windowEnd: number;
  /** How long a shared cache is to keep the counter, in seconds: the window and the jitter. */
  readonly expiresInSeconds: number;
  /** The limit is one per second: with two caches it is counted in the one for those. */
  readonly perSecond: boolean;
}

/** Who waits for counts. */
export interface Caller {
  /** Nobody waits any more: hits that were not sent yet need not be counted. */
  readonly gone: boolean;
  /**
   * When it began to ask, in milliseconds, where it asks more than once: the time-out counts from then.
   * Absent where it counts from each asking.
   */
  readonly since?: number;
}

/**
 * Shared counters. An adapter only counts: it knows nothing of limits.
 * Every method throws `CacheError` when counters cannot be asked, within the time that the adapter was
 * given. Its `counts` tell which of the hits were answered all the same; of the others some may have
 * been counted and some not.
 */
export interface CounterCache {
  /**
   * Moves every counter, in order, and answers the counts after each step, in the order of the hits.
   * Two hits of one key see successive counts. A counter that does not exist counts as 0; one that
   * is only read or given back is not made.
   */
  add(hits: readonly Hit[], caller?: Caller): number[] | Promise<number[]>;
  /** The counts as they stand, in the order of the hits; nothing is moved. */
  read(hits: readonly Hit[], caller?: Caller): number[] | Promise<number[]>;
  /** Forgets the counters with these keys. */
  remove(keys: readonly string[]): Promise<void>;
  /** Lets go of connections and timers. No method is called after it. */
  close(): Promise<void>;
}
