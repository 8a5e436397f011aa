import { type LeaseLimit, Leases } from "../ratelimit/algorithms/leases.ts";
import type { Taken } from "../ratelimit/algorithms/taken.ts";
import type { Caller, Counter, CountReceiver, LeaseHit } from "../ratelimit/decision/counter_cache.ts";
import { type ConditionalRoom, firstFree, type HeldCounters, SAMPLED } from "./conditional_counters.ts";
import type { KeyRoom } from "./key_room.ts";

/** Room for a place, in addition to the name of its holder. */
const BYTES_PER_PLACE = 128;
/** Counters that one sweep looks at; the next one continues there. */
const SWEPT = 4_096;

interface HeldLeases {
  readonly leases: Leases;
  /** Of the last hit. */
  limit: LeaseLimit;
}

/** Counters whose places have holders, by key. Each place takes the room of a key, and a counter without any is dropped. */
export class LeaseCounters implements HeldCounters {
  readonly #room: KeyRoom;
  readonly #held = new Map<string, HeldLeases>();
  /** Continues where the last sweep or eviction stopped. */
  #next: MapIterator<string> = this.#held.keys();

  constructor(room: KeyRoom) {
    this.#room = room;
  }

  counterOf(hit: LeaseHit, room: ConditionalRoom): Counter {
    return new LeaseCounter(hit, this, room);
  }

  /** Takes hits of a holder, for which others are evicted only if they are granted. */
  take(hit: LeaseHit, hits: number, room: ConditionalRoom): Taken {
    const { key, limit, holder } = hit;
    const nowUs = room.nowUs();
    const weight = hits * (BYTES_PER_PLACE + holder.length);
    if (hits > 0 && this.#room.isFull(weight, hits) && this.#wouldPass(hit, hits, nowUs)) {
      room.makeRoom(weight, hits);
    }
    // The counter may have been evicted for it.
    const held = this.#held.get(key);
    if (held !== undefined) {
      held.limit = limit;
      return this.#change(key, held, () => held.leases.take(limit, nowUs, holder, hits));
    }
    const leases = new Leases();
    const taken = leases.take(limit, nowUs, holder, hits);
    if (leases.size === 0) return taken;
    this.#held.set(key, { leases, limit });
    this.#room.take(key.length + weightOf(leases), leases.size);
    return taken;
  }

  remove(key: string): boolean {
    const held = this.#held.get(key);
    if (held === undefined) return false;
    this.#held.delete(key);
    this.#room.free(held.leases.size, key.length + weightOf(held.leases));
    return true;
  }

  *changedAfter(nowUs: number): Generator<string> {
    for (const [key, { leases, limit }] of this.#held) if (leases.isInFuture(limit, nowUs)) yield key;
  }

  sweep(nowUs: number): void {
    for (const key of this.#nextKeys(SWEPT)) this.#freeMs(key, nowUs);
  }

  evict(nowUs: number): number | undefined {
    const chosen = firstFree(this.#nextKeys(SAMPLED), (key) => this.#freeMs(key, nowUs));
    if (chosen !== undefined) this.remove(chosen.key);
    return chosen?.freeMs;
  }

  #wouldPass({ key, limit, holder }: LeaseHit, hits: number, nowUs: number): boolean {
    const held = this.#held.get(key) ?? { leases: new Leases(), limit };
    return this.#change(key, held, () => held.leases.take(limit, nowUs, holder, 0)).available >= hits;
  }

  /** Milliseconds until a counter is all free; it is dropped if it is. */
  #freeMs(key: string, nowUs: number): number {
    const held = this.#held.get(key);
    if (held === undefined) return 0;
    return this.#change(key, held, () => held.leases.freeMs(held.limit, nowUs));
  }

  /** Changes a counter and the room that it takes; drops it without places. */
  #change<T>(key: string, { leases }: HeldLeases, change: () => T): T {
    const [size, weight] = [leases.size, weightOf(leases)];
    const result = change();
    this.#room.take(weightOf(leases) - weight, leases.size - size);
    if (leases.size === 0) this.remove(key);
    return result;
  }

  /** Up to so many keys, each at most once, from where the last call stopped. */
  #nextKeys(count: number): string[] {
    const keys: string[] = [];
    while (keys.length < Math.min(count, this.#held.size)) {
      const { done, value } = this.#next.next();
      if (done === true) this.#next = this.#held.keys();
      else keys.push(value);
    }
    return keys;
  }
}

function weightOf({ size, length }: Leases): number {
  return size * BYTES_PER_PLACE + length;
}

/** The counter of one key and holder. */
class LeaseCounter implements Counter {
  readonly #hit: LeaseHit;
  readonly #counters: LeaseCounters;
  readonly #room: ConditionalRoom;

  constructor(hit: LeaseHit, counters: LeaseCounters, room: ConditionalRoom) {
    this.#hit = hit;
    this.#counters = counters;
    this.#room = room;
  }

  take(hits: number, _caller: Caller | undefined, receiver: CountReceiver): void {
    receiver.counted(this.#counters.take(this.#hit, hits, this.#room));
  }
}
