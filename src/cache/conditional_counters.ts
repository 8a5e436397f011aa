import { isInFuture, type StateLimit, stateSize, take } from "../ratelimit/algorithms/conditional_limit.ts";
import type { Taken } from "../ratelimit/algorithms/taken.ts";
import type { Caller, Counter, CountReceiver, StateHit } from "../ratelimit/decision/counter_cache.ts";
import type { KeyRoom } from "./key_room.ts";

const STATES_PER_CHUNK = 1_024;
/** States that one sweep looks at; the next one continues there. */
const SWEPT = 65_536;
/** Counters from which the one to evict is chosen. */
export const SAMPLED = 16;
const BYTES_PER_NUMBER = 8;

/** The clock and the room that conditional counters share with all others. */
export interface ConditionalRoom {
  /** Microseconds since the epoch. */
  nowUs(): number;
  /** Evicts others, to hold keys of this total weight. */
  makeRoom(weight: number, keys?: number): void;
}

/** The conditional counters of a process that are held in the same way. */
export interface HeldCounters {
  /** Removes a key, and returns whether it was held. */
  remove(key: string): boolean;
  /** The keys whose counters were changed after this time. */
  changedAfter(nowUs: number): Iterable<string>;
  /** Drops counters that are all free, among the next ones. */
  sweep(nowUs: number): void;
  /** Evicts the key that is free first among the next ones, and returns the milliseconds until then. */
  evict(nowUs: number): number | undefined;
}

/** The first of the keys to be free, and the milliseconds until then; undefined without any. */
export function firstFree(
  keys: readonly string[],
  freeMsOf: (key: string) => number,
): { readonly key: string; readonly freeMs: number } | undefined {
  let first: { readonly key: string; readonly freeMs: number } | undefined;
  for (const key of keys) {
    const freeMs = freeMsOf(key);
    if (first === undefined || freeMs < first.freeMs) first = { key, freeMs };
  }
  return first;
}

/** States of conditional limits of one kind, by key. A state that is all free is dropped. */
export class ConditionalCounters implements HeldCounters {
  readonly #kind: StateLimit["kind"];
  readonly #size: number;
  readonly #room: KeyRoom;
  readonly #slots = new Map<string, number>();
  /** By slot; undefined if it is free. */
  readonly #keys: (string | undefined)[] = [];
  readonly #limits: (StateLimit | undefined)[] = [];
  readonly #free: number[] = [];
  /** In pieces, because one array would be copied to grow. */
  readonly #chunks: Float64Array[] = [];
  readonly #scratch: Float64Array;
  #hand = 0;

  constructor(kind: StateLimit["kind"], room: KeyRoom) {
    this.#kind = kind;
    this.#size = stateSize(kind);
    this.#room = room;
    this.#scratch = new Float64Array(this.#size);
  }

  get size(): number {
    return this.#slots.size;
  }

  counterOf(hit: StateHit, room: ConditionalRoom): Counter {
    return new ConditionalCounter(hit, this, room);
  }

  slotOf(key: string): number | undefined {
    return this.#slots.get(key);
  }

  /** Takes hits of a key by its slot; undefined if the slot is not its own any more. */
  takeAt(slot: number, { key, limit }: StateHit, hits: number, nowUs: number): Taken | undefined {
    if (this.#keys[slot] !== key) return undefined;
    // A reload may have changed it.
    this.#limits[slot] = limit;
    return take(this.#chunkOf(slot), this.#offsetOf(slot), limit, nowUs, hits);
  }

  /** Takes hits of a key that is not held, and holds it if something was taken and room was made. */
  insert({ key, limit }: StateHit, hits: number, room: ConditionalRoom): Taken {
    const state = this.#scratch.fill(0);
    const taken = take(state, 0, limit, room.nowUs(), hits);
    if (taken.used === 0) return taken;
    const weight = this.#weightOf(key);
    if (this.#room.isFull(weight)) room.makeRoom(weight);
    const slot = this.#free.pop() ?? this.#keys.length;
    if (slot % STATES_PER_CHUNK === 0 && this.#chunks.length <= slot / STATES_PER_CHUNK) {
      this.#chunks.push(new Float64Array(STATES_PER_CHUNK * this.#size));
    }
    this.#chunkOf(slot).set(state, this.#offsetOf(slot));
    this.#slots.set(key, slot);
    this.#keys[slot] = key;
    this.#limits[slot] = limit;
    this.#room.take(weight);
    return taken;
  }

  remove(key: string): boolean {
    const slot = this.#slots.get(key);
    if (slot === undefined) return false;
    this.#slots.delete(key);
    this.#keys[slot] = undefined;
    this.#limits[slot] = undefined;
    this.#free.push(slot);
    this.#room.free(1, this.#weightOf(key));
    return true;
  }

  *changedAfter(nowUs: number): Generator<string> {
    for (const [key, slot] of this.#slots) {
      const limit = this.#limits[slot];
      if (limit !== undefined && isInFuture(this.#chunkOf(slot), this.#offsetOf(slot), limit, nowUs)) {
        yield key;
      }
    }
  }

  sweep(nowUs: number): void {
    for (const key of this.#next(SWEPT)) {
      if (this.#freeMs(key, nowUs) === 0) this.remove(key);
    }
  }

  evict(nowUs: number): number | undefined {
    const chosen = firstFree(this.#next(SAMPLED), (key) => this.#freeMs(key, nowUs));
    if (chosen !== undefined) this.remove(chosen.key);
    return chosen?.freeMs;
  }

  /** Up to so many keys, each at most once, from where the last call stopped. */
  #next(count: number): string[] {
    const keys: string[] = [];
    const slots = this.#keys.length;
    for (let looked = 0; looked < slots && keys.length < count && this.size > 0; looked++) {
      this.#hand = (this.#hand + 1) % slots;
      const key = this.#keys[this.#hand];
      if (key !== undefined) keys.push(key);
    }
    return keys;
  }

  #freeMs(key: string, nowUs: number): number {
    const slot = this.#slots.get(key) ?? 0;
    const limit = this.#limits[slot];
    return limit === undefined ? 0 : take(this.#chunkOf(slot), this.#offsetOf(slot), limit, nowUs, 0).freeMs;
  }

  #chunkOf(slot: number): Float64Array {
    return this.#chunks[Math.floor(slot / STATES_PER_CHUNK)] ?? this.#scratch;
  }

  #offsetOf(slot: number): number {
    return (slot % STATES_PER_CHUNK) * this.#size;
  }

  /** A state takes room as a longer key does; a short one is included in that of a key. */
  #weightOf(key: string): number {
    return key.length + (this.#kind === "slices" ? this.#size * BYTES_PER_NUMBER : 0);
  }
}

/** A conditional counter, and its slot since it was last found. */
class ConditionalCounter implements Counter {
  readonly #hit: StateHit;
  readonly #counters: ConditionalCounters;
  readonly #room: ConditionalRoom;
  #slot: number | undefined;

  constructor(hit: StateHit, counters: ConditionalCounters, room: ConditionalRoom) {
    this.#hit = hit;
    this.#counters = counters;
    this.#room = room;
  }

  take(hits: number, _caller: Caller | undefined, receiver: CountReceiver): void {
    receiver.counted(this.#takeHeld(hits) ?? this.#counters.insert(this.#hit, hits, this.#room));
  }

  #takeHeld(hits: number): Taken | undefined {
    const nowUs = this.#room.nowUs();
    if (this.#slot !== undefined) {
      const taken = this.#counters.takeAt(this.#slot, this.#hit, hits, nowUs);
      if (taken !== undefined) return taken;
    }
    this.#slot = this.#counters.slotOf(this.#hit.key);
    return this.#slot === undefined ? undefined : this.#counters.takeAt(this.#slot, this.#hit, hits, nowUs);
  }
}
