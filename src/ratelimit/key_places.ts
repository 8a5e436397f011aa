/** A part of a text, which need not be cut out to be looked up. */
export interface TextPart {
  readonly text: string;
  readonly start: number;
  /** The first position that is not of the part. */
  readonly end: number;
}

const NONE = -1;
const FIRST_HASH = 0x811c9dc5;
const HASH_FACTOR = 0x01000193;

/** Which of a few places a text has. Unlike a map it needs no new text to find one, and makes no garbage. */
export class KeyPlaces {
  /** By place; what is left behind in a place that was taken back is found no more. */
  readonly #keys: string[] = [];
  readonly #hashes: Int32Array;
  /** The first place of each hash, and for each place the next one of the same. */
  readonly #heads: Int32Array;
  readonly #next: Int32Array;
  readonly #mask: number;

  /** `capacity` is how many places there are. */
  constructor(capacity: number) {
    const size = 2 ** Math.ceil(Math.log2(2 * capacity));
    this.#mask = size - 1;
    this.#hashes = new Int32Array(capacity);
    this.#next = new Int32Array(capacity).fill(NONE);
    this.#heads = new Int32Array(size).fill(NONE);
  }

  /** The place of a text with this hash; absent where it has none. */
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

  /** Gives a text, which has none, a place that is free. */
  put(place: number, key: string, hash: number): void {
    const slot = hash & this.#mask;
    this.#keys[place] = key;
    this.#hashes[place] = hash;
    this.#next[place] = this.#heads[slot] ?? NONE;
    this.#heads[slot] = place;
  }

  /** Takes a place back. */
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

  /** The text that has this place. */
  keyAt(place: number): string {
    return this.#keys[place] ?? "";
  }
}

/** A number that is the same for the same text. */
export function hashOfPart({ text, start, end }: TextPart): number {
  let hash = FIRST_HASH;
  for (let index = start; index < end; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), HASH_FACTOR);
  }
  // The low bits choose, and the factor alone moves nothing down to them.
  return hash ^ (hash >>> 15);
}
