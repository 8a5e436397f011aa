import type { YamlScalar, YamlValue } from "./value.ts";

/** The type of a scalar in the YAML core schema, and `date`, which JSON does not have. */
type ScalarType = "null" | "boolean" | "number" | "date" | "text";

const NULL = /^(?:|~|null|Null|NULL)$/;
const BOOLEAN = /^(?:true|True|TRUE|false|False|FALSE)$/;
const INTEGER = /^[-+]?[0-9]+$|^0o[0-7]+$|^0x[0-9a-fA-F]+$|^0b[01]+$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const NOT_FINITE = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;
/** Integers in YAML 1.1: with a sign and with octal by a leading zero. */
const WHOLE = /^[-+]?(?:0|[1-9][0-9]*|0[0-7]+|0[oO][0-7]+|0[xX][0-9a-fA-F]+|0[bB][01]+)$/;
const MIN_WHOLE = -(2n ** 63n);
const MAX_WHOLE = 2n ** 63n - 1n;
const DATE = /^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?$/;
const YES = /^(?:y|Y|yes|Yes|YES|on|On|ON|true|True|TRUE)$/;
const NO = /^(?:n|N|no|No|NO|off|Off|OFF|false|False|FALSE)$/;
const PREFIXED = /^0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)$/;
const DECIMAL = /^(?:0|[1-9][0-9]*)$/;
const LEADING_ZERO = /^0[0-9]/;

/** The type of a scalar; quoted ones are text. */
export function scalarType(scalar: YamlScalar): ScalarType {
  const text = scalar.text;
  if (scalar.quoted) return "text";
  if (NULL.test(text)) return "null";
  if (BOOLEAN.test(text)) return "boolean";
  if (INTEGER.test(text) || FLOAT.test(text) || NOT_FINITE.test(text)) return "number";
  return DATE.test(text) ? "date" : "text";
}

/** True when the scalar is empty or `null`. */
export function isNull(scalar: YamlScalar): boolean {
  return !scalar.quoted && NULL.test(scalar.text);
}

/** A flag, including `yes` and `off`, if it is one. */
export function flagOf(scalar: YamlScalar): boolean | undefined {
  if (scalar.quoted) return undefined;
  if (YES.test(scalar.text)) return true;
  return NO.test(scalar.text) ? false : undefined;
}

/** A non-negative integer, if it is one; a leading zero is not allowed, because it is octal in YAML 1.1 only. */
export function countOf(scalar: YamlScalar): number | undefined {
  const digits = digitsOf(scalar).replace(/^\+|^-(?=0$)/, "");
  return DECIMAL.test(digits) || PREFIXED.test(digits) ? Number(digits) : undefined;
}

/** The text of a number without the `_` between its digits. */
function digitsOf({ text, quoted }: YamlScalar): string {
  return quoted || text.startsWith("_") ? "" : text.replaceAll("_", "");
}

/** True when the scalar is a number but no 64-bit integer, which is unlikely to be meant as a text. */
export function isOddNumber(scalar: YamlScalar): boolean {
  if (scalar.quoted || !/^[-+.0-9]/.test(scalar.text)) return false;
  const text = scalar.text.replaceAll("_", "");
  if (!WHOLE.test(text)) return FLOAT.test(text) || NOT_FINITE.test(text);
  const whole = wholeOf(text);
  return whole < MIN_WHOLE || whole > MAX_WHOLE;
}

function wholeOf(text: string): bigint {
  const digits = text.replace(/^[-+]/, "");
  const whole = BigInt(/^0[0-7]/.test(digits) ? `0o${digits}` : digits);
  return text.startsWith("-") ? -whole : whole;
}

/** A finite number, if it is one; without leading zeros, as `countOf`. */
export function numberOf(scalar: YamlScalar): number | undefined {
  const text = digitsOf(scalar);
  const digits = text.replace(/^[-+]/, "");
  const isNumber = PREFIXED.test(digits) || (FLOAT.test(text) && !LEADING_ZERO.test(digits));
  const value = text.startsWith("-") ? -Number(digits) : Number(digits);
  return isNumber && Number.isFinite(value) ? value : undefined;
}

/** A text in one line, truncated if it is long. */
export function shown(text: string): string {
  const line = text.replaceAll("\n", "\\n");
  return line.length > 60 ? `${line.slice(0, 60)}…` : line;
}

/** A value in a message. */
export function described(value: YamlValue): string {
  if (value.kind !== "scalar") return `a ${value.kind}`;
  if (isNull(value)) return "nothing";
  return value.quoted ? `the quoted text "${shown(value.text)}"` : `'${shown(value.text)}'`;
}
