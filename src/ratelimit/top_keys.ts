import { hashOfPart, KeyPlaces, type TextPart } from "./key_places.ts";

/** How the keys are kept. */
export interface TopKeysOptions {
  /** How many keys are kept at most. */
  readonly capacity: number;
  /** Keys of this length and longer ones are cut, and shown with `…` at their end. */
  readonly maxKeyLength: number;
  /** After so many seconds every count is halved. */
  readonly halvingSeconds: number;
}

/** What is counted for a key. */
export interface KeyHits extends TextPart {
  /** More than 0. */
  readonly hits: number;
  readonly nowSeconds: number;
}

/** A key and about how often it came. */
export interface TopKey {
  readonly key: string;
  /** Never less than what came, but for halves that were dropped. */
  readonly count: number;
  /** How much too high the count may be. */
  readonly errorAtMost: number;
}

const CUT = "…";
/** What is less is nothing: its key makes room. */
const LEAST = 0.5;

/**
 * The keys that came most often of late, out of any number of them, in bounded room: a key that is new takes
 * the place of one with the lowest count, and takes over that count as its possible error. Counts are exact
 * until there are more keys than places. A key that had more than the share of one place is always there.
 */
export class TopKeys {
  readonly #options: TopKeysOptions;
  readonly #counts: Float64Array;
  readonly #errors: Float64Array;
  #places: KeyPlaces;
  /** Places by the whole text that last had them, and the texts by place: what comes again is found at once. */
  readonly #recent = new Map<string, number>();
  readonly #texts: string[] = [];
  /** How many places have a key. */
  #size = 0;
  /** No count is lower; those before the hand are higher. */
  #lowest = 0;
  #hand = 0;
  #period: number | undefined;

  constructor(options: TopKeysOptions) {
    this.#options = options;
    this.#counts = new Float64Array(options.capacity);
    this.#errors = new Float64Array(options.capacity);
    this.#places = new KeyPlaces(options.capacity);
  }

  /** Counts hits of the key that stands in this part of a text; one text has its key always in the same part. */
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

  /** A text takes the place of the one before it: there are no more of them than places. */
  #remember(text: string, place: number): void {
    const before = this.#texts[place];
    if (before !== undefined) this.#recent.delete(before);
    const isLong = text.length > 2 * this.#options.maxKeyLength;
    this.#texts[place] = isLong ? "" : text;
    if (!isLong) this.#recent.set(text, place);
  }

  /** The keys with the highest counts, those first. */
  top(limit: number, nowSeconds: number): TopKey[] {
    this.#halve(nowSeconds);
    return this.#all().sort((a, b) => b.count - a.count || (a.key < b.key ? -1 : 1)).slice(0, limit)
      .map(({ key, ...counted }) => ({ key: this.#shown(key), ...counted }));
  }

  /** The hand goes round the places, and meets each that has the lowest count before it counts anew. */
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
    return key.length < maxKeyLength ? key : key.slice(0, maxKeyLength - CUT.length) + CUT;
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
    // A clock that was set back halves once.
    const factor = this.#period === undefined ? 1 : 2 ** -Math.max(1, period - this.#period);
    this.#period = period;
    if (factor === 1) return;
    const all = this.#all().filter(({ count }) => count * factor >= LEAST);
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

/** A part of a text keeps the whole of it in memory. */
function copied(text: string): string {
  const copy: string = JSON.parse(JSON.stringify(text));
  return copy;
}
