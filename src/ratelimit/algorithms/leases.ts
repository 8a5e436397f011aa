import { HELD_US, type Taken } from "./taken.ts";

/** At most `limit` places, each of which its holder has for the same time unless it is given back. */
export interface LeaseLimit {
  readonly kind: "leases";
  readonly limit: number;
  /** In microseconds. */
  readonly leaseUs: number;
}

/** The most places of one holder, whose name an end client may choose: the cost of a take grows with them. */
export const MAX_PLACES_OF_HOLDER = 100;
/** Places to look through for the announced wait while a lower limit is exceeded: it may be too short then. */
const MAX_LOOKED = 1_000;

/** One place, in the order in which they were taken, which is that in which they end. */
interface Place {
  readonly holder: string;
  untilUs: number;
  before: Place | undefined;
  after: Place | undefined;
  /** The places of the same holder that were taken before and after it. */
  older: Place | undefined;
  newer: Place | undefined;
}

/** The places of one counter with their holders. */
export class Leases {
  /** The newest place of each holder. */
  readonly #newest = new Map<string, Place>();
  #first: Place | undefined;
  #last: Place | undefined;
  #size = 0;
  #length = 0;

  /** Places that are held, with those whose lease is over and that were not removed yet. */
  get size(): number {
    return this.#size;
  }

  /** Characters of the holders of all places. */
  get length(): number {
    return this.#length;
  }

  /**
   * Takes places for a holder: all of them or none. 0 asks whether it would get one, and a negative number gives back its
   * newest places, as far as it has any. The time is in microseconds since the epoch.
   */
  take(limit: LeaseLimit, timeUs: number, holder: string, hits: number): Taken {
    const nowUs = this.#moveTo(limit, timeUs);
    const held = this.#heldBy(holder);
    let granted = true;
    let after = held;
    if (hits < 0) after = this.#giveBack(holder, held, -hits);
    else {
      granted = Math.max(1, hits) <= Math.min(limit.limit - this.#size, MAX_PLACES_OF_HOLDER - held);
      if (granted) {
        for (let place = 0; place < hits; place++) this.#add(holder, nowUs + limit.leaseUs);
        after += hits;
      }
    }
    const available = Math.max(0, Math.min(limit.limit - this.#size, MAX_PLACES_OF_HOLDER - after));
    return {
      granted,
      used: this.#size,
      available,
      retryMs: available > 0 ? 0 : msUntil(this.#freesAt(limit, nowUs, holder, after), nowUs),
      freeMs: this.#last === undefined ? 0 : msUntil(this.#last.untilUs, nowUs),
    };
  }

  /** Milliseconds until all is free. Removes the places whose lease is over. */
  freeMs(limit: LeaseLimit, timeUs: number): number {
    const nowUs = this.#moveTo(limit, timeUs);
    return this.#last === undefined ? 0 : msUntil(this.#last.untilUs, nowUs);
  }

  /** True if a place was taken after this time: the clock was set back. */
  isInFuture({ leaseUs }: LeaseLimit, nowUs: number): boolean {
    return this.#last !== undefined && this.#last.untilUs - leaseUs > nowUs;
  }

  /** Removes the places whose lease is over, and returns the time that counts: a clock may have been set back. */
  #moveTo({ leaseUs }: LeaseLimit, timeUs: number): number {
    const aheadUs = this.#last === undefined ? 0 : this.#last.untilUs - leaseUs - timeUs;
    const nowUs = aheadUs > 0 && aheadUs <= HELD_US ? timeUs + aheadUs : timeUs;
    // Time stands still for up to a second; otherwise the places count as new.
    for (
      let place = this.#last;
      place !== undefined && place.untilUs > nowUs + leaseUs;
      place = place.before
    ) {
      place.untilUs = nowUs + leaseUs;
    }
    while (this.#first !== undefined && this.#first.untilUs <= nowUs) this.#remove(this.#first);
    return nowUs;
  }

  #heldBy(holder: string): number {
    let held = 0;
    for (let place = this.#newest.get(holder); place !== undefined; place = place.older) held++;
    return held;
  }

  #add(holder: string, untilUs: number): void {
    const older = this.#newest.get(holder);
    const place: Place = { holder, untilUs, before: this.#last, after: undefined, older, newer: undefined };
    if (older !== undefined) older.newer = place;
    if (this.#last === undefined) this.#first = place;
    else this.#last.after = place;
    this.#last = place;
    this.#newest.set(holder, place);
    this.#size++;
    this.#length += holder.length;
  }

  #remove({ holder, before, after, older, newer }: Place): void {
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    if (older !== undefined) older.newer = newer;
    if (newer !== undefined) newer.older = older;
    else if (older !== undefined) this.#newest.set(holder, older);
    else this.#newest.delete(holder);
    this.#size--;
    this.#length -= holder.length;
  }

  /** Gives back the newest places of a holder, and returns how many it has then. */
  #giveBack(holder: string, held: number, hits: number): number {
    let left = Math.min(hits, held);
    for (; left > 0; left--) {
      const newest = this.#newest.get(holder);
      if (newest !== undefined) this.#remove(newest);
    }
    return Math.max(0, held - hits);
  }

  /** When a holder would get one place, if none is given back. */
  #freesAt({ limit, leaseUs }: LeaseLimit, nowUs: number, holder: string, held: number): number {
    // No hit ever passes: any wait would do.
    if (limit === 0) return nowUs + leaseUs;
    let freesAt = nowUs;
    if (held >= MAX_PLACES_OF_HOLDER) {
      let oldest = this.#newest.get(holder);
      while (oldest?.older !== undefined) oldest = oldest.older;
      freesAt = oldest?.untilUs ?? nowUs;
    }
    if (this.#size < limit) return freesAt;
    let place = this.#first;
    for (let passed = Math.min(this.#size - limit, MAX_LOOKED); passed > 0; passed--) place = place?.after;
    return Math.max(freesAt, place?.untilUs ?? nowUs);
  }
}

function msUntil(untilUs: number, nowUs: number): number {
  return Math.ceil((untilUs - nowUs) / 1_000);
}
