import { parseDuration } from "../base/duration.ts";
import { readPattern } from "../base/pattern.ts";
import type { Parsed, Parser } from "./setting.ts";

const TRUE = new Set(["1", "t", "T", "TRUE", "true", "True"]);
const FALSE = new Set(["0", "f", "F", "FALSE", "false", "False"]);
// A leading zero is refused because some readers take such a number as octal.
const INTEGER = /^-?(?:0|[1-9]\d*|0[xX][0-9a-fA-F]+)$/;
const FLOAT = /^-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const FILE_MODE = /^(?:0o?)?[0-7]{3}$/;
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const AES_KEY_BYTES = 32;
const TOKEN = /^[\x21-\x7e]+$/;
/** Texts that examples have in place of a token. */
const PLACEHOLDERS: readonly RegExp[] = [
  /^(?:change|replace)[-_.]?(?:me|it|this)/i,
  /^your[-_.]/i,
  /^(?:my[-_.]?)?(?:token|secret|password)$/i,
  /^(?:admin|example|placeholder|todo|x{3,}|\*+|\.+)$/i,
  /^(?:<.*>|\$\{?\w+\}?|\{\{.*\}\})$/,
  /^(?:0123456789(?:abcdef)?)+$/i,
];

/** The smallest and the largest value allowed, both included; open where absent. */
export interface Range {
  readonly min?: number;
  readonly max?: number;
}

/** Takes any text. */
export function parseText(text: string): Parsed<string> {
  return { value: text };
}

/** Takes the path of a file or folder. */
export function parsePath(text: string): Parsed<string> {
  return text === "" || text.includes("\0") ? { expected: "the path of a file or folder" } : { value: text };
}

/** Reads a yes or no as `1`, `t`, `T`, `TRUE`, `true`, `True` or the same for false. */
export function parseBoolean(text: string): Parsed<boolean> {
  if (TRUE.has(text)) return { value: true };
  return FALSE.has(text) ? { value: false } : { expected: "true or false" };
}

/** Reads a whole number, decimal or `0x…`, that lies in the range. */
export function integer(range: Range = {}): Parser<number> {
  const expected = `an integer${rangeText(range, String)}`;
  return (text) => {
    const magnitude = Number(text.replace("-", ""));
    const value = text.startsWith("-") && magnitude !== 0 ? -magnitude : magnitude;
    return INTEGER.test(text) && Number.isSafeInteger(value) && isWithin(value, range)
      ? { value }
      : { expected };
  };
}

/** Reads a number that may have a fraction and lies in the range. */
export function float(range: Range = {}): Parser<number> {
  const expected = `a number${rangeText(range, String)}`;
  return (text) => {
    const value = Number(text);
    return FLOAT.test(text) && Number.isFinite(value) && isWithin(value, range) ? { value } : { expected };
  };
}

/** The bounds of a duration, written as durations. */
export interface DurationRange {
  readonly min?: string;
  readonly max?: string;
}

/** Reads a duration in the range as milliseconds. */
export function duration(range: DurationRange = {}): Parser<number> {
  const min = parseDuration(range.min ?? "0") ?? 0;
  const max = range.max === undefined ? Infinity : parseDuration(range.max) ?? 0;
  const expected = `a duration${rangeText(range, (bound) => bound)}, such as 10s, 150us or 1m30s`;
  return (text) => {
    const value = parseDuration(text);
    return value !== undefined && value >= min && value <= max ? { value } : { expected };
  };
}

/** Reads a list by comma: items are trimmed, empty ones dropped, each read by `item`. */
export function listOf<T>(item: Parser<T>): Parser<readonly T[]> {
  return (text) => {
    const values: T[] = [];
    for (const part of splitItems(text)) {
      const parsed = item(part);
      if ("expected" in parsed) return { expected: `a comma list whose items are each ${parsed.expected}` };
      values.push(parsed.value);
    }
    return { value: values };
  };
}

/** Reads a list of keys by comma; undefined for `*`, which is every key, and empty for `none`. */
export function parseKeys(text: string): Parsed<ReadonlySet<string> | undefined> {
  const keys = new Set(splitItems(text));
  const isAll = keys.delete("*");
  const isNone = keys.delete("none");
  if (isAll !== isNone && keys.size === 0) return { value: isAll ? undefined : keys };
  return isAll || isNone || keys.size === 0
    ? { expected: "*, none, or a comma list of keys" }
    : { value: keys };
}

/** Reads `key:value,key:value`, each item cut at its first separator, so that values may hold it too. */
export function mapBy(separator: ":" | "="): Parser<ReadonlyMap<string, string>> {
  const expected = `a comma list of key${separator}value items, each key once`;
  return (text) => {
    const value = new Map<string, string>();
    for (const part of splitItems(text)) {
      const at = part.indexOf(separator);
      const key = part.slice(0, Math.max(at, 0)).trim();
      if (key === "" || value.has(key)) return { expected };
      value.set(key, part.slice(at + 1).trim());
    }
    return { value };
  };
}

/** Options of `oneOf`. */
interface OneOfOptions<T> {
  readonly anyCase?: boolean;
  /** Other accepted names, and what they stand for. */
  readonly aliases?: Readonly<Record<string, T>>;
}

/** Reads one of the names, and answers it in the letter case of the list. */
export function oneOf<const T extends string>(names: readonly T[], options: OneOfOptions<T> = {}): Parser<T> {
  const fold = (name: string) => options.anyCase ? name.toLowerCase() : name;
  const known = new Map<string, T>(
    Object.entries(options.aliases ?? {}).map(([name, value]) => [fold(name), value]),
  );
  for (const name of names) known.set(fold(name), name);
  const expected = alternatives(names);
  return (text) => {
    const value = known.get(fold(text));
    return value === undefined ? { expected } : { value };
  };
}

/** Reads the permissions of a file in octal: `660`, `0660` or `0o660`. */
export function parseFileMode(text: string): Parsed<number> {
  if (!FILE_MODE.test(text)) return { expected: "file permissions in octal, such as 0660" };
  return { value: Number.parseInt(text.slice(-3), 8) };
}

/** Takes the name of an HTTP header. */
export function parseHeaderName(text: string): Parsed<string> {
  if (HEADER_NAME.test(text)) return { value: text };
  return { expected: "a header name of letters, digits and !#$%&'*+-.^_`|~" };
}

/** Takes the name of an environment variable. */
export function parseVariableName(text: string): Parsed<string> {
  return VARIABLE_NAME.test(text) ? { value: text } : { expected: "the name of an environment variable" };
}

/** Reads a regular expression in the syntax of Go, or of JavaScript where Go has none. */
export function parsePattern(text: string): Parsed<RegExp> {
  const read = readPattern(text);
  if ("problem" in read) return { expected: `a regular expression: ${read.problem}` };
  const { pattern, warning } = read;
  return warning === undefined ? { value: pattern } : { value: pattern, warning };
}

/** Takes 32 bytes in base64, the key of AES-256. */
export function parseAesKey(text: string): Parsed<string> {
  const expected = `${AES_KEY_BYTES} bytes in base64`;
  try {
    return Uint8Array.fromBase64(text).length === AES_KEY_BYTES ? { value: text } : { expected };
  } catch {
    return { expected };
  }
}

/** Takes a text that an HTTP header can carry as a bearer token, and that is not a placeholder for one. */
export function parseBearerToken(text: string): Parsed<string> {
  if (!TOKEN.test(text)) return { expected: "visible ASCII characters without a space" };
  if (!PLACEHOLDERS.some((placeholder) => placeholder.test(text))) return { value: text };
  return { expected: 'a random token, such as "openssl rand -hex 32" prints, instead of a placeholder' };
}

function splitItems(text: string): string[] {
  return text.split(",").map((item) => item.trim()).filter((item) => item !== "");
}

function isWithin(value: number, { min = -Infinity, max = Infinity }: Range): boolean {
  return value >= min && value <= max;
}

function rangeText<T>(range: { readonly min?: T; readonly max?: T }, write: (bound: T) => string): string {
  const { min, max } = range;
  if (min !== undefined && max !== undefined) return ` from ${write(min)} to ${write(max)}`;
  if (min !== undefined) return ` of ${write(min)} or more`;
  return max === undefined ? "" : ` of at most ${write(max)}`;
}

function alternatives(names: readonly string[]): string {
  if (names.length < 2) return names.join("");
  return `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}
