import { type Re2Node, translateRe2 } from "./re2_pattern.ts";

/** Tests texts with a pattern of RE2. */
export interface Re2Matcher {
  /** True if the pattern is found anywhere in the text, in a time that grows with the length of the text alone. */
  matches(text: string): boolean;
}

/** A matcher of a pattern, or why there is none. */
type Re2MatcherReading =
  | {
    readonly matcher: Re2Matcher;
    /** The most that a character of a text costs, and the memory of the matcher. */
    readonly steps: number;
  }
  | { readonly problem: string };

/** The matcher of a pattern of at most so many steps: about one for each character, class, repetition and alternative. */
export function re2Matcher(pattern: string, maxSteps: number): Re2MatcherReading {
  const translated = translateRe2(pattern);
  if ("problem" in translated) return { problem: `${translated.problem} at character ${translated.at + 1}` };
  const program = new Program(maxSteps);
  const start = program.add(translated.node, 0);
  const steps = program.kinds.length;
  if (steps <= maxSteps) return { matcher: new Automaton(program, start), steps };
  return {
    problem: `it has more than ${maxSteps} steps, with each repetition by a count as often as it counts`,
  };
}

type CharacterTest = (code: number) => boolean;
/** True at a place between two characters; either is `NONE` at an end of the text. */
type Assertion = (before: number, after: number) => boolean;

const NONE = -1;
const LINE_END = 10;
const LAST_ASCII = 0x7f;

/** By the source for JavaScript. */
const ASSERTIONS: Readonly<Record<string, Assertion>> = {
  "^": (before) => before === NONE,
  "$": (_, after) => after === NONE,
  "(?<![^\\n])": (before) => before === NONE || before === LINE_END,
  "(?![^\\n])": (_, after) => after === NONE || after === LINE_END,
  "\\b": (before, after) => isWord(before) !== isWord(after),
  "\\B": (before, after) => isWord(before) === isWord(after),
};

/** Throws for one that the reader of patterns should not have: in its place, nothing would ever match. */
function assertionOf(source: string): Assertion {
  const assertion = ASSERTIONS[source];
  if (assertion === undefined) throw new TypeError(`Cannot test the assertion "${source}"`);
  return assertion;
}

/** A step leads to the match, to one or two others, or to another if a test of the next character or of the place holds. */
const [MATCH, SPLIT, READ, ASSERT] = [0, 1, 2, 3];

/** The steps of a pattern, each named by its index. The first one is the match. */
class Program {
  readonly kinds: number[] = [MATCH];
  readonly nexts: number[] = [0];
  /** The second step of a split; the index of the test otherwise. */
  readonly others: number[] = [0];
  readonly tests: CharacterTest[] = [];
  readonly assertions: Assertion[] = [];
  readonly #testIndexes = new Map<string, number>();
  readonly #maxSteps: number;

  constructor(maxSteps: number) {
    this.#maxSteps = maxSteps;
  }

  /** Adds the steps of a node, behind which `next` follows; returns the first of them. */
  add(node: Re2Node, next: number): number {
    // Such a pattern is refused.
    if (this.kinds.length > this.#maxSteps) return next;
    switch (node.kind) {
      case "one":
        return this.#step(READ, next, this.#testOf(node.one));
      case "assertion":
        this.assertions.push(assertionOf(node.assertion));
        return this.#step(ASSERT, next, this.assertions.length - 1);
      case "all":
        return node.nodes.reduceRight((after, part) => this.add(part, after), next);
      case "any": {
        const branches = node.nodes.map((branch) => this.add(branch, next));
        return branches.reduce((others, branch) => this.#step(SPLIT, branch, others));
      }
      case "repeated":
        return this.#repeat(node, next);
    }
  }

  #repeat({ node, min, max }: Re2Node & { readonly kind: "repeated" }, next: number): number {
    let start = next;
    if (max === Infinity) {
      start = this.#step(SPLIT, next, next);
      this.others[start] = this.add(node, start);
    } else {
      for (let count = min; count < max; count++) start = this.#step(SPLIT, this.add(node, start), next);
    }
    for (let count = 0; count < min; count++) {
      const first = this.add(node, start);
      // Without steps, another repetition of them has none either.
      if (first === start) break;
      start = first;
    }
    return start;
  }

  #step(kind: number, next: number, other: number): number {
    this.nexts.push(next);
    this.others.push(other);
    return this.kinds.push(kind) - 1;
  }

  #testOf(source: string): number {
    let index = this.#testIndexes.get(source);
    if (index === undefined) {
      this.#testIndexes.set(source, index = this.tests.push(characterTest(source)) - 1);
    }
    return index;
  }
}

/** Follows all ways through a program together, so that no text leads back to an earlier character. */
class Automaton implements Re2Matcher {
  readonly #program: Program;
  readonly #start: number;
  readonly #kinds: Uint8Array;
  readonly #nexts: Int32Array;
  readonly #others: Int32Array;
  /** The place at which a step was reached last; places are numbered through all texts. */
  readonly #reachedAt: Float64Array;
  #place = 0;
  /** Steps to follow at a place, and behind its character: each step that is reached adds two at most. */
  #waiting: Int32Array;
  #behind: Int32Array;

  constructor(program: Program, start: number) {
    const { kinds, nexts, others } = program;
    this.#program = program;
    this.#start = start;
    this.#kinds = Uint8Array.from(kinds);
    this.#nexts = Int32Array.from(nexts);
    this.#others = Int32Array.from(others);
    this.#reachedAt = new Float64Array(kinds.length);
    this.#waiting = new Int32Array(2 * kinds.length + 1);
    this.#behind = new Int32Array(2 * kinds.length + 1);
  }

  matches(text: string): boolean {
    let count = 0;
    let before = NONE;
    for (let at = 0;;) {
      const after = at < text.length ? text.codePointAt(at) ?? NONE : NONE;
      this.#waiting[count++] = this.#start;
      count = this.#follow(count, before, after);
      if (count === NONE) return true;
      if (after === NONE) return false;
      at += after > 0xffff ? 2 : 1;
      [this.#waiting, this.#behind] = [this.#behind, this.#waiting];
      before = after;
    }
  }

  /** Follows the waiting steps; returns the number of those behind the next character, `NONE` at the match. */
  #follow(count: number, before: number, after: number): number {
    const [waiting, behind, reachedAt] = [this.#waiting, this.#behind, this.#reachedAt];
    const { tests, assertions } = this.#program;
    const place = ++this.#place;
    let behindCount = 0;
    for (let left = count; left > 0;) {
      const step = waiting[--left] ?? 0;
      if (reachedAt[step] === place) continue;
      reachedAt[step] = place;
      const next = this.#nexts[step] ?? 0;
      const other = this.#others[step] ?? 0;
      switch (this.#kinds[step]) {
        case SPLIT:
          waiting[left++] = other;
          waiting[left++] = next;
          break;
        case READ:
          if (after !== NONE && tests[other]?.(after) === true) behind[behindCount++] = next;
          break;
        case ASSERT:
          if (assertions[other]?.(before, after) === true) waiting[left++] = next;
          break;
        default:
          return NONE;
      }
    }
    return behindCount;
  }
}

/** A test of one character by the source of a class, or of a character, for JavaScript. */
function characterTest(source: string): CharacterTest {
  const pattern = new RegExp(`^(?:${source})$`, "u");
  const accepted = Uint8Array.from(
    { length: LAST_ASCII + 1 },
    (_, code) => pattern.test(String.fromCharCode(code)) ? 1 : 0,
  );
  // Many steps may ask for the same character.
  let lastCode = NONE;
  let last = false;
  return (code) => {
    if (code <= LAST_ASCII) return accepted[code] === 1;
    if (code !== lastCode) [lastCode, last] = [code, pattern.test(String.fromCodePoint(code))];
    return last;
  };
}

/** True for what `\w` matches. Compared as numbers, since many steps may ask at each place. */
function isWord(code: number): boolean {
  const lower = code | 0x20;
  return (lower >= 0x61 && lower <= 0x7a && code <= LAST_ASCII) || (code >= 0x30 && code <= 0x39) ||
    code === 0x5f;
}
