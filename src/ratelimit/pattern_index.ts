import { matchesPattern, type Pattern } from "./pattern.ts";

/** Up to this many patterns are tried one by one, which is faster than any look-up. */
const FEW = 8;

interface Candidate<T> {
  readonly pattern: Pattern;
  readonly target: T;
  /** Place in the order of declaration; the lowest that matches wins. */
  readonly order: number;
}

/** Finds candidates by a part of the value; `best` is the candidate to beat. */
type Find<T> = (value: string, best: Candidate<T> | undefined) => Candidate<T> | undefined;

/**
 * Finds the first declared pattern that matches, however many there are: by what stands before the
 * first star, and among those by what stands behind the last one.
 */
export class PatternIndex<T> {
  readonly #find: Find<T>;

  constructor(patterns: readonly { readonly pattern: Pattern; readonly target: T }[]) {
    const candidates = patterns.map(({ pattern, target }, order) => ({ pattern, target, order }));
    this.#find = byPrefix(candidates);
  }

  /** The target of the first pattern that matches; absent when none does. */
  find(value: string): T | undefined {
    return this.#find(value, undefined)?.target;
  }
}

/** One step of the way through the prefixes: some text, what ends with it, and the ways on. */
interface Step<T> {
  readonly text: string;
  readonly find: Find<T> | undefined;
  /** By the code of their first character. */
  readonly next: ReadonlyMap<number, Step<T>>;
}

/** Goes along the value as far as prefixes go, and no further: what matches nothing ends soon. */
function byPrefix<T>(candidates: readonly Candidate<T>[]): Find<T> {
  if (candidates.length <= FEW) return oneByOne(candidates);
  const groups = Map.groupBy(candidates, ({ pattern }) => pattern.prefix);
  const root = stepOf("", [...groups].map(([text, group]) => ({ text, find: bySuffix(group) })));
  return (value, best) => {
    let found = root.find === undefined ? best : root.find(value, best);
    let at = 0;
    for (let step = root.next.get(value.charCodeAt(0)); step !== undefined;) {
      if (!value.startsWith(step.text, at)) break;
      at += step.text.length;
      if (step.find !== undefined) found = step.find(value, found);
      step = step.next.get(value.charCodeAt(at));
    }
    return found;
  };
}

/** The step with this text, and behind it what the rests of the prefixes ask for. */
function stepOf<T>(
  text: string,
  rests: readonly { readonly text: string; readonly find: Find<T> }[],
): Step<T> {
  const next = new Map<number, Step<T>>();
  const further = rests.filter((rest) => rest.text !== "");
  for (const [code, alike] of Map.groupBy(further, (rest) => rest.text.charCodeAt(0))) {
    const shared = sharedStart(alike.map((rest) => rest.text));
    const behind = alike.map((rest) => ({ text: rest.text.slice(shared.length), find: rest.find }));
    next.set(code, stepOf(shared, behind));
  }
  return { text, find: rests.find((rest) => rest.text === "")?.find, next };
}

function sharedStart(texts: readonly string[]): string {
  let shared = texts[0] ?? "";
  for (const text of texts) {
    while (!text.startsWith(shared)) shared = shared.slice(0, -1);
  }
  return shared;
}

function bySuffix<T>(candidates: readonly Candidate<T>[]): Find<T> {
  if (candidates.length <= FEW) return oneByOne(candidates);
  // One look-up for each length that a suffix has, the shortest first.
  const lengths = Map.groupBy(candidates, ({ pattern }) => pattern.suffix.length);
  const shelves = [...lengths].sort(([a], [b]) => a - b).map(([length, alike]) => ({
    length,
    groups: Map.groupBy(alike, ({ pattern }) => pattern.suffix),
  }));
  return (value, best) => {
    let found = best;
    for (const { length, groups } of shelves) {
      if (length > value.length) break;
      const group = groups.get(value.slice(value.length - length));
      if (group !== undefined) found = firstMatch(group, value, found);
    }
    return found;
  };
}

function oneByOne<T>(candidates: readonly Candidate<T>[]): Find<T> {
  return (value, best) => firstMatch(candidates, value, best);
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
