const BLANK = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
/** The bit in which `[` and `{`, `]` and `}` differ. */
const CURLY = 0x20;
const OPENS = 0x5b;
const CLOSES = 0x5d;
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
  #places: Places | undefined;
  /** Those that were asked for, by the places of their texts. */
  #known: Map<number, JsonText> | undefined;

  constructor(text: string) {
    this.text = text.trim();
  }

  get kind(): "object" | "list" | "scalar" {
    return this.text.startsWith("{") ? "object" : this.text.startsWith("[") ? "list" : "scalar";
  }

  /** The values of an object by their keys, or those of a list by their indexes, in the order of the text. */
  get members(): ReadonlyMap<string, JsonText> {
    const { starts, keys } = this.#found();
    const places = keys ?? new Map(Array.from(starts, (_, index) => [String(index), index]));
    return new Map([...places].map(([key, place]) => [key, this.#at(place)]));
  }

  /** The value under a key, or under an index of a list; of repeated keys the last one counts. */
  get(key: string): JsonText | undefined {
    const { starts, keys } = this.#found();
    const place = keys === undefined && INDEX.test(key) ? Number(key) : keys?.get(key);
    return place === undefined || place >= starts.length ? undefined : this.#at(place);
  }

  #found(): Places {
    return this.#places ??= this.kind === "scalar" ? { starts: [], ends: [] } : placesOf(this.text);
  }

  #at(place: number): JsonText {
    const known = this.#known?.get(place);
    if (known !== undefined) return known;
    const { starts, ends } = this.#found();
    const value = new JsonText(this.text.slice(starts[place], ends[place]));
    (this.#known ??= new Map()).set(place, value);
    return value;
  }

  /** The value that `JSON.stringify` writes: the text in place of a mark by `writeJson`, else the parsed value. */
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

/** Positions of the values of an object or a list. There may be half a million, so that each has only its numbers. */
interface Places {
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  /** The last places of the keys of an object. */
  readonly keys?: ReadonlyMap<string, number>;
}

function placesOf(text: string): Places {
  const starts: number[] = [];
  const ends: number[] = [];
  const keys = text.startsWith("{") ? new Map<string, number>() : undefined;
  for (let at = afterSpace(text, 1); at < text.length - 1;) {
    if (keys !== undefined) {
      const end = endOfString(text, at);
      keys.set(stringOf(text, at, end), starts.length);
      at = afterSpace(text, afterSpace(text, end + 1) + 1);
    }
    starts.push(at);
    at = endOfValue(text, at);
    ends.push(at);
    at = afterSpace(text, at);
    if (text.charCodeAt(at) === COMMA) at = afterSpace(text, at + 1);
  }
  return keys === undefined ? { starts, ends } : { starts, ends, keys };
}

/** The string between two quotes. */
function stringOf(text: string, start: number, end: number): string {
  const plain = text.slice(start + 1, end);
  return plain.includes("\\") ? JSON.parse(text.slice(start, end + 1)) : plain;
}

function afterSpace(text: string, at: number): number {
  if (text.charCodeAt(at) > BLANK) return at;
  SPACE.lastIndex = at;
  SPACE.test(text);
  return SPACE.lastIndex;
}

/** True when a number or a word ends in front of this character. */
function isEnd(code: number): boolean {
  return code <= BLANK || code === COMMA || (code & ~CURLY) === CLOSES;
}

function endOfValue(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return endOfString(text, start) + 1;
  if ((first & ~CURLY) !== OPENS) {
    let end = start;
    while (end < text.length && !isEnd(text.charCodeAt(end))) end++;
    return end;
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
