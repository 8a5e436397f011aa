import { type Clock, type SteadyClock, steadyClock } from "../base/clock.ts";
import {
  type AnyHit,
  type Caller,
  type Counter,
  type CounterCache,
  type CountReceiver,
  type Hit,
  isConditional,
  isJoint,
  type TakenHit,
} from "../ratelimit/decision/counter_cache.ts";
import { windowStartOf } from "../ratelimit/rules/cache_key.ts";
import { ConditionalCounters, type ConditionalRoom, type HeldCounters } from "./conditional_counters.ts";
import { JointCounter } from "./joint_counter.ts";
import { KeyRoom } from "./key_room.ts";
import { LeaseCounters } from "./lease_counters.ts";

const FIRST_SLOTS = 16;
/** Of a bucket that was dropped. */
const NO_COUNTS = new Float64Array(0);
const NO_GENERATIONS = new Uint32Array(0);
const SWEEP_INTERVAL_MS = 1_000;
/** Heap of a counter with a key of that length, while the table grows (measured: 335 bytes). */
const HEAP_BYTES_PER_KEY = 350;
const OTHER_HEAP_BYTES = 64 * 2 ** 20;

/** The most heap that a process with so many counters takes, in bytes. */
export function heapBytesOf(maxKeys: number): number {
  return maxKeys * HEAP_BYTES_PER_KEY + OTHER_HEAP_BYTES;
}

/**
 * Counters in the memory of this process. They are in buckets by the end of their window: a bucket that is
 * over is dropped as a whole, and the one nearest its end is evicted first. Windows of different length that
 * share a key share its counter, which is then in the later bucket.
 */
export class MemoryCache implements CounterCache {
  readonly isConditional = true;
  readonly isImmediate = true;
  readonly #clock: SteadyClock;
  readonly #room: KeyRoom;
  readonly #buckets = new Map<number, CounterBucket>();
  /** Those of other algorithms than fixed windows. */
  readonly #conditional: {
    readonly slices: ConditionalCounters;
    readonly bucket: ConditionalCounters;
    readonly leases: LeaseCounters;
  };
  readonly #allConditional: readonly HeldCounters[];
  readonly #windows: WindowCounters = {
    bucketOf: (windowEnd) => this.#buckets.get(windowEnd),
    takeElsewhere: (hit, hits) => this.#takeElsewhere(hit, hits),
  };
  readonly #states: ConditionalRoom = {
    nowUs: () => this.#nowUs(),
    // Evicts other algorithms first, as the key is one of them.
    makeRoom: (weight, keys) => {
      this.#sweepWindows();
      while (this.#room.isFull(weight, keys) && (this.#evictConditional() || this.#evictFixed()));
    },
  };
  #evicted = 0;
  #cancelSweep: () => void;
  readonly #cancelSetBack: () => void;

  /** Holds at most `maxKeys` counters. */
  constructor({ maxKeys, clock }: { readonly maxKeys: number; readonly clock: Clock }) {
    this.#clock = steadyClock(clock);
    this.#room = new KeyRoom(maxKeys);
    this.#conditional = {
      slices: new ConditionalCounters("slices", this.#room),
      bucket: new ConditionalCounters("bucket", this.#room),
      leases: new LeaseCounters(this.#room),
    };
    this.#allConditional = Object.values(this.#conditional);
    this.#cancelSweep = this.#scheduleSweep();
    this.#cancelSetBack = this.#clock.onSetBack((now) => this.#dropFuture(now));
  }

  get size(): number {
    return this.#room.keys;
  }

  /** Counters that were evicted before their window was over. */
  get evicted(): number {
    return this.#evicted;
  }

  counterOf(hit: TakenHit): Counter {
    return isJoint(hit) ? new JointCounter(hit, (window) => this.#counterOf(window)) : this.#counterOf(hit);
  }

  #counterOf(hit: AnyHit): Counter {
    if (!isConditional(hit)) return new WindowCounter(hit, this.#windows);
    if ("holder" in hit) return this.#conditional.leases.counterOf(hit, this.#states);
    return this.#conditional[hit.limit.kind].counterOf(hit, this.#states);
  }

  remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      for (const bucket of this.#buckets.values()) this.#delete(bucket, key);
      for (const counters of this.#allConditional) counters.remove(key);
    }
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.#cancelSweep();
    this.#cancelSetBack();
    for (const bucket of this.#buckets.values()) this.#drop(bucket);
    this.#buckets.clear();
    return Promise.resolve();
  }

  /** Takes hits of a counter that is new, or in another bucket. */
  #takeElsewhere({ key, windowEnd }: Hit, hits: number): number {
    const holder = this.#holder(key);
    if (holder !== undefined && (holder.end > windowEnd || hits === 0)) return holder.bucket.add(key, hits);
    const before = holder === undefined ? undefined : this.#delete(holder.bucket, key);
    if (before === undefined && hits <= 0) return 0;
    const count = Math.max(0, (before ?? 0) + hits);
    this.#insert(key, count, windowEnd);
    return count;
  }

  #holder(key: string): { bucket: CounterBucket; end: number } | undefined {
    for (const [end, bucket] of this.#buckets) {
      if (bucket.slotOf(key) !== undefined) return { bucket, end };
    }
    return undefined;
  }

  #insert(key: string, count: number, windowEnd: number): void {
    // First, because this may drop a bucket.
    if (this.#room.isFull(key.length)) this.#makeRoom(key.length);
    let bucket = this.#buckets.get(windowEnd);
    if (bucket === undefined) this.#buckets.set(windowEnd, bucket = new CounterBucket());
    bucket.insert(key, count);
    this.#room.take(key.length);
  }

  /** Evicts counters of fixed windows, then others. */
  #makeRoom(length: number): void {
    this.#sweepWindows();
    while (this.#room.isFull(length) && (this.#evictFixed() || this.#evictConditional()));
  }

  /** Evicts the counter that is nearest the end of its window; returns whether there was one. */
  #evictFixed(): boolean {
    const ends = [...this.#buckets].filter(([, { size }]) => size > 0).map(([end]) => end);
    const bucket = this.#buckets.get(Math.min(...ends));
    const oldest = bucket?.oldest();
    if (bucket === undefined || oldest === undefined) return false;
    this.#delete(bucket, oldest);
    this.#evicted++;
    return true;
  }

  #evictConditional(): boolean {
    const nowUs = this.#nowUs();
    for (const counters of this.#allConditional) {
      const freeMs = counters.evict(nowUs);
      if (freeMs === undefined) continue;
      if (freeMs > 0) this.#evicted++;
      return true;
    }
    return false;
  }

  #delete(bucket: CounterBucket, key: string): number | undefined {
    const count = bucket.delete(key);
    if (count === undefined) return undefined;
    this.#room.free(1, key.length);
    return count;
  }

  #sweep(): void {
    this.#sweepWindows();
    const nowUs = this.#nowUs();
    for (const counters of this.#allConditional) counters.sweep(nowUs);
  }

  /** Drops what a clock that was set back has counted in its future: it would come back, or be refused until then. */
  #dropFuture(now: number): void {
    const keys: string[] = [];
    for (const [end, bucket] of this.#buckets) {
      if (end * 1_000 <= now) continue;
      for (const key of bucket.keys()) if (windowStartOf(key) * 1_000 > now) keys.push(key);
    }
    for (const counters of this.#allConditional) {
      for (const key of counters.changedAfter(now * 1_000)) keys.push(key);
    }
    void this.remove(keys);
  }

  #sweepWindows(): void {
    const nowSeconds = this.#clock.now() / 1000;
    for (const [end, bucket] of this.#buckets) {
      if (end > nowSeconds) continue;
      this.#buckets.delete(end);
      this.#drop(bucket);
    }
  }

  #drop(bucket: CounterBucket): void {
    this.#room.free(bucket.size, bucket.keyLength);
    bucket.drop();
  }

  #nowUs(): number {
    return Math.floor(this.#clock.now() * 1_000);
  }

  #scheduleSweep(): () => void {
    return this.#clock.after(SWEEP_INTERVAL_MS, () => {
      this.#sweep();
      this.#cancelSweep = this.#scheduleSweep();
    });
  }
}

/** Counters whose windows end together. The counts are in one array: a million fewer objects per million. */
class CounterBucket {
  readonly #slots = new Map<string, number>();
  readonly #free: number[] = [];
  #counts = new Float64Array(FIRST_SLOTS);
  /** By slot: how many counters were removed from it. */
  #generations = new Uint32Array(FIRST_SLOTS);
  #isDropped = false;
  #used = 0;
  #keyLength = 0;
  /** Continues where the last eviction stopped, so that evicting many keys visits each one once. */
  #oldest: MapIterator<string> | undefined;

  get size(): number {
    return this.#slots.size;
  }

  keys(): Iterable<string> {
    return this.#slots.keys();
  }

  /** Characters of all keys. */
  get keyLength(): number {
    return this.#keyLength;
  }

  slotOf(key: string): number | undefined {
    return this.#slots.get(key);
  }

  /** The generation of the counter in a slot, which no later one has. */
  generationOf(slot: number): number {
    return this.#generations[slot] ?? 0;
  }

  /** Adds to a counter that is held, which stops at 0; returns the new count. */
  add(key: string, hits: number): number {
    const slot = this.#slots.get(key);
    return slot === undefined ? 0 : this.addAt(slot, this.generationOf(slot), hits) ?? 0;
  }

  /** The same by its slot; undefined if it was removed from there. */
  addAt(slot: number, generation: number, hits: number): number | undefined {
    if (this.#isDropped || this.#generations[slot] !== generation) return undefined;
    const count = Math.max(0, (this.#counts[slot] ?? 0) + hits);
    this.#counts[slot] = count;
    return count;
  }

  /** Adds a key that is not held. */
  insert(key: string, count: number): void {
    const slot = this.#free.pop() ?? this.#used++;
    if (slot >= this.#counts.length) {
      const counts = new Float64Array(this.#counts.length * 2);
      counts.set(this.#counts);
      this.#counts = counts;
      const generations = new Uint32Array(counts.length);
      generations.set(this.#generations);
      this.#generations = generations;
    }
    this.#counts[slot] = count;
    this.#slots.set(key, slot);
    this.#keyLength += key.length;
  }

  /** Removes a key; returns its count, or nothing when it was not held. */
  delete(key: string): number | undefined {
    const slot = this.#slots.get(key);
    if (slot === undefined) return undefined;
    this.#slots.delete(key);
    this.#generations[slot] = (this.#generations[slot] ?? 0) + 1;
    this.#free.push(slot);
    this.#keyLength -= key.length;
    return this.#counts[slot];
  }

  /** The bucket is no longer in use: nothing is added to its slots. Their places may be held, but hold no memory. */
  drop(): void {
    this.#isDropped = true;
    this.#slots.clear();
    this.#free.length = 0;
    this.#counts = NO_COUNTS;
    this.#generations = NO_GENERATIONS;
    this.#oldest = undefined;
  }

  /** The key that has been held longest, of those not returned yet. */
  oldest(): string | undefined {
    this.#oldest ??= this.#slots.keys();
    const next = this.#oldest.next();
    if (next.done !== true) return next.value;
    this.#oldest = this.#slots.keys();
    return this.#oldest.next().value;
  }
}

/** The counters in fixed windows, as one of them sees them. */
interface WindowCounters {
  bucketOf(windowEnd: number): CounterBucket | undefined;
  /** Takes hits of a counter that is new, or in another bucket. */
  takeElsewhere(hit: Hit, hits: number): number;
}

/** A counter in a fixed window, and its slot since it was last found. */
class WindowCounter implements Counter {
  #bucket: CounterBucket | undefined;
  #slot = 0;
  #generation = 0;
  readonly #hit: Hit;
  readonly #windows: WindowCounters;

  constructor(hit: Hit, windows: WindowCounters) {
    this.#hit = hit;
    this.#windows = windows;
  }

  take(hits: number, _caller: Caller | undefined, receiver: CountReceiver): void {
    receiver.counted(this.#bucket?.addAt(this.#slot, this.#generation, hits) ?? this.#find(hits));
  }

  #find(hits: number): number {
    const { key, windowEnd } = this.#hit;
    const bucket = this.#windows.bucketOf(windowEnd);
    const slot = bucket?.slotOf(key);
    if (bucket === undefined || slot === undefined) return this.#windows.takeElsewhere(this.#hit, hits);
    this.#bucket = bucket;
    this.#slot = slot;
    this.#generation = bucket.generationOf(slot);
    return bucket.add(key, hits);
  }
}
