import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";

/** A number whose digits a double would change, as `JSON.rawJSON` makes it. */
export interface RawNumber {
  /** As it was written. */
  readonly rawJSON: string;
}

/** An object of JSON. Its keys are its own properties, `__proto__` too: ask with `Object.hasOwn`. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** A value of JSON. Ask `isRawNumber` before taking it for an object. */
export type JsonValue = null | boolean | number | string | RawNumber | readonly JsonValue[] | JsonObject;

/** What the compiler does not know of `JSON` yet. */
interface RawJson {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): boolean;
}

const RAW = JSON as unknown as RawJson;

/** Begins the strings that stand for numbers while a text is read; nobody can know it, and so no other string does. */
const MARK = randomBytes(12).toString("base64");

/** Where a number may stand that a double could change: with a fraction, an exponent, 16 digits, or a minus and 0. */
const DOUBTFUL = /(?:^|[\s:,[])-?(?:0(?<=-0)|\d+[.eE]|\d{16})/;
/** At least the number that begins at a place. */
const NUMBER = /-?[\d.eE+-]*/y;
const QUOTE = 0x22;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const BACKSLASH = 0x5c;
/** `[` and `{`, `]` and `}` differ by this bit alone. */
const CURLY = 0x20;
const OPENS = 0x5b;
const CLOSES = 0x5d;

/**
 * Reads JSON; throws a `SyntaxError` when it is none. Numbers that a double would change (`1.10`, `1e400`,
 * `12345678901234567890`) come back as `RawNumber`, which `JSON.stringify` writes as they were. Such a value cannot be
 * posted to another thread: send the text. Of two equal keys the last counts. Check `nestingProblem` before: a text
 * that is nested too deep for the stack throws a `RangeError`. `value` is what `JSON.parse` makes of the text, where it
 * was read before.
 */
export function parseJson(text: string, value: JsonValue = JSON.parse(text)): JsonValue {
  const withMarks = DOUBTFUL.test(text) ? marked(text) : undefined;
  // A reviver would be told the digits too, and costs three times as much.
  return withMarks === undefined ? value : unmarked(JSON.parse(withMarks));
}

/** Whether a value is a number whose digits are kept. */
export function isRawNumber(value: unknown): value is RawNumber {
  return RAW.isRawJSON(value);
}

/** Writes a value of JSON, without spaces and with the digits that its numbers came with. */
export function stringifyJson(value: JsonValue): string {
  return JSON.stringify(value);
}

/** How many bytes a text has in UTF-8. */
export function byteLength(text: string): number {
  return Buffer.byteLength(text);
}

/**
 * One text for all texts that mean the same: without spaces, keys sorted by their UTF-16 code units, numbers by the
 * digits they came with. A string is taken for a text of JSON, anything else for a value.
 */
export function canonicalJson(textOrValue: JsonValue): string {
  return canonical(typeof textOrValue === "string" ? parseJson(textOrValue) : textOrValue);
}

/** SHA-256 of the canonical JSON of a text, or of the value that was read of it, in lower-case hex. */
export function bodyHash(textOrValue: JsonValue): Promise<string> {
  return Promise.try(() => createHash("sha256").update(canonicalJson(textOrValue)).digest("hex"));
}

/**
 * What is wrong with the nesting of a text of JSON; nothing when no value stands in more than `most` lists and objects.
 * It looks at brackets outside of strings alone, so that no depth and no error can stop it.
 */
export function nestingProblem(text: string, most: number): string | undefined {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
      continue;
    }
    const bracket = code & ~CURLY;
    if (bracket === CLOSES) depth--;
    if (bracket !== OPENS) continue;
    depth++;
    if (depth > most) return `the JSON is nested deeper than ${most}; at most ${most} would be right`;
  }
  return undefined;
}

/** The text with every number that a double would write otherwise as a string behind `MARK`; nothing without any. */
function marked(text: string): string | undefined {
  const parts: string[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
    } else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      NUMBER.lastIndex = at;
      NUMBER.test(text);
      const end = NUMBER.lastIndex;
      const digits = text.slice(at, end);
      if (String(Number(digits)) !== digits) {
        parts.push(text.slice(from, at), `"${MARK}${digits}"`);
        from = end;
      }
      at = end - 1;
    }
  }
  return from === 0 ? undefined : parts.join("") + text.slice(from);
}

/** Puts the numbers back in the place of the strings that stand for them. */
function unmarked(value: JsonValue): JsonValue {
  if (typeof value === "string") {
    return value.startsWith(MARK) ? RAW.rawJSON(value.slice(MARK.length)) : value;
  }
  if (typeof value !== "object" || value === null) return value;
  // Ours alone, and every key is an own one, `__proto__` too: this sets no prototype.
  const owner = value as Record<string | number, JsonValue>;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) owner[index] = unmarked(value[index]);
  } else {
    for (const key of Object.keys(owner)) owner[key] = unmarked(owner[key] ?? null);
  }
  return value;
}

/** Where the string ends that begins at a quote: at the next one that is not escaped, or at the end of the text. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text.charCodeAt(end - 1 - escapes) === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return end;
  }
  return text.length;
}

function canonical(value: JsonValue): string {
  if (typeof value === "number") return String(value);
  if (typeof value !== "object" || value === null) return stringifyJson(value);
  if (isRawNumber(value)) return value.rawJSON;
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const object = value as JsonObject;
  const members = Object.keys(object).sort().map((key) => {
    return `${JSON.stringify(key)}:${canonical(object[key] ?? null)}`;
  });
  return `{${members.join(",")}}`;
}
