/** A part of a pattern that was translated: its source for JavaScript and where it ends, or why it is refused. */
type Translated =
  | { readonly source: string; readonly end: number }
  | { readonly problem: string; readonly at: number };

type Character =
  | { readonly code: number; readonly end: number }
  | { readonly problem: string; readonly at: number };

const MAX_CODE = 0x10ffff;
const CONTROLS: Readonly<Record<string, number>> = { a: 7, f: 12, n: 10, r: 13, t: 9, v: 11 };
/** `\s` has fewer characters than in JavaScript. */
const PERL_CLASSES: Readonly<Record<string, string>> = { d: "0-9", s: "\\t\\n\\f\\r ", w: "0-9A-Za-z_" };
const POSIX_CLASSES: Readonly<Record<string, string>> = {
  alnum: "0-9A-Za-z",
  alpha: "A-Za-z",
  ascii: "\\x00-\\x7f",
  blank: "\\t ",
  cntrl: "\\x00-\\x1f\\x7f",
  digit: "0-9",
  graph: "\\x21-\\x7e",
  lower: "a-z",
  print: "\\x20-\\x7e",
  punct: "\\x21-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7e",
  space: "\\t-\\r ",
  upper: "A-Z",
  word: "0-9A-Za-z_",
  xdigit: "0-9A-Fa-f",
};
/** Properties that are neither categories nor scripts. */
const PROPERTIES = ["Any", "ASCII", "Assigned"];

/** A part of a class, as it is between brackets. */
type Part =
  | { readonly source: string; readonly isNegated?: boolean; readonly end: number }
  | { readonly problem: string; readonly at: number };

/** Translates the class in brackets that begins at `start`. */
export function translateClass(text: string, start: number): Translated {
  const isNegated = text[start + 1] === "^";
  const first = start + (isNegated ? 2 : 1);
  const negated: string[] = [];
  let plain = "";
  for (let at = first; at < text.length;) {
    if (text[at] === "]" && at > first) return { source: classOf(plain, negated, isNegated), end: at + 1 };
    const part = namedPart(text, at) ?? escapedPart(text, at) ?? translateRange(text, at);
    if ("problem" in part) return part;
    if (part.isNegated) negated.push(part.source);
    else plain += part.source;
    at = part.end;
  }
  return { problem: "missing closing ]", at: start };
}

/** Without nested classes, for which the engine ignores the flags of a part of a pattern. */
function classOf(plain: string, negated: readonly string[], isNegated: boolean): string {
  if (negated.length === 0) return `[${isNegated ? "^" : ""}${plain}]`;
  const parts = [...plain === "" ? [] : [`[${plain}]`], ...negated.map((part) => `[^${part}]`)].join("|");
  return isNegated ? `(?:(?!${parts})[^])` : `(?:${parts})`;
}

/** Translates a class that an escape names, such as `\d` or `\p{Greek}`; undefined for anything else. */
export function translateEscapedClass(text: string, at: number): Translated | undefined {
  const part = escapedPart(text, at);
  if (part === undefined || "problem" in part) return part;
  return { source: `[${part.isNegated ? "^" : ""}${part.source}]`, end: part.end };
}

function escapedPart(text: string, at: number): Part | undefined {
  if (text[at] !== "\\") return undefined;
  const letter = text[at + 1] ?? "";
  const name = letter.toLowerCase();
  if (name === "p") return translateProperty(text, at);
  const source = Object.hasOwn(PERL_CLASSES, name) ? PERL_CLASSES[name] : undefined;
  return source === undefined ? undefined : { source, isNegated: letter !== name, end: at + 2 };
}

/** Reads the character that begins at `at`, which may be an escape. */
export function readCharacter(text: string, at: number): Character {
  const code = text.codePointAt(at) ?? 0;
  return text[at] === "\\" ? readEscape(text, at) : { code, end: at + String.fromCodePoint(code).length };
}

function readEscape(text: string, at: number): Character {
  const character = text[at + 1];
  if (character === undefined) return { problem: "trailing backslash", at };
  const octal = /^\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2})/.exec(text.slice(at, at + 4))?.[0];
  if (octal !== undefined) return { code: parseInt(octal.slice(1), 8), end: at + octal.length };
  const hex = /^\\x(?:\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{2}))/.exec(text.slice(at, at + 100));
  const hexCode = parseInt(hex?.[1] ?? hex?.[2] ?? "", 16);
  if (hex !== null && hexCode <= MAX_CODE) return { code: hexCode, end: at + hex[0].length };
  const control = Object.hasOwn(CONTROLS, character) ? CONTROLS[character] : undefined;
  if (control !== undefined) return { code: control, end: at + 2 };
  const code = character.charCodeAt(0);
  if (code < 0x80 && !/[0-9A-Za-z]/.test(character)) return { code, end: at + 2 };
  return { problem: `invalid escape sequence \\${String.fromCodePoint(text.codePointAt(at + 1) ?? 0)}`, at };
}

function translateRange(text: string, at: number): Part {
  const low = readCharacter(text, at);
  if ("problem" in low) return low;
  const isRange = text[low.end] === "-" && low.end + 1 < text.length && text[low.end + 1] !== "]";
  if (!isRange) return { source: codeText(low.code), end: low.end };
  const high = readCharacter(text, low.end + 1);
  if ("problem" in high) return high;
  if (high.code < low.code) return { problem: "invalid character class range", at };
  return { source: `${codeText(low.code)}-${codeText(high.code)}`, end: high.end };
}

function codeText(code: number): string {
  return `\\u{${code.toString(16)}}`;
}

/** Translates a class such as `[:alpha:]` inside brackets. */
function namedPart(text: string, at: number): Part | undefined {
  const end = text.startsWith("[:", at) ? text.indexOf(":]", at + 2) : -1;
  if (end < 0) return undefined;
  const [, negation = "", name = ""] = /^(\^?)(.*)$/s.exec(text.slice(at + 2, end)) ?? [];
  const ranges = Object.hasOwn(POSIX_CLASSES, name) ? POSIX_CLASSES[name] : undefined;
  if (ranges === undefined) return { problem: "invalid character class range", at };
  return { source: ranges, isNegated: negation !== "", end: end + 2 };
}

function translateProperty(text: string, at: number): Part {
  const problem = { problem: "invalid character class range", at };
  const braced = text[at + 2] === "{";
  const close = braced ? text.indexOf("}", at) : at + 3;
  if (close < 0 || at + 2 >= text.length) return problem;
  const given = text.slice(braced ? at + 3 : at + 2, close);
  const isInverted = given.startsWith("^");
  const property = propertyOf(isInverted ? given.slice(1) : given);
  if (property === undefined) return problem;
  const isNegated = isInverted !== (text[at + 1] === "P");
  return { source: `\\p{${property}}`, isNegated, end: braced ? close + 1 : close };
}

/** The property with this name; letter case, blanks, hyphens and underscores do not count. */
function propertyOf(name: string): string | undefined {
  const words = name.split(/[-_ ]+/);
  const usual = words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase()).join("_");
  const forms = [name, usual].flatMap((form) => {
    const property = PROPERTIES.find((known) => known.toLowerCase() === form.toLowerCase());
    return property === undefined ? [`gc=${form}`, `sc=${form}`] : [property];
  });
  return forms.find((form) => /^[A-Za-z_=]+$/.test(form) && isProperty(form));
}

function isProperty(property: string): boolean {
  try {
    return new RegExp(`\\p{${property}}`, "u") instanceof RegExp;
  } catch {
    return false;
  }
}
