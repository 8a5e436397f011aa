import type { ConditionalLimit, JointLimits, StateLimit } from "../algorithms/conditional_limit.ts";
import type { LeaseLimit } from "../algorithms/leases.ts";
import type { Counted } from "../algorithms/taken.ts";

/** A change of one counter. */
export interface Hit {
  /** The cache key, which contains the start of the window. */
  readonly key: string;
  /** Added to the counter. 0 only reads it; a negative value subtracts, down to 0. */
  readonly addend: number;
  readonly windowEnd: number;
  /** Expiry in a shared cache, in seconds: the window, or what is left of one of a calendar, and the jitter. */
  readonly expiresInSeconds: number;
  /** True for a limit per second, which may have its own cache. */
  readonly perSecond: boolean;
  /** Of the hits of one list, which follow each other and are taken together. */
  readonly joint?: JointLimits | undefined;
}

/** Hits that count only if all of them pass the limit. */
export type ConditionalHit = StateHit | LeaseHit;

interface ConditionalTake {
  /** The cache key, which names the algorithm and its window; one counter per key. */
  readonly key: string;
  /** Hits to take, all or none. 0 asks whether one would pass; a negative value gives back, down to 0. */
  readonly addend: number;
  /** Expiry in a shared cache, in seconds: until all is free again at the latest, and the jitter. */
  readonly expiresInSeconds: number;
  /** True for a limit per second, which may have its own cache. */
  readonly perSecond: boolean;
  /** Of the hits of one list, which follow each other and are taken together. */
  readonly joint?: JointLimits | undefined;
}

/** Hits of several windows that count in all of them or in none. */
export interface JointHit {
  /** That of the first. */
  readonly key: string;
  readonly joint: JointLimits;
  /** In the order of the limits. */
  readonly windows: readonly AnyHit[];
  readonly perSecond: boolean;
}

/** Hits that have no name. */
export interface StateHit extends ConditionalTake {
  readonly limit: StateLimit;
}

/** Hits of a holder, which alone gives them back: at most those that it has. */
export interface LeaseHit extends ConditionalTake {
  readonly limit: LeaseLimit;
  /** Its name, of bounded length. */
  readonly holder: string;
}

/** A hit in a fixed window, or one that counts only if it passes. */
export type AnyHit = Hit | ConditionalHit;

/** True for a hit that is not in a fixed window. */
export function isConditional(hit: AnyHit): hit is ConditionalHit {
  return "limit" in hit;
}

/** Hits of one counter, or of several that are taken together. */
export type TakenHit = AnyHit | JointHit;

/** True for hits of several windows. */
export function isJoint(hit: TakenHit): hit is JointHit {
  return "windows" in hit;
}

/** The caller that waits for counts; the same object for all hits that are taken together. */
export interface Caller {
  /** Unsent hits of a cancelled caller need not be counted. */
  readonly cancelled: boolean;
  /** The number of hits that are taken together, in one turn; 1 by default. */
  readonly hitCount?: number;
  /** The start of the timeout by the clock's `elapsed`, shared by several steps of a call; by default the take itself. */
  readonly since?: number | undefined;
  /** The same object in all steps of a call. */
  readonly call?: WeakKey | undefined;
}

/** Receives the outcome of one take; one of its methods is called once, at the latest when the cache times out. */
export interface CountReceiver {
  /** Gets the count after the hits; of a conditional counter, what became of them. */
  counted(count: Counted): void;
  /** Gets a `CacheError`: the hits may or may not have been counted. */
  failed(error: unknown): void;
}

/** The counter behind a hit. It may be used again for hits of the same key and window, and of the same holder. */
export interface Counter {
  /**
   * Takes hits: a conditional counter all of them or none, by the clock of the cache. 0 only reads, and a negative number
   * gives back, down to 0. Neither creates a counter; a missing one is 0. Takes of one key count in their order, and takes
   * in one turn are sent together. That of several windows gives the outcome in each: 0 asks whether one hit would pass in
   * all of them.
   */
  take(hits: number, caller: Caller | undefined, receiver: CountReceiver): void;
}

/** Shared counters. An adapter only counts and knows no limits. */
export interface CounterCache {
  /** True if it has counters for conditional hits, in addition to those in fixed windows. */
  readonly isConditional: boolean;
  /** True if receivers are called before `take` returns. */
  readonly isImmediate: boolean;
  /**
   * The counter of a hit, whose addend is not counted. Throws `InvalidRequestError` for a key that it cannot store. Hits of
   * several windows have one counter; a cache without conditional counters has none for them.
   */
  counterOf(hit: TakenHit): Counter;
  /** Throws `CacheError`. */
  remove(keys: readonly string[]): Promise<void>;
  /** Closes connections and timers; called last. */
  close(): Promise<void>;
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
  /** The last count of the key, if it is remembered until then. */
  get(key: string, nowSeconds: number): KnownKey | undefined;
  /** Remembers the key until then; may evict other keys. */
  set(key: string, known: KnownKey, nowSeconds: number): void;
  forget(key: string): void;
  /** Forgets the keys that were remembered or used after this time, because the clock was set back. */
  dropUsedAfter(nowSeconds: number): void;
}
