import type { ConditionalLimit } from "./algorithms/conditional_limit.ts";
import type { Taken } from "./algorithms/taken.ts";

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
  /** For the adapter of a shared cache, in a hit that is used again; absent in others. */
  readonly kept?: KeptHit;
}

/** Hits that count only if all of them pass the limit. */
export interface ConditionalHit {
  /** The cache key, which names the algorithm and its window; one counter per key. */
  readonly key: string;
  readonly limit: ConditionalLimit;
  /** Hits to take, all or none. 0 asks whether one would pass; a negative value gives back, down to 0. */
  readonly addend: number;
  /** Expiry in a shared cache, in seconds: until all is free again at the latest, and the jitter. */
  readonly expiresInSeconds: number;
  /** Whether the limit is per second, which may have its own cache. */
  readonly perSecond: boolean;
}

/** What an adapter keeps in a hit that is used again. */
export interface KeptHit {
  /** Memory that contains the hit in the protocol of the adapter, and where. */
  bytes: Uint8Array | undefined;
  start: number;
  end: number;
  /** The batch that the hit was in last, and the position of its group there. */
  batch: number;
  group: number;
  /** Proves that the counter has its expiry. */
  expiry: object | undefined;
}

/** A hit that is used again. One object, because most of its cost is reading memory that is not cached. */
export class RepeatedHit implements Hit, KeptHit {
  readonly key: string;
  readonly addend: number;
  readonly windowEnd: number;
  readonly expiresInSeconds: number;
  readonly perSecond: boolean;
  bytes: Uint8Array | undefined = undefined;
  start = 0;
  end = 0;
  batch = 0;
  group = 0;
  expiry: object | undefined = undefined;

  constructor({ key, addend, windowEnd, expiresInSeconds, perSecond }: Hit) {
    this.key = key;
    this.addend = addend;
    this.windowEnd = windowEnd;
    this.expiresInSeconds = expiresInSeconds;
    this.perSecond = perSecond;
  }

  get kept(): KeptHit {
    return this;
  }
}

/** The caller that waits for counts. */
export interface Caller {
  /** Unsent hits of a cancelled caller need not be counted. */
  readonly cancelled: boolean;
  /** The start of the timeout by the clock's `elapsed`, shared by several calls; undefined to start with each call. */
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
  /**
   * Takes conditional hits in order by the clock of the cache, and returns what became of each, so that several hits of
   * one key are answered one after the other. An unknown counter is free, and asking or giving back does not create it.
   * Absent if the cache cannot do it.
   */
  take?(hits: readonly ConditionalHit[], caller?: Caller): Taken[] | Promise<Taken[]>;
  /** As `add` for a single hit, without a promise. */
  addOne?(hit: Hit, caller: Caller | undefined, receiver: CountReceiver): void;
  /** Where this process counts these hits, if it does and the counter exists. */
  placeOf?(hit: Hit): CounterPlace | undefined;
  /** The same for conditional hits. */
  takingPlaceOf?(hit: ConditionalHit): TakingPlace | undefined;
  /** Closes connections and timers; called last. */
  close(): Promise<void>;
}

/** Receives the outcome of one hit; one of its methods is called once, at the latest when the cache times out. */
export interface CountReceiver {
  counted(count: number): void;
  /** Gets what `add` would throw. */
  failed(error: unknown): void;
}

/** An existing counter of a cache of this process. */
export interface CounterPlace {
  /**
   * Adds a positive number and returns the count, or undefined if that would exceed the limit or if the counter was
   * removed or moved: then nothing was added.
   */
  addWithin(limit: number, addend: number): number | undefined;
}

/** An existing counter of conditional hits of a cache of this process. */
export interface TakingPlace {
  /**
   * Takes a positive number of hits, or returns undefined if they do not pass or if the counter was removed: then nothing
   * was taken.
   */
  take(hits: number): Taken | undefined;
}

/** A key that was over its limit. */
export interface KnownKey {
  /** The last count. */
  readonly count: number;
  /** Seconds since the epoch: the end of the window; of a conditional hit, when one would pass. */
  readonly windowEnd: number;
  /** The limit that refused a conditional hit; each load of rules has its own. */
  readonly limit?: ConditionalLimit | undefined;
}

/** Keys that are known to be over their limit, which need no call to the shared cache. */
export interface LocalCache {
  /** What is known of the key, until then. */
  get(key: string, nowSeconds: number): KnownKey | undefined;
  /** Remembers the key until then; may evict other keys. */
  set(key: string, known: KnownKey, nowSeconds: number): void;
  forget(key: string): void;
  /** Forgets the keys that were remembered or used after this time, because the clock was set back. */
  dropUsedAfter(nowSeconds: number): void;
}
