import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import { endOfString, JsonText } from "./json_text.ts";

/** A number whose digits a double would change, as created by `JSON.rawJSON`. */
interface RawNumber {
  readonly rawJSON: string;
}

/** A JSON object. Every key is an own property, `__proto__` too: ask with `Object.hasOwn`. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/**
 * A JSON value. Ask `isRawNumber` before treating it as an object. What is parsed has no `JsonText`; what is to be written
 * may be one.
 */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | RawNumber
  | JsonText
  | readonly JsonValue[]
  | JsonObject;

/** Methods that the compiler's `JSON` lacks. */
interface RawJson {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): boolean;
}

const RAW = JSON as unknown as RawJson;

/** Marks strings in place of numbers while a text is parsed; random, so that no other string begins with it. */
const MARK = randomBytes(12).toString("base64");

/** Finds texts with a number that a double may change: with a fraction, an exponent, 16 digits, or `-0`. */
const DOUBTFUL = /(?:^|[\s:,[])-?(?:0(?<=-0)|\d+[.eE]|\d{16})/;
const NUMBER = /-?[\d.eE+-]*/y;
const QUOTE = 0x22;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
/** The bit in which `[` and `{`, `]` and `}` differ. */
const CURLY = 0x20;
const OPENS = 0x5b;
const CLOSES = 0x5d;

/**
 * Parses JSON; throws a `SyntaxError` for an invalid text. Numbers that a double would change (`1.10`, `1e400`) become
 * `RawNumber`, which `JSON.stringify` writes unchanged and which cannot be posted to another thread. Check
 * `nestingProblem` first: a text nested too deep for the stack throws a `RangeError`. `value` is the result of
 * `JSON.parse`, where the caller has it.
 */
export function parseJson(text: string, value: JsonValue = JSON.parse(text)): JsonValue {
  const withMarks = DOUBTFUL.test(text) ? marked(text) : undefined;
  // A reviver would get the digits too, at three times the cost.
  return withMarks === undefined ? value : unmarked(JSON.parse(withMarks));
}

/** True for a number that keeps its digits. */
export function isRawNumber(value: unknown): value is RawNumber {
  return RAW.isRawJSON(value);
}

/** True for an object, and neither a list, a number that keeps its digits nor a text. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawNumber(value) &&
    !(value instanceof JsonText);
}

/** The value below own properties of objects; nothing is below a list. */
export function ownValueAt(value: JsonValue | undefined, keys: readonly string[]): JsonValue | undefined {
  let found = value;
  for (const key of keys) {
    if (!isJsonObject(found)) return undefined;
    found = Object.hasOwn(found, key) ? found[key] : undefined;
  }
  return found;
}

/** Writes a JSON value without spaces, its numbers with their digits; a `JsonText` as it was sent. */
export function stringifyJson(value: JsonValue): string {
  return value instanceof JsonText ? value.text : JSON.stringify(value);
}

/** The length of a text in UTF-8. */
export function byteLength(text: string): number {
  return Buffer.byteLength(text);
}

/**
 * Canonical JSON of a text or a value: no spaces, keys sorted by their UTF-16 code units, numbers with the digits they
 * came with.
 */
export function canonicalJson(textOrValue: JsonValue): string {
  return canonical(typeof textOrValue === "string" ? parseJson(textOrValue) : textOrValue);
}

/** SHA-256 of the canonical JSON of a text or a value, in lower-case hex. */
export function bodyHash(textOrValue: JsonValue): Promise<string> {
  return Promise.try(() => createHash("sha256").update(canonicalJson(textOrValue)).digest("hex"));
}

/** The error of a JSON text nested deeper than `most`, if it is; looks at brackets outside of strings only. */
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
    if (depth > most) return `the JSON is nested too deep; expected at most ${most} levels`;
  }
  return undefined;
}

/** Replaces every number that a double would change by a string that begins with `MARK`; undefined without any. */
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

/** Replaces marked strings by their numbers, in place. */
function unmarked(value: JsonValue): JsonValue {
  if (typeof value === "string") {
    return value.startsWith(MARK) ? RAW.rawJSON(value.slice(MARK.length)) : value;
  }
  if (typeof value !== "object" || value === null) return value;
  // Parsed here, and every key is an own property, `__proto__` too: this sets no prototype.
  const owner = value as Record<string | number, JsonValue>;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) owner[index] = unmarked(value[index]);
  } else {
    for (const key of Object.keys(owner)) owner[key] = unmarked(owner[key] ?? null);
  }
  return value;
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
