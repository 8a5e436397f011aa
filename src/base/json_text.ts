const BLANK = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
/** The bit in which `[` and `{`, `]` and `}` differ. */
const CURLY = 0x20;
const OPENS = 0x5b;
const CLOSES = 0x5d;
const AFTER_SCALAR = /[\s,\]}]|$/g;
const SPACE = /[\t\n\r ]*/y;
const INDEX = /^(?:0|[1-9][0-9]{0,8})$/;

/** Marks strings in place of texts while a value is written; random, so that no other string begins with it. */
const MARK = crypto.getRandomValues(new Uint8Array(12)).toHex();
const MARKED = new RegExp(`"${MARK}(\\d+)"`, "g");

/** The texts of the value that is being written. */
let written: string[] | undefined;

/**
 * A JSON value as it was sent: its keys in their order, repeated ones too, its numbers, escapes and white space. The text
 * must be valid. Values inside are found when they are asked for.
 */
export class JsonText {
  readonly text: string;
  #members: ReadonlyMap<string, JsonText> | undefined;

  constructor(text: string) {
    this.text = text.trim();
  }

  get kind(): "object" | "list" | "scalar" {
    return this.text.startsWith("{") ? "object" : this.text.startsWith("[") ? "list" : "scalar";
  }

  /** The value under a key, or under an index of a list; of repeated keys the last one counts. */
  get(key: string): JsonText | undefined {
    if (this.kind === "scalar" || (this.kind === "list" && !INDEX.test(key))) return undefined;
    this.#members ??= membersOf(this.text);
    return this.#members.get(key);
  }

  /** What `JSON.stringify` writes: the text in place of a mark by `writeJson`, else the parsed value. */
  toJSON(): unknown {
    if (written === undefined) return JSON.parse(this.text);
    return `${MARK}${written.push(this.text) - 1}`;
  }
}

/** Writes a value without spaces; each `JsonText` in it keeps all but its white space. */
export function writeJson(value: unknown): string {
  const texts: string[] = written = [];
  try {
    const json = JSON.stringify(value);
    return texts.length === 0
      ? json
      : json.replace(MARKED, (_, index) => compact(texts[Number(index)] ?? "null"));
  } finally {
    written = undefined;
  }
}

/** A JSON text without the white space between its values. */
export function compact(text: string): string {
  const parts: string[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code <= BLANK) {
      parts.push(text.slice(from, at));
      from = at + 1;
    }
  }
  return from === 0 ? text : parts.join("") + text.slice(from);
}

/** The text of a member of an object, as it was sent; the member must be there. */
export function memberText(object: string, key: string): string {
  const member = new JsonText(object).get(key);
  if (member === undefined) throw new RangeError(`Cannot read "${key}": there is no such member`);
  return member.text;
}

/** The end of the string that begins at a quote: the next unescaped quote, or the end of the text. */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return end;
  }
  return text.length;
}

/** The values of an object by their keys, or those of a list by their indexes. */
function membersOf(text: string): ReadonlyMap<string, JsonText> {
  const members = new Map<string, JsonText>();
  const isObject = text.startsWith("{");
  let at = afterSpace(text, 1);
  for (let index = 0; at < text.length - 1; index++) {
    let key = String(index);
    if (isObject) {
      const end = endOfString(text, at) + 1;
      key = JSON.parse(text.slice(at, end));
      at = afterSpace(text, afterSpace(text, end) + 1);
    }
    const end = endOfValue(text, at);
    members.set(key, new JsonText(text.slice(at, end)));
    at = afterSpace(text, end);
    if (text.charCodeAt(at) === COMMA) at = afterSpace(text, at + 1);
  }
  return members;
}

function afterSpace(text: string, at: number): number {
  SPACE.lastIndex = at;
  SPACE.test(text);
  return SPACE.lastIndex;
}

function endOfValue(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return endOfString(text, start) + 1;
  if ((first & ~CURLY) !== OPENS) {
    AFTER_SCALAR.lastIndex = start;
    return AFTER_SCALAR.exec(text)?.index ?? text.length;
  }
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
      continue;
    }
    const bracket = code & ~CURLY;
    if (bracket === OPENS) depth++;
    else if (bracket === CLOSES && --depth === 0) return at + 1;
  }
  return text.length;
}
