/** Requests up to this length are recognized, in bytes. */
const MAX_BYTES = 512;
const PLACES = 32_768;
/** Places of one hash, in each table. */
const WAYS = 4;
const SEEN_HASHES = 65_536;
/** Lookups after which the share of those that were used is judged. */
const TRIAL = 32_768;
/** Lookups that are left out when that share is too low. */
const REST = 262_144;
const LOWEST_SHARE = 0.25;
const NOWHERE = -1;
/** To put a request costs about as much as this many uses save. */
const USES = 4;
const MAX_LEFT_OUT = 255;

/**
 * A bounded table of what is known of requests, by their bytes. A request is admitted when it is seen a second time; its
 * hash depends on a seed, and all bytes are compared. Lookups pause while few of them are used. A request that was put in
 * vain, because its window was over before it was used often, is put again after ever more calls.
 */
export class KnownTable<T> {
  readonly #seed: number;
  readonly #bytes = new Uint8Array(PLACES * MAX_BYTES);
  /** By place; 0 if it is free. */
  readonly #lengths = new Int32Array(PLACES);
  readonly #hashes = new Int32Array(PLACES);
  readonly #requests = new Array<T | undefined>(PLACES).fill(undefined);
  /** By place: uses without which a request was put in vain. */
  readonly #usesMissing = new Uint8Array(PLACES);
  /** By place: calls that are left out before the request is put again, and how many of them remain. */
  readonly #leftOut = new Uint8Array(PLACES);
  readonly #leftOutRest = new Uint8Array(PLACES);
  /** Hashes of requests that were seen lately. */
  readonly #seen = new Int32Array(SEEN_HASHES);
  /** Of the last lookup. */
  #hash = 0;
  #place = NOWHERE;
  #isPaused = false;
  #lookups = 0;
  #used = 0;
  #nextWay = 0;

  /** `random` returns a number from 0 to below 1. */
  constructor(random: () => number) {
    this.#seed = Math.floor(random() * 2 ** 32) | 0;
  }

  /** The request between two positions, whose window may be over. */
  find(bytes: Uint8Array, start: number, end: number): T | undefined {
    this.#place = NOWHERE;
    if (++this.#lookups > (this.#isPaused ? REST : TRIAL)) this.#judge();
    const length = end - start;
    if (this.#isPaused || length > MAX_BYTES || length === 0) {
      this.#hash = 0;
      return undefined;
    }
    const hash = this.#hash = this.#hashOf(bytes, start, end);
    const first = hash & (PLACES - WAYS);
    for (let place = first; place < first + WAYS; place++) {
      if (this.#hashes[place] !== hash || this.#lengths[place] !== length) continue;
      if (!this.#holds(place, bytes, start, length)) continue;
      this.#place = place;
      return this.#requests[place];
    }
    return undefined;
  }

  /** True if the request of the last lookup is to be put into the table. */
  get isAdmitted(): boolean {
    if (this.#place !== NOWHERE) return this.#isPutAgain(this.#place);
    const hash = this.#hash;
    if (hash === 0) return false;
    const seen = this.#seen;
    const first = (hash >>> 2) & (SEEN_HASHES - WAYS);
    for (let index = first; index < first + WAYS; index++) {
      if (seen[index] === hash) return true;
    }
    seen.copyWithin(first + 1, first, first + WAYS - 1);
    seen[first] = hash;
    return false;
  }

  /** Counts a use of what the last lookup found. */
  use(): void {
    this.#used++;
    const place = this.#place;
    const missing = this.#usesMissing[place] ?? 0;
    if (missing === 0) return;
    this.#usesMissing[place] = missing - 1;
    if (missing === 1) this.#leftOut[place] = this.#leftOutRest[place] = 0;
  }

  /** Puts the request of the last lookup into the table. */
  put(bytes: Uint8Array, request: T): void {
    const isNew = this.#place === NOWHERE;
    const place = isNew ? this.#takePlace() : this.#place;
    const leftOut = isNew ? 0 : this.#leftOut[place] ?? 0;
    this.#leftOut[place] = this.#leftOutRest[place] = Math.min(2 * leftOut + 1, MAX_LEFT_OUT);
    this.#usesMissing[place] = USES;
    this.#bytes.set(bytes, place * MAX_BYTES);
    this.#lengths[place] = bytes.length;
    this.#hashes[place] = this.#hash;
    this.#requests[place] = request;
  }

  /** Drops what is known of all requests, which stay admitted. */
  drop(): void {
    this.#requests.fill(undefined);
  }

  #isPutAgain(place: number): boolean {
    const calls = this.#leftOutRest[place] ?? 0;
    if (calls > 0) this.#leftOutRest[place] = calls - 1;
    return calls === 0;
  }

  #judge(): void {
    this.#isPaused = !this.#isPaused && this.#used < this.#lookups * LOWEST_SHARE;
    this.#lookups = 0;
    this.#used = 0;
  }

  #takePlace(): number {
    const first = this.#hash & (PLACES - WAYS);
    for (let place = first; place < first + WAYS; place++) {
      if (this.#lengths[place] === 0) return place;
    }
    this.#nextWay = (this.#nextWay + 1) % WAYS;
    return first + this.#nextWay;
  }

  #holds(place: number, bytes: Uint8Array, start: number, length: number): boolean {
    const offset = place * MAX_BYTES;
    let index = 0;
    while (index < length && this.#bytes[offset + index] === bytes[start + index]) index++;
    return index === length;
  }

  /** Never 0. */
  #hashOf(bytes: Uint8Array, start: number, end: number): number {
    let hash = this.#seed;
    let at = start;
    for (; at + 4 <= end; at += 4) {
      const word = (bytes[at] ?? 0) | (bytes[at + 1] ?? 0) << 8 | (bytes[at + 2] ?? 0) << 16 |
        (bytes[at + 3] ?? 0) << 24;
      hash = Math.imul(hash ^ word, 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    for (; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
    // Places are taken from low bits, which have to depend on every byte.
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    return (hash ^ (hash >>> 13)) || 1;
  }
}
