import { readCharacter, translateClass, translateEscapedClass } from "./re2_class.ts";

/** A pattern for the flag `u` of JavaScript and its structure, or why RE2 refuses it, with an offset in its text. */
type Re2Translation =
  | { readonly source: string; readonly node: Re2Node }
  | { readonly problem: string; readonly at: number };

/** The structure of a pattern, as far as it decides which texts match. `one` and `assertion` are sources for JavaScript. */
export type Re2Node =
  | { readonly kind: "one"; readonly one: string }
  | { readonly kind: "assertion"; readonly assertion: string }
  | { readonly kind: "all"; readonly nodes: readonly Re2Node[] }
  | { readonly kind: "any"; readonly nodes: readonly Re2Node[] }
  | { readonly kind: "repeated"; readonly node: Re2Node; readonly min: number; readonly max: number };

/** Translates a pattern of RE2, the syntax of Go, which means the same in JavaScript afterwards. */
export function translateRe2(text: string): Re2Translation {
  return new Translator(text).translate();
}

/** One or more characters, a class, a group or an assertion, with its repetition. */
interface Item {
  readonly source: string;
  readonly node: Re2Node;
  /** Number of repetitions of its innermost part by counts. */
  readonly repeats: number;
  /** True when a repetition takes it only as a group: it is an assertion, or is repeated already. */
  readonly needsGroup: boolean;
}

interface Flags {
  readonly i: boolean;
  readonly m: boolean;
  readonly s: boolean;
  readonly U: boolean;
}

interface Repetition {
  readonly min: number;
  readonly max: number;
  readonly end: number;
}

const MAX_REPEATS = 1_000;
const MAX_DEPTH = 1_000;
const MISSING = "missing argument to repetition operator";
const BAD_COUNT = "invalid repeat count";
const BAD_GROUP = "invalid or unsupported Perl syntax";
const ASSERTIONS: Readonly<Record<string, string>> = { A: "^", z: "$", b: "\\b", B: "\\B" };

class Translator {
  readonly #text: string;
  readonly #names = new Set<string>();
  #at = 0;
  #flags: Flags = { i: false, m: false, s: false, U: false };
  #problem: { readonly problem: string; readonly at: number } | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  translate(): Re2Translation {
    const { source, node } = this.#alternatives(0);
    if (this.#at < this.#text.length) this.#fail("unexpected )", this.#at);
    return this.#problem ?? { source, node };
  }

  /** The first problem counts; nothing is read after it. */
  #fail(problem: string, at: number): void {
    this.#problem ??= { problem, at };
    this.#at = this.#text.length;
  }

  #alternatives(depth: number): Item {
    const branches: (readonly Item[])[] = [];
    let items: Item[] = [];
    let repeats = 1;
    let lastRepetition = -1;
    if (depth > MAX_DEPTH) this.#fail("expression nests too deeply", this.#at);
    while (this.#at < this.#text.length && this.#text[this.#at] !== ")") {
      const start = this.#at;
      const repetition = this.#repetition(start);
      if (this.#text[start] === "|") {
        branches.push(items);
        items = [];
        this.#at++;
      } else if (repetition === undefined) {
        this.#item(items, depth);
      } else {
        if (start === lastRepetition) this.#fail("invalid nested repetition operator", start);
        else this.#repeat(items, repetition);
        lastRepetition = this.#at;
      }
      repeats = Math.max(repeats, items.at(-1)?.repeats ?? 1);
    }
    branches.push(items);
    const nodes = branches.map(nodeOf);
    const [node = NOTHING] = nodes;
    return {
      source: branches.map(sourceOf).join("|"),
      node: nodes.length === 1 ? node : { kind: "any", nodes },
      repeats,
      needsGroup: false,
    };
  }

  #repetition(at: number): Repetition | undefined {
    switch (this.#text[at]) {
      case "*":
        return { min: 0, max: Infinity, end: at + 1 };
      case "+":
        return { min: 1, max: Infinity, end: at + 1 };
      case "?":
        return { min: 0, max: 1, end: at + 1 };
      case "{": {
        // Any other brace is a character.
        const counts = /\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}/y;
        counts.lastIndex = at;
        const [all, least, comma, most] = counts.exec(this.#text) ?? [];
        if (all === undefined) return undefined;
        const min = Number(least);
        return { min, max: comma === undefined ? min : Number(most ?? Infinity), end: at + all.length };
      }
      default:
        return undefined;
    }
  }

  #repeat(items: Item[], { min, max, end }: Repetition): void {
    const start = this.#at;
    const written = this.#text.slice(start, end);
    const item = items.pop();
    const isCount = written.startsWith("{");
    const most = max === Infinity ? min : max;
    if (isCount && (min > MAX_REPEATS || most > MAX_REPEATS || min > max)) {
      return this.#fail(BAD_COUNT, start);
    }
    if (item === undefined) return this.#fail(MISSING, start);
    const repeats = item.repeats * (isCount ? Math.max(most, 1) : 1);
    if (isCount && most >= 2 && repeats > MAX_REPEATS) return this.#fail(BAD_COUNT, start);
    const isReversed = this.#text[end] === "?";
    const isLazy = isReversed !== this.#flags.U;
    const source = item.needsGroup ? `(?:${item.source})` : item.source;
    const node: Re2Node = { kind: "repeated", node: item.node, min, max };
    items.push({ source: `${source}${written}${isLazy ? "?" : ""}`, node, repeats, needsGroup: true });
    this.#at = isReversed ? end + 1 : end;
  }

  /** Adds the next item, if the text at this place is one: flags are none. */
  #item(items: Item[], depth: number): void {
    const character = this.#text[this.#at] ?? "";
    if (character === "(") return this.#group(items, depth);
    if (character === "[") return this.#add(items, translateClass(this.#text, this.#at), true);
    if (character === "\\") return this.#escape(items);
    const { m, s } = this.#flags;
    if (character === "^") return this.#assert(items, m ? "(?<![^\\n])" : "^", 1);
    if (character === "$") return this.#assert(items, m ? "(?![^\\n])" : "$", 1);
    if (character === ".") return this.#add(items, { source: s ? "[^]" : "[^\\n]", end: this.#at + 1 });
    this.#character(items);
  }

  #assert(items: Item[], source: string, length: number): void {
    items.push({ source, node: { kind: "assertion", assertion: source }, repeats: 1, needsGroup: true });
    this.#at += length;
  }

  #character(items: Item[]): void {
    const read = readCharacter(this.#text, this.#at);
    if ("problem" in read) return this.#fail(read.problem, read.at);
    this.#literal(items, read.code);
    this.#at = read.end;
  }

  #literal(items: Item[], code: number): void {
    const character = String.fromCodePoint(code);
    const source = /[$^\\.*+?()[\]{}|/]/.test(character) ? `\\${character}` : character;
    items.push(plain(this.#flags.i && isCased(character) ? `(?i:${source})` : source));
  }

  #escape(items: Item[]): void {
    const at = this.#at;
    const letter = this.#text[at + 1] ?? "";
    if (letter === "Q") return this.#quoted(items);
    const assertion = Object.hasOwn(ASSERTIONS, letter) ? ASSERTIONS[letter] : undefined;
    if (assertion !== undefined) return this.#assert(items, assertion, 2);
    const named = translateEscapedClass(this.#text, at);
    return named === undefined ? this.#character(items) : this.#add(items, named, true);
  }

  #quoted(items: Item[]): void {
    const start = this.#at + 2;
    const close = this.#text.indexOf("\\E", start);
    const quoted = this.#text.slice(start, close < 0 ? undefined : close);
    for (const character of quoted) this.#literal(items, character.codePointAt(0) ?? 0);
    this.#at = close < 0 ? this.#text.length : close + 2;
  }

  #add(items: Item[], part: ReturnType<typeof translateClass>, isClass = false): void {
    if ("problem" in part) return this.#fail(part.problem, part.at);
    items.push(plain(isClass && this.#flags.i ? `(?i:${part.source})` : part.source));
    this.#at = part.end;
  }

  #group(items: Item[], depth: number): void {
    const start = this.#at;
    const outer = this.#flags;
    const open = this.#openGroup();
    if (open === undefined) return;
    const { source, node, repeats } = this.#alternatives(depth + 1);
    if (this.#text[this.#at] !== ")") return this.#fail("missing closing )", start);
    this.#at++;
    this.#flags = outer;
    items.push({ source: `${open}${source})`, node, repeats, needsGroup: false });
  }

  /** Reads what begins a group; undefined for flags alone. */
  #openGroup(): string | undefined {
    const at = this.#at;
    this.#at++;
    if (this.#text[this.#at] !== "?") return "(";
    const named = /\(\?P?<([^>]*)>/y;
    named.lastIndex = at;
    const [all, name] = named.exec(this.#text) ?? [];
    if (all === undefined || name === undefined) return this.#flagGroup(at);
    if (!/^[0-9A-Za-z_]+$/.test(name)) return void this.#fail("invalid named capture", at);
    this.#at = at + all.length;
    // A name of JavaScript is unique and does not begin with a digit.
    if (this.#names.has(name) || /^[0-9]/.test(name)) return "(";
    this.#names.add(name);
    return `(?<${name}>`;
  }

  #flagGroup(at: number): string | undefined {
    const group = /\(\?([imsU]*)(?:-([imsU]+))?([:)])/y;
    group.lastIndex = at;
    const [all, on = "", off = "", end] = group.exec(this.#text) ?? [];
    if (all === undefined) return void this.#fail(BAD_GROUP, at);
    const value = (flag: keyof Flags) => !off.includes(flag) && (on.includes(flag) || this.#flags[flag]);
    this.#flags = { i: value("i"), m: value("m"), s: value("s"), U: value("U") };
    this.#at = at + all.length;
    return end === ":" ? "(?:" : undefined;
  }
}

function plain(source: string): Item {
  return { source, node: { kind: "one", one: source }, repeats: 1, needsGroup: false };
}

const NOTHING: Re2Node = { kind: "all", nodes: [] };

function nodeOf(items: readonly Item[]): Re2Node {
  const [first = NOTHING, ...others] = items.map(({ node }) => node);
  return others.length === 0 ? first : { kind: "all", nodes: [first, ...others] };
}

function sourceOf(items: readonly Item[]): string {
  return items.map(({ source }) => source).join("");
}

/** True when letter case may matter, which is not so for most punctuation. */
function isCased(character: string): boolean {
  return /[\p{L}\p{M}\p{N}\p{S}]/u.test(character);
}
