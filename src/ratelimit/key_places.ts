/** A part of a text, which is looked up without a copy. */
export interface TextPart {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const NONE = -1;
const FIRST_HASH = 0x811c9dc5;
const HASH_FACTOR = 0x01000193;

/** A hash table from texts to indexes that looks up parts of texts without allocation. */
export class KeyPlaces {
  /** By place; texts of free places are ignored. */
  readonly #keys: string[] = [];
  readonly #hashes: Int32Array;
  /** Chains of places: the first of each hash, and the next of each place. */
  readonly #heads: Int32Array;
  readonly #next: Int32Array;
  readonly #mask: number;

  constructor(capacity: number) {
    const size = 2 ** Math.ceil(Math.log2(2 * capacity));
    this.#mask = size - 1;
    this.#hashes = new Int32Array(capacity);
    this.#next = new Int32Array(capacity).fill(NONE);
    this.#heads = new Int32Array(size).fill(NONE);
  }

  find({ text, start, end }: TextPart, hash: number): number | undefined {
    const length = end - start;
    let place = this.#heads[hash & this.#mask] ?? NONE;
    while (place !== NONE) {
      const key = this.#keys[place] ?? "";
      if (this.#hashes[place] === hash && key.length === length && text.startsWith(key, start)) return place;
      place = this.#next[place] ?? NONE;
    }
    return undefined;
  }

  put(place: number, key: string, hash: number): void {
    const slot = hash & this.#mask;
    this.#keys[place] = key;
    this.#hashes[place] = hash;
    this.#next[place] = this.#heads[slot] ?? NONE;
    this.#heads[slot] = place;
  }

  free(place: number): void {
    const slot = (this.#hashes[place] ?? 0) & this.#mask;
    const next = this.#next[place] ?? NONE;
    let before = this.#heads[slot] ?? NONE;
    if (before === place) {
      this.#heads[slot] = next;
      return;
    }
    while (before !== NONE && this.#next[before] !== place) before = this.#next[before] ?? NONE;
    if (before !== NONE) this.#next[before] = next;
  }

  keyAt(place: number): string {
    return this.#keys[place] ?? "";
  }
}

/** FNV-1a. */
export function hashOfPart({ text, start, end }: TextPart): number {
  let hash = FIRST_HASH;
  for (let index = start; index < end; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), HASH_FACTOR);
  }
  // Mixes the high bits into the low ones, which select the chain.
  return hash ^ (hash >>> 15);
}
