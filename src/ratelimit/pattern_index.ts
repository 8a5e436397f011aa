import { matchesPattern, type Pattern } from "./pattern.ts";

/** Up to this many patterns are tried one by one, which is faster than any look-up. */
const FEW = 8;

interface Candidate<T> {
  readonly pattern: Pattern;
  readonly target: T;
  /** Place in the order of declaration; the lowest that matches wins. */
  readonly order: number;
}

/**
 * Finds the first declared pattern that matches, however many there are: by what stands before the
 * first star, and among those by what stands behind the last one.
 */
export class PatternIndex<T> {
  readonly #root: Step<T> = stepOf("");
  #size = 0;

  constructor(patterns: Iterable<{ readonly pattern: Pattern; readonly target: T }> = []) {
    for (const { pattern, target } of patterns) this.add(pattern, target);
  }

  /** Adds a pattern that is declared behind all others. */
  add(pattern: Pattern, target: T): void {
    const candidate = { pattern, target, order: this.#size++ };
    const { few } = this.#root;
    // While there are few, all of them stand at the root, whatever their prefix.
    if (this.#size <= FEW) {
      few.push(candidate);
      return;
    }
    if (this.#size === FEW + 1) {
      for (const one of few.splice(0)) insert(this.#root, one);
    }
    insert(this.#root, candidate);
  }

  /** The target of the first pattern that matches; absent when none does. */
  find(value: string): T | undefined {
    let found = firstMatchAt(this.#root, value, undefined);
    let at = 0;
    // Goes along the value as far as prefixes go, and no further: what matches nothing ends soon.
    for (let step = this.#root.next?.get(value.charCodeAt(0)); step !== undefined;) {
      if (!value.startsWith(step.text, at)) break;
      at += step.text.length;
      found = firstMatchAt(step, value, found);
      step = step.next?.get(value.charCodeAt(at));
    }
    return found?.target;
  }
}

/** One step of the way through the prefixes: some text, the patterns whose prefix ends with it, and the ways on. */
interface Step<T> {
  text: string;
  /** In their order; empty where they are on `shelves`. */
  few: Candidate<T>[];
  /** By the length of the suffix, the shortest first: one look-up for each length. */
  shelves: { readonly length: number; readonly groups: Map<string, Candidate<T>[]> }[] | undefined;
  /** By the code of their first character. */
  next: Map<number, Step<T>> | undefined;
}

function stepOf<T>(text: string): Step<T> {
  return { text, few: [], shelves: undefined, next: undefined };
}

/** Puts the candidate where the way along its prefix ends; ways that part in the middle of a step are split there. */
function insert<T>(root: Step<T>, candidate: Candidate<T>): void {
  const { prefix } = candidate.pattern;
  let step = root;
  let at = 0;
  while (at < prefix.length) {
    const ways = step.next ??= new Map();
    const code = prefix.charCodeAt(at);
    let way = ways.get(code);
    if (way === undefined) ways.set(code, way = stepOf(prefix.slice(at)));
    const shared = sharedLength(way.text, prefix, at);
    if (shared < way.text.length) ways.set(code, way = splitAt(way, shared));
    at += shared;
    step = way;
  }
  place(step, candidate);
}

function splitAt<T>(step: Step<T>, length: number): Step<T> {
  const first = stepOf<T>(step.text.slice(0, length));
  step.text = step.text.slice(length);
  first.next = new Map([[step.text.charCodeAt(0), step]]);
  return first;
}

function sharedLength(text: string, prefix: string, at: number): number {
  const most = Math.min(text.length, prefix.length - at);
  let length = 0;
  while (length < most && text.charCodeAt(length) === prefix.charCodeAt(at + length)) length++;
  return length;
}

function place<T>(step: Step<T>, candidate: Candidate<T>): void {
  if (step.shelves === undefined) {
    step.few.push(candidate);
    if (step.few.length <= FEW) return;
    step.shelves = [];
    for (const one of step.few.splice(0)) shelve(step.shelves, one);
  } else {
    shelve(step.shelves, candidate);
  }
}

function shelve<T>(shelves: NonNullable<Step<T>["shelves"]>, candidate: Candidate<T>): void {
  const { suffix } = candidate.pattern;
  let at = shelves.findIndex(({ length }) => length >= suffix.length);
  if (at < 0) at = shelves.length;
  if (shelves[at]?.length !== suffix.length) {
    shelves.splice(at, 0, { length: suffix.length, groups: new Map() });
  }
  const groups = shelves[at]?.groups;
  const group = groups?.get(suffix);
  if (group === undefined) groups?.set(suffix, [candidate]);
  else group.push(candidate);
}

function firstMatchAt<T>(
  { few, shelves }: Step<T>,
  value: string,
  best: Candidate<T> | undefined,
): Candidate<T> | undefined {
  let found = few.length === 0 ? best : firstMatch(few, value, best);
  if (shelves === undefined) return found;
  for (const { length, groups } of shelves) {
    if (length > value.length) break;
    const group = groups.get(value.slice(value.length - length));
    if (group !== undefined) found = firstMatch(group, value, found);
  }
  return found;
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
