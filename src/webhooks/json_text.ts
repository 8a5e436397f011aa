import { createHash } from "node:crypto";

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
  parse(
    text: string,
    revive: (key: string, value: JsonValue, context: { source?: string }) => JsonValue,
  ): JsonValue;
}

const RAW = JSON as unknown as RawJson;

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
 * that is nested too deep for the stack throws a `RangeError`.
 */
export function parseJson(text: string): JsonValue {
  // Reading with a reviver costs several times more: it is used where it finds something.
  if (!DOUBTFUL.test(text) || !losesDigits(text)) return JSON.parse(text);
  return RAW.parse(text, (_key, value, { source }) => {
    if (typeof value !== "number" || source === undefined || String(value) === source) return value;
    return RAW.rawJSON(source);
  });
}

/** Whether a value is a number whose digits are kept. */
export function isRawNumber(value: unknown): value is RawNumber {
  return RAW.isRawJSON(value);
}

/** Writes a value of JSON, without spaces and with the digits that its numbers came with. */
export function stringifyJson(value: JsonValue): string {
  return JSON.stringify(value);
}

/**
 * One text for all texts that mean the same: without spaces, keys sorted by their UTF-16 code units, numbers by the
 * digits they came with. A string is taken for a text of JSON, anything else for a value.
 */
export function canonicalJson(textOrValue: JsonValue): string {
  return canonical(typeof textOrValue === "string" ? parseJson(textOrValue) : textOrValue);
}

/** SHA-256 of the canonical JSON of a text, in lower-case hex. */
export function bodyHash(text: string): Promise<string> {
  return Promise.try(() => createHash("sha256").update(canonicalJson(text)).digest("hex"));
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

/** Whether any number outside of strings is one that a double would write otherwise. */
function losesDigits(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
    } else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      NUMBER.lastIndex = at;
      const [digits = ""] = NUMBER.exec(text) ?? [];
      if (String(Number(digits)) !== digits) return true;
      at += digits.length - 1;
    }
  }
  return false;
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
  if (typeof value !== "object" || value === null || isRawNumber(value)) return stringifyJson(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const object = value as JsonObject;
  const members = Object.keys(object).sort().map((key) => {
    return `${JSON.stringify(key)}:${canonical(object[key] ?? null)}`;
  });
  return `{${members.join(",")}}`;
}
