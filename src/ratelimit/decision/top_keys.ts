/** A part of a text, which is looked up without a copy. */
interface TextPart {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** Options of the top keys. */
export interface TopKeysOptions {
  readonly capacity: number;
  /** Longer keys are truncated, with `…` at the end. */
  readonly maxKeyLength: number;
  readonly halvingSeconds: number;
}

/** Hits of a key. */
interface KeyHits extends TextPart {
  readonly hits: number;
  readonly nowSeconds: number;
}

/** A key and its estimated count. */
interface TopKey {
  readonly key: string;
  readonly count: number;
  /** The maximum error of the count. */
  readonly errorAtMost: number;
}

const NONE = -1;
const FIRST_HASH = 0x811c9dc5;
const HASH_FACTOR = 0x01000193;
const ELLIPSIS = "…";
/** Keys with a lower count after halving are removed. */
const MIN_COUNT = 0.5;

/**
 * The most frequent keys in bounded memory (space-saving algorithm): a new key replaces one with the lowest count and
 * takes over that count as its error. Counts are exact while all keys have a place.
 */
export class TopKeys {
  readonly #options: TopKeysOptions;
  readonly #counts: Float64Array;
  readonly #errors: Float64Array;
  #places: KeyPlaces;
  /** A cache from the last text of each place to the place. */
  readonly #recent = new Map<string, number>();
  readonly #texts: string[] = [];
  #size = 0;
  /** A lower bound of all counts; those before the hand are higher. */
  #lowest = 0;
  #hand = 0;
  #period: number | undefined;

  constructor(options: TopKeysOptions) {
    this.#options = options;
    this.#counts = new Float64Array(options.capacity);
    this.#errors = new Float64Array(options.capacity);
    this.#places = new KeyPlaces(options.capacity);
  }

  /** Counts hits of a part of a text; the same text must always have the same part. */
  add({ text, start, end, hits, nowSeconds }: KeyHits): void {
    this.#halve(nowSeconds);
    const recent = this.#recent.get(text);
    if (recent !== undefined) {
      this.#counts[recent] = (this.#counts[recent] ?? 0) + hits;
      return;
    }
    const { maxKeyLength, capacity } = this.#options;
    const isCut = end - start >= maxKeyLength;
    const part = { text, start, end: isCut ? start + maxKeyLength : end };
    const hash = hashOfPart(part);
    const known = this.#places.find(part, hash);
    if (known !== undefined) {
      this.#counts[known] = (this.#counts[known] ?? 0) + hits;
      return this.#remember(text, known);
    }
    const isFull = this.#size === capacity;
    const place = isFull ? this.#takeLowest() : this.#size++;
    const errorAtMost = isFull ? this.#counts[place] ?? 0 : 0;
    this.#counts[place] = errorAtMost + hits;
    this.#errors[place] = errorAtMost;
    const key = text.slice(start, part.end);
    this.#places.put(place, isCut ? copied(key) : key, hash);
    this.#remember(text, place);
  }

  #remember(text: string, place: number): void {
    const before = this.#texts[place];
    if (before !== undefined) this.#recent.delete(before);
    const isLong = text.length > 2 * this.#options.maxKeyLength;
    this.#texts[place] = isLong ? "" : text;
    if (!isLong) this.#recent.set(text, place);
  }

  top(limit: number, nowSeconds: number): TopKey[] {
    this.#halve(nowSeconds);
    return this.#all().sort((a, b) => b.count - a.count || (a.key < b.key ? -1 : 1)).slice(0, limit)
      .map(({ key, ...counted }) => ({ key: this.#shown(key), ...counted }));
  }

  /** Frees the next place with the lowest count, like a clock hand. */
  #takeLowest(): number {
    const counts = this.#counts;
    while (this.#hand < counts.length && (counts[this.#hand] ?? 0) > this.#lowest) this.#hand++;
    if (this.#hand === counts.length) {
      this.#lowest = counts.reduce((lowest, count) => Math.min(lowest, count));
      this.#hand = counts.indexOf(this.#lowest);
    }
    this.#places.free(this.#hand);
    return this.#hand++;
  }

  #shown(key: string): string {
    const { maxKeyLength } = this.#options;
    return key.length < maxKeyLength ? key : key.slice(0, maxKeyLength - ELLIPSIS.length) + ELLIPSIS;
  }

  #all(): TopKey[] {
    return Array.from({ length: this.#size }, (_, place) => ({
      key: this.#places.keyAt(place),
      count: this.#counts[place] ?? 0,
      errorAtMost: this.#errors[place] ?? 0,
    }));
  }

  #halve(nowSeconds: number): void {
    const period = Math.floor(nowSeconds / this.#options.halvingSeconds);
    if (period === this.#period) return;
    // A clock that is set back halves once.
    const factor = this.#period === undefined ? 1 : 2 ** -Math.max(1, period - this.#period);
    this.#period = period;
    if (factor === 1) return;
    const all = this.#all().filter(({ count }) => count * factor >= MIN_COUNT);
    this.#places = new KeyPlaces(this.#options.capacity);
    this.#recent.clear();
    this.#texts.length = 0;
    this.#size = all.length;
    this.#lowest = 0;
    this.#hand = 0;
    for (const [place, { key, count, errorAtMost }] of all.entries()) {
      this.#counts[place] = count * factor;
      this.#errors[place] = errorAtMost * factor;
      this.#places.put(place, key, hashOfPart({ text: key, start: 0, end: key.length }));
    }
  }
}

/** A substring would keep the whole text in memory. */
function copied(text: string): string {
  const copy: string = JSON.parse(JSON.stringify(text));
  return copy;
}

/** A hash table from texts to indexes that looks up parts of texts without allocation. */
class KeyPlaces {
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
function hashOfPart({ text, start, end }: TextPart): number {
  let hash = FIRST_HASH;
  for (let index = start; index < end; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), HASH_FACTOR);
  }
  // Mixes the high bits into the low ones, which select the chain.
  return hash ^ (hash >>> 15);
}
