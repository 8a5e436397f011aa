/** A text with `*`, split for fast matching. */
export interface Pattern {
  readonly text: string;
  readonly prefix: string;
  readonly suffix: string;
  readonly middle: readonly string[];
  readonly minLength: number;
}

/** Up to this many patterns, a linear search is faster than an index. */
const MAX_LINEAR = 8;

interface Candidate<T> {
  readonly pattern: Pattern;
  readonly target: T;
  /** The order of declaration; the lowest match wins. */
  readonly order: number;
}

/** Finds the first declared pattern that matches: a radix tree of prefixes, with an index of suffixes per node. */
export class PatternIndex<T> {
  readonly #root: PrefixNode<T> = nodeOf("");
  #size = 0;

  add(pattern: Pattern, target: T): void {
    const candidate = { pattern, target, order: this.#size++ };
    const { linear } = this.#root;
    // At first all patterns are at the root, whatever their prefix.
    if (this.#size <= MAX_LINEAR) {
      linear.push(candidate);
      return;
    }
    if (this.#size === MAX_LINEAR + 1) {
      for (const one of linear.splice(0)) insert(this.#root, one);
    }
    insert(this.#root, candidate);
  }

  find(value: string): T | undefined {
    let found = firstMatchAt(this.#root, value, undefined);
    let at = 0;
    for (let node = this.#root.next?.get(value.charCodeAt(0)); node !== undefined;) {
      if (!value.startsWith(node.text, at)) break;
      at += node.text.length;
      found = firstMatchAt(node, value, found);
      node = node.next?.get(value.charCodeAt(at));
    }
    return found?.target;
  }
}

interface PrefixNode<T> {
  text: string;
  /** In order of declaration; empty if there are `bySuffix`. */
  linear: Candidate<T>[];
  /** By length of the suffix, shortest first. */
  bySuffix: { readonly length: number; readonly groups: Map<string, Candidate<T>[]> }[] | undefined;
  /** By the code of the first character. */
  next: Map<number, PrefixNode<T>> | undefined;
}

function nodeOf<T>(text: string): PrefixNode<T> {
  return { text, linear: [], bySuffix: undefined, next: undefined };
}

/** Adds a candidate at the node of its prefix; splits nodes as required. */
function insert<T>(root: PrefixNode<T>, candidate: Candidate<T>): void {
  const { prefix } = candidate.pattern;
  let node = root;
  let at = 0;
  while (at < prefix.length) {
    const children = node.next ??= new Map();
    const code = prefix.charCodeAt(at);
    let child = children.get(code);
    if (child === undefined) children.set(code, child = nodeOf(prefix.slice(at)));
    const shared = sharedLength(child.text, prefix, at);
    if (shared < child.text.length) children.set(code, child = splitAt(child, shared));
    at += shared;
    node = child;
  }
  place(node, candidate);
}

function splitAt<T>(node: PrefixNode<T>, length: number): PrefixNode<T> {
  const first = nodeOf<T>(node.text.slice(0, length));
  node.text = node.text.slice(length);
  first.next = new Map([[node.text.charCodeAt(0), node]]);
  return first;
}

function sharedLength(text: string, prefix: string, at: number): number {
  const most = Math.min(text.length, prefix.length - at);
  let length = 0;
  while (length < most && text.charCodeAt(length) === prefix.charCodeAt(at + length)) length++;
  return length;
}

function place<T>(node: PrefixNode<T>, candidate: Candidate<T>): void {
  if (node.bySuffix === undefined) {
    node.linear.push(candidate);
    if (node.linear.length <= MAX_LINEAR) return;
    node.bySuffix = [];
    for (const one of node.linear.splice(0)) addBySuffix(node.bySuffix, one);
  } else {
    addBySuffix(node.bySuffix, candidate);
  }
}

function addBySuffix<T>(bySuffix: NonNullable<PrefixNode<T>["bySuffix"]>, candidate: Candidate<T>): void {
  const { suffix } = candidate.pattern;
  let at = bySuffix.findIndex(({ length }) => length >= suffix.length);
  if (at < 0) at = bySuffix.length;
  if (bySuffix[at]?.length !== suffix.length) {
    bySuffix.splice(at, 0, { length: suffix.length, groups: new Map() });
  }
  const groups = bySuffix[at]?.groups;
  const group = groups?.get(suffix);
  if (group === undefined) groups?.set(suffix, [candidate]);
  else group.push(candidate);
}

function firstMatchAt<T>(
  { linear, bySuffix }: PrefixNode<T>,
  value: string,
  best: Candidate<T> | undefined,
): Candidate<T> | undefined {
  let found = linear.length === 0 ? best : firstMatch(linear, value, best);
  if (bySuffix === undefined) return found;
  for (const { length, groups } of bySuffix) {
    if (length > value.length) break;
    const group = groups.get(value.slice(value.length - length));
    if (group !== undefined) found = firstMatch(group, value, found);
  }
  return found;
}

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

/** Splits a text with at least one `*`, each of which matches any characters or none. */
export function compilePattern(text: string): Pattern {
  const parts = text.split("*");
  const prefix = parts[0] ?? "";
  const suffix = parts.at(-1) ?? "";
  const middle = parts.slice(1, -1).filter((part) => part !== "");
  const minLength = parts.reduce((sum, part) => sum + part.length, 0);
  return { text, prefix, suffix, middle, minLength };
}

/** True if the whole value matches. */
export function matchesPattern(pattern: Pattern, value: string): boolean {
  if (value.length < pattern.minLength) return false;
  if (!value.startsWith(pattern.prefix) || !value.endsWith(pattern.suffix)) return false;
  let from = pattern.prefix.length;
  const end = value.length - pattern.suffix.length;
  for (const part of pattern.middle) {
    const found = value.indexOf(part, from);
    if (found < 0 || found + part.length > end) return false;
    from = found + part.length;
  }
  return true;
}
