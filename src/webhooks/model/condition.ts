import {
  byteLength,
  isJsonObject,
  isRawNumber,
  type JsonObject,
  type JsonValue,
  parseJson,
  stringifyJson,
} from "../../base/exact_json.ts";

/** Most paths of a condition, those inside of `any` and `all` included. */
export const MAX_CONDITION_PATHS = 10;
/** Most values of a path, and most conditions of `any` or `all`. */
export const MAX_CONDITION_VALUES = 50;
/** Longest path, and longest value as JSON. */
export const MAX_CONDITION_TEXT = 256;
/** Longest condition of a record as JSON, in bytes: every event reads the filters of all endpoints. */
export const MAX_CONDITION_BYTES = 8_192;
/** The problem of a path that is no list of names. */
export const PATH_PROBLEM =
  `expected paths of at most ${MAX_CONDITION_TEXT} characters, names joined by dots`;
/** Most groups inside of each other. */
const MAX_DEPTH = 4;

const MAX_SHOWN_LENGTH = 60;
const MAX_SHOWN_VALUES = 5;
// deno-lint-ignore no-control-regex
const CONTROLS = /[\0-\x1f\x7f-\x9f]/;

/** The comparisons of a path. */
const OPERATORS = ["equal", "notEqual", "in", "exists", "greater", "less"] as const;
type Operator = typeof OPERATORS[number];
const GROUPS = ["any", "all"] as const;

/** One comparison of the value at a path. */
interface Comparison {
  holds(value: JsonValue | undefined): boolean;
  /** The values that it expects, such as `"pro" or "team"`. */
  readonly expected: string;
}

/** The value at a path, which has to pass all comparisons. `P` is the path as it is read. */
interface Test<P> {
  readonly text: string;
  readonly path: P;
  readonly comparisons: readonly Comparison[];
}

/** Conditions of which one or all have to hold. */
interface Group<P> {
  readonly any: boolean;
  readonly conditions: readonly Condition<P>[];
}

/** Tests and groups, which all have to hold. */
export type Condition<P> = readonly (Test<P> | Group<P>)[];

/** Why a condition does not hold: a comparison that fails, with the value, or a group without one that holds. */
type Mismatch =
  | { readonly path: string; readonly value: JsonValue | undefined; readonly expected: string }
  | { readonly path: "any"; readonly conditions: number };

/** The problem of a condition: the reason, and the path that it concerns. */
export interface ConditionProblem {
  readonly path?: string | undefined;
  readonly reason: string;
}

/** The problem of a condition that a record stores; undefined if it is valid. */
export function conditionProblem<P>(object: JsonObject, readPath: ReadPath<P>): ConditionProblem | undefined {
  const { problem } = readCondition(object, readPath);
  if (problem !== undefined || byteLength(stringifyJson(object)) <= MAX_CONDITION_BYTES) return problem;
  return { reason: `expected at most ${MAX_CONDITION_BYTES} bytes` };
}

/** The condition with this JSON, which was valid when it was stored. */
export function storedCondition<P>(json: string, readPath: ReadPath<P>): Condition<P> {
  const { condition, problem } = readCondition(parseJson(json) as JsonObject, readPath);
  if (condition === undefined) throw new Error(`Cannot read a condition: ${problem.reason}`);
  return condition;
}

/** The paths that a condition reads. */
export function conditionPaths<P>(condition: Condition<P>): readonly P[] {
  return condition.flatMap((part) => {
    return "conditions" in part ? part.conditions.flatMap(conditionPaths) : [part.path];
  });
}

/** A path as it is read, or what is wrong with it. */
export type ReadPath<P> = (text: string) => { readonly path: P } | { readonly problem: string };

/** A condition that was read, or its first problem. */
type ReadCondition<P> =
  | { readonly condition: Condition<P>; readonly problem?: undefined }
  | { readonly condition?: undefined; readonly problem: ConditionProblem };

/** Reads a condition such as `{"customer.plan": ["pro", "team"], "total": {"greater": 100}}`. */
export function readCondition<P>(object: JsonObject, readPath: ReadPath<P>): ReadCondition<P> {
  const reader = new ConditionReader(readPath);
  const condition = reader.read(object, 0);
  return reader.problem === undefined ? { condition } : { problem: reader.problem };
}

class ConditionReader<P> {
  /** The first one. */
  problem: ConditionProblem | undefined;
  readonly #readPath: ReadPath<P>;
  #paths = 0;

  constructor(readPath: ReadPath<P>) {
    this.#readPath = readPath;
  }

  read(object: JsonObject, depth: number): Condition<P> {
    const entries = Object.entries(object);
    if (entries.length === 0) this.#refuse(undefined, COUNT_PROBLEM);
    return entries.flatMap(([text, value]) => {
      if (this.problem !== undefined) return [];
      const group = GROUPS.find((word) => word === text);
      // A list of values is that of a path with this name.
      return group !== undefined && isGroup(value)
        ? this.#group(group, value, depth)
        : this.#test(text, value);
    });
  }

  #group(word: typeof GROUPS[number], list: readonly JsonObject[], depth: number): Condition<P> {
    if (depth >= MAX_DEPTH || list.length > MAX_CONDITION_VALUES) {
      const most = `at most ${MAX_CONDITION_VALUES} conditions, nested at most ${MAX_DEPTH} deep`;
      this.#refuse(word, `expected ${most}`);
      return [];
    }
    return [{ any: word === "any", conditions: list.map((object) => this.read(object, depth + 1)) }];
  }

  #test(text: string, value: JsonValue): Condition<P> {
    if (++this.#paths > MAX_CONDITION_PATHS) this.#refuse(undefined, COUNT_PROBLEM);
    const read = text.length > MAX_CONDITION_TEXT || CONTROLS.test(text)
      ? { problem: PATH_PROBLEM }
      : this.#readPath(text);
    if ("problem" in read) {
      this.#refuse(undefined, read.problem);
      return [];
    }
    return [{ text, path: read.path, comparisons: this.#comparisons(text, value) }];
  }

  #comparisons(path: string, value: JsonValue): readonly Comparison[] {
    if (Array.isArray(value)) return this.#comparison(path, "in", value);
    const entries = isJsonObject(value) ? Object.entries(value) : [];
    if (entries.length === 0) {
      this.#refuse(path, `expected ${VALUES}, or an object of ${OPERATORS.join(", ")}`);
    }
    return entries.flatMap(([word, operand]) => {
      const operator = OPERATORS.find((known) => known === word);
      if (operator !== undefined) return this.#comparison(path, operator, operand);
      this.#refuse(path, `'${shortened(word)}' is no operator; expected ${OPERATORS.join(", ")}`);
      return [];
    });
  }

  #comparison(path: string, operator: Operator, operand: JsonValue): readonly Comparison[] {
    const reason = operandProblem(operator, operand);
    if (reason === undefined) return [comparisonOf(operator, operand)];
    this.#refuse(path, reason);
    return [];
  }

  #refuse(path: string | undefined, reason: string): void {
    this.problem ??= { path, reason };
  }
}

const VALUES = `a list of 1 to ${MAX_CONDITION_VALUES} values`;
const COUNT_PROBLEM = `expected 1 to ${MAX_CONDITION_PATHS} paths with their values`;

function isGroup(value: JsonValue): value is readonly JsonObject[] {
  return Array.isArray(value) && value.length > 0 && value.every((item: JsonValue) => isJsonObject(item));
}

function operandProblem(operator: Operator, operand: JsonValue): string | undefined {
  switch (operator) {
    case "in": {
      const values = Array.isArray(operand) ? operand as readonly JsonValue[] : [];
      if (values.length === 0 || values.length > MAX_CONDITION_VALUES) return `expected ${VALUES}`;
      return values.every(isValue) ? undefined : `expected ${PLAIN}`;
    }
    case "exists":
      return typeof operand === "boolean" ? undefined : "expected true or false for 'exists'";
    case "equal":
    case "notEqual":
      return isValue(operand) ? undefined : `expected ${PLAIN} for '${operator}'`;
    case "greater":
    case "less":
      return isNumber(operand) && isValue(operand) ? undefined : `expected a number for '${operator}'`;
  }
}

const PLAIN = `texts, numbers, true, false or null, of at most ${MAX_CONDITION_TEXT} characters`;

function isValue(value: JsonValue): boolean {
  const isPlain = typeof value !== "object" || value === null || isRawNumber(value);
  if (!isPlain || (typeof value === "string" && CONTROLS.test(value))) return false;
  return stringifyJson(value).length <= MAX_CONDITION_TEXT;
}

/** The comparison by an operator with a valid operand. Numbers are equal by their digits. */
function comparisonOf(operator: Operator, operand: JsonValue): Comparison {
  switch (operator) {
    case "in": {
      const values = new Set((operand as readonly JsonValue[]).map(stringifyJson));
      return {
        holds: (value) => isComparable(value) && values.has(stringifyJson(value)),
        expected: shownValues(values),
      };
    }
    case "exists":
      return {
        holds: (value) => (value !== undefined) === operand,
        expected: operand === true ? "a value" : "no value",
      };
    case "equal":
      return comparisonOf("in", [operand]);
    case "notEqual": {
      const { holds, expected } = comparisonOf("equal", operand);
      return { holds: (value) => !holds(value), expected: `anything but ${expected}` };
    }
    case "greater":
    case "less": {
      const sign = operator === "greater" ? 1 : -1;
      const holds = (value: JsonValue | undefined) => isNumber(value) && sign * ordered(value, operand) > 0;
      return { holds, expected: `a number ${operator} than ${shortened(stringifyJson(operand))}` };
    }
  }
}

/** No condition has other values: these may have a megabyte each, which every condition would write as JSON. */
function isComparable(value: JsonValue | undefined): value is JsonValue {
  if (typeof value === "string") return value.length <= MAX_CONDITION_TEXT;
  return value !== undefined && (typeof value !== "object" || value === null || isRawNumber(value));
}

function isNumber(value: JsonValue | undefined): value is Exclude<JsonValue, null> {
  return typeof value === "number" || isRawNumber(value);
}

const WHOLE = /^-?[0-9]+$/;

/** Below, at or above 0 as the first number is less than, equal to or greater than the second; whole ones to the digit. */
function ordered(first: JsonValue, second: JsonValue): number {
  const [a, b] = [stringifyJson(first), stringifyJson(second)];
  if (WHOLE.test(a) && WHOLE.test(b) && a.length <= MAX_CONDITION_TEXT) {
    const difference = BigInt(a) - BigInt(b);
    return difference > 0n ? 1 : difference < 0n ? -1 : 0;
  }
  const [x, y] = [Number(a), Number(b)];
  return x > y ? 1 : x < y ? -1 : 0;
}

/** Why a condition does not hold; nothing where it does. */
export function mismatchOf<P>(
  condition: Condition<P>,
  valueAt: (path: P) => JsonValue | undefined,
): Mismatch | undefined {
  for (const part of condition) {
    const mismatch = "conditions" in part ? groupMismatch(part, valueAt) : testMismatch(part, valueAt);
    if (mismatch !== undefined) return mismatch;
  }
  return undefined;
}

function testMismatch<P>(
  { text, path, comparisons }: Test<P>,
  valueAt: (path: P) => JsonValue | undefined,
): Mismatch | undefined {
  const value = valueAt(path);
  const failed = comparisons.find(({ holds }) => !holds(value));
  return failed === undefined ? undefined : { path: text, value, expected: failed.expected };
}

function groupMismatch<P>(
  { any, conditions }: Group<P>,
  valueAt: (path: P) => JsonValue | undefined,
): Mismatch | undefined {
  const mismatches = conditions.map((condition) => mismatchOf(condition, valueAt));
  if (!any) return mismatches.find((mismatch) => mismatch !== undefined);
  return mismatches.includes(undefined) ? undefined : { path: "any", conditions: conditions.length };
}

/** A mismatch in one line. `of` is the value that paths are read in, and `whose` says what expects another value. */
export function mismatchText(
  mismatch: Mismatch,
  { of, whose }: { readonly of: string; readonly whose: string },
): string {
  if ("conditions" in mismatch) return `none of the ${mismatch.conditions} conditions of any holds`;
  const { path, value, expected } = mismatch;
  const state = value === undefined ? `is missing in ${of}` : `is ${shortened(stringifyJson(value))}`;
  return `${path} ${state}; ${whose} expects ${expected}`;
}

function shownValues(values: ReadonlySet<string>): string {
  const shown = [...values].slice(0, MAX_SHOWN_VALUES).map(shortened);
  const further = values.size - shown.length;
  return `${shown.join(" or ")}${further > 0 ? ` or one of ${further} further values` : ""}`;
}

function shortened(text: string): string {
  return text.length > MAX_SHOWN_LENGTH ? `${text.slice(0, MAX_SHOWN_LENGTH)}…` : text;
}
