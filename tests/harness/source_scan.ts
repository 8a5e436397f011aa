/** A string literal of a source file. */
interface StringLiteral {
  readonly start: number;
  readonly value: string;
}

/** A source file taken apart. The three texts are equally long, so that places in them agree. */
export interface Source {
  /** Path from the root of the project, such as `src/health.ts`. */
  readonly path: string;
  readonly text: string;
  /** The text with spaces in place of comments and of the content of strings and regular expressions. */
  readonly code: string;
  /** The text with spaces in place of everything but comments. */
  readonly comments: string;
  readonly strings: readonly StringLiteral[];
}

/** A function with a body in braces. */
interface FunctionSpan {
  /** Line of its parameters, counted from 1. */
  readonly line: number;
  readonly lines: number;
}

type Kind = "code" | "comment" | "quoted";

// A slash behind one of these begins a regular expression; behind anything else it divides.
const BEFORE_PATTERN =
  /(?:^|[(,=:[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|throw|else|await|yield))\s*$/;
/** Code up to the next character that may begin something else. */
const PLAIN = /[^{}"'`/]+/y;
const IN_DOUBLE = /[^"\\]+/y;
const IN_SINGLE = /[^'\\]+/y;
const IN_TEMPLATE = /[^`$\\]+/y;
const CONTROL = /\b(?:if|for|while|switch|catch|with|await)\s*$/;

/** Takes a TypeScript file apart. */
export function scanSource(path: string, text: string): Source {
  return new Scan(path, text).run();
}

/** One pass over a text; what is read so far decides how the next character is read. */
class Scan {
  readonly #path: string;
  readonly #text: string;
  readonly #strings: StringLiteral[] = [];
  #code = "";
  #comments = "";
  #at = 0;

  constructor(path: string, text: string) {
    this.#path = path;
    this.#text = text;
  }

  run(): Source {
    this.#codeUntil(undefined);
    const [path, text] = [this.#path, this.#text];
    return { path, text, code: this.#code, comments: this.#comments, strings: this.#strings };
  }

  /** Reads code to the end, or to the brace that closes an expression within a template. */
  #codeUntil(end: "}" | undefined): void {
    let depth = 0;
    while (this.#at < this.#text.length) {
      const character = this.#text[this.#at] ?? "";
      if (character === end && depth === 0) return;
      if (character === "{") depth++;
      if (character === "}") depth--;
      if (this.#sees("//")) this.#take("comment", this.#find("\n"));
      else if (this.#sees("/*")) this.#take("comment", this.#find("*/", 2) + 2);
      else if (character === '"' || character === "'") this.#string(character);
      else if (character === "`") this.#template();
      else if (character === "/" && BEFORE_PATTERN.test(this.#code.slice(-40))) this.#pattern();
      else this.#take("code", this.#plainEnd());
    }
  }

  #plainEnd(): number {
    PLAIN.lastIndex = this.#at;
    return PLAIN.test(this.#text) ? PLAIN.lastIndex : this.#at + 1;
  }

  #string(quote: string): void {
    const start = this.#at;
    this.#take("code", start + 1);
    const plain = quote === '"' ? IN_DOUBLE : IN_SINGLE;
    while (this.#at < this.#text.length && !this.#sees(quote)) this.#take("quoted", this.#quotedEnd(plain));
    this.#strings.push({ start, value: this.#text.slice(start + 1, this.#at) });
    this.#take("code", this.#at + 1);
  }

  #template(): void {
    this.#take("code", this.#at + 1);
    while (this.#at < this.#text.length && !this.#sees("`")) {
      if (this.#sees("${")) {
        this.#take("quoted", this.#at + 1);
        this.#take("code", this.#at + 1);
        this.#codeUntil("}");
        this.#take("code", this.#at + 1);
      } else this.#take("quoted", this.#quotedEnd(IN_TEMPLATE));
    }
    this.#take("code", this.#at + 1);
  }

  #quotedEnd(plain: RegExp): number {
    plain.lastIndex = this.#at;
    return plain.test(this.#text) ? plain.lastIndex : this.#at + this.#step();
  }

  #pattern(): void {
    let inClass = false;
    this.#take("code", this.#at + 1);
    while (this.#at < this.#text.length && (inClass || !this.#sees("/"))) {
      if (this.#sees("[")) inClass = true;
      if (this.#sees("]")) inClass = false;
      this.#take("quoted", this.#at + this.#step());
    }
    this.#take("code", this.#at + 1);
  }

  /** A backslash and what it escapes belong together. */
  #step(): number {
    return this.#sees("\\") ? 2 : 1;
  }

  #sees(text: string): boolean {
    return this.#text.startsWith(text, this.#at);
  }

  #find(text: string, skip = 0): number {
    const found = this.#text.indexOf(text, this.#at + skip);
    return found === -1 ? this.#text.length : found;
  }

  #take(kind: Kind, end: number): void {
    const taken = this.#text.slice(this.#at, end);
    const blank = taken.replace(/[^\n]/g, " ");
    this.#code += kind === "code" ? taken : blank;
    this.#comments += kind === "comment" ? taken : blank;
    this.#at = Math.min(end, this.#text.length);
  }
}

/** The imports and re-exports of a file, by the text between the quotes, including types and dynamic imports. */
export function importsOf(source: Source): string[] {
  return source.strings
    .filter(({ start }) =>
      /\b(?:from|import|import\s*\()\s*$/.test(source.code.slice(Math.max(0, start - 40), start))
    )
    .map(({ value }) => value);
}

/**
 * Every function of a file that has a body in braces, methods and arrow functions included. A function type
 * whose result is an object type passes for one as well.
 */
export function functionsOf(source: Source): FunctionSpan[] {
  const { code } = source;
  const spans: FunctionSpan[] = [];
  for (let at = 0; at < code.length; at++) {
    const body = code[at] === "(" && !CONTROL.test(code.slice(Math.max(0, at - 12), at))
      ? bodyAfter(code, at)
      : -1;
    if (body === -1) continue;
    const [line, last] = [lineOf(source, at), lineOf(source, closing(code, body))];
    spans.push({ line, lines: last - line + 1 });
  }
  return spans;
}

/** Line of a place in a file, counted from 1. */
export function lineOf(source: Source, at: number): number {
  let starts = lineStarts.get(source);
  if (starts === undefined) {
    starts = Array.from(source.text.matchAll(/\n/g), ({ index }) => index + 1);
    lineStarts.set(source, starts);
  }
  let [low, high] = [0, starts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((starts[middle] ?? 0) <= at) low = middle + 1;
    else high = middle;
  }
  return low + 1;
}

const lineStarts = new WeakMap<Source, readonly number[]>();

/** The place where the body of the function with these parameters begins; -1 where no body follows. */
function bodyAfter(code: string, parameters: number): number {
  let at = skipSpace(code, closing(code, parameters) + 1);
  if (code[at] === ":") at = skipType(code, at + 1);
  if (code.startsWith("=>", at)) at = skipSpace(code, at + 2);
  return code[at] === "{" ? at : -1;
}

/** The place where a type annotation ends: at the body, at an arrow, or at whatever cannot belong to a type. */
function skipType(code: string, start: number): number {
  let wantsOperand = true;
  for (let at = skipSpace(code, start); at < code.length; at = skipSpace(code, at)) {
    const character = code[at] ?? "";
    if (character === "{" && !wantsOperand) return at;
    if (character === "{" || character === "(" || character === "[" || character === "<") {
      at = closing(code, at) + 1;
      // Only the list of a function type's parameters is followed by an arrow.
      if (character === "(" && code.startsWith("=>", skipSpace(code, at))) at = skipSpace(code, at) + 2;
      wantsOperand = code.slice(at - 2, at) === "=>";
      continue;
    }
    if (code.startsWith("=>", at)) return at;
    const word = /^(?:[\w$.]+|["'`][^"'`]*["'`])/.exec(code.slice(at, at + 200))?.[0];
    if (word === undefined && character !== "|" && character !== "&") return at;
    at += word?.length ?? 1;
    wantsOperand = word === undefined || /^(?:is|asserts|keyof|typeof|readonly|infer|extends)$/.test(word);
  }
  return code.length;
}

/** The place of the bracket that closes the one at `start`. */
export function closing(code: string, start: number): number {
  const pairs: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}", "<": ">" };
  const open = code[start] ?? "";
  const close = pairs[open];
  let depth = 0;
  for (let at = start; at < code.length; at++) {
    if (code[at] === open) depth++;
    // The second half of an arrow closes nothing.
    if (code[at] === close && !(close === ">" && code[at - 1] === "=") && --depth === 0) return at;
  }
  return code.length;
}

function skipSpace(code: string, start: number): number {
  let at = start;
  while (/\s/.test(code[at] ?? "")) at++;
  return at;
}
