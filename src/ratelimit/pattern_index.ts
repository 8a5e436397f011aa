import { matchesPattern, type Pattern } from "./pattern.ts";

/** Up to this many patterns are tried one by one, which is faster than any look-up. */
const FEW = 8;

interface Candidate<T> {
  readonly pattern: Pattern;
  readonly target: T;
  /** Place in the order of declaration; the lowest that matches wins. */
  readonly order: number;
}

/** Candidates by the text that a value must begin, or end, with. */
interface Shelf<T> {
  readonly length: number;
  readonly byText: Map<string, Candidate<T>[]>;
}

/**
 * Finds the first declared pattern that matches, however many there are: by what stands before the
 * first star, or behind the last one. Patterns that have neither are tried one by one.
 */
export class PatternIndex<T> {
  readonly #few: readonly Candidate<T>[];
  readonly #prefixes: readonly Shelf<T>[];
  readonly #suffixes: readonly Shelf<T>[];

  constructor(patterns: readonly { readonly pattern: Pattern; readonly target: T }[]) {
    const candidates = patterns.map(({ pattern, target }, order) => ({ pattern, target, order }));
    const isFew = candidates.length <= FEW;
    const begins = isFew ? [] : candidates.filter(({ pattern }) => pattern.prefix !== "");
    const ends = isFew
      ? []
      : candidates.filter(({ pattern }) => pattern.prefix === "" && pattern.suffix !== "");
    this.#prefixes = shelves(begins, ({ pattern }) => pattern.prefix);
    this.#suffixes = shelves(ends, ({ pattern }) => pattern.suffix);
    this.#few = isFew
      ? candidates
      : candidates.filter(({ pattern }) => pattern.prefix === "" && pattern.suffix === "");
  }

  /** The target of the first pattern that matches; absent when none does. */
  find(value: string): T | undefined {
    let best = firstMatch(this.#few, value, undefined);
    for (const { length, byText } of this.#prefixes) {
      if (length > value.length) break;
      const candidates = byText.get(value.slice(0, length));
      if (candidates !== undefined) best = firstMatch(candidates, value, best);
    }
    for (const { length, byText } of this.#suffixes) {
      if (length > value.length) break;
      const candidates = byText.get(value.slice(value.length - length));
      if (candidates !== undefined) best = firstMatch(candidates, value, best);
    }
    return best?.target;
  }
}

/** The first candidate that matches and was declared before `best`; otherwise `best`. */
function firstMatch<T>(
  candidates: readonly Candidate<T>[],
  value: string,
  best: Candidate<T> | undefined,
): Candidate<T> | undefined {
  for (const candidate of candidates) {
    if (best !== undefined && candidate.order > best.order) return best;
    if (matchesPattern(candidate.pattern, value)) return candidate;
  }
  return best;
}

/** One shelf for each length of text, the shortest first. */
function shelves<T>(
  candidates: readonly Candidate<T>[],
  textOf: (candidate: Candidate<T>) => string,
): Shelf<T>[] {
  const byLength = new Map<number, Map<string, Candidate<T>[]>>();
  for (const candidate of candidates) {
    const text = textOf(candidate);
    let byText = byLength.get(text.length);
    if (byText === undefined) byLength.set(text.length, byText = new Map());
    const known = byText.get(text);
    if (known === undefined) byText.set(text, [candidate]);
    else known.push(candidate);
  }
  return [...byLength].sort(([a], [b]) => a - b).map(([length, byText]) => ({ length, byText }));
}
