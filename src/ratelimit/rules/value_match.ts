import { byteLength } from "../../base/exact_json.ts";
import { type Re2Matcher, re2Matcher } from "../../base/re2_matcher.ts";
import type { RuleSource } from "../rule_source.ts";
import { hashedText } from "./key_entries.ts";

/** The most expressions for one key in one list of rules: a value is tried against all of them. */
export const MAX_EXPRESSIONS = 16;
/** The most steps of these expressions together, which bound the time for a value. */
export const MAX_EXPRESSION_STEPS = 1_000;
/** A longer value matches no expression. */
const MAX_MATCHED_BYTES = 1_024;
/** A longer text of a rule is its start and its SHA-256 in names. */
const MAX_TEXT_BYTES = 256;
const MAX_BYTES_PER_UNIT = 3;

/** The value of a rule in names and messages; empty for any value. */
export function valueText({ value, match }: Pick<RuleSource, "value" | "match">): string {
  if (match === undefined) return value;
  const text = "regex" in match ? `regex(${match.regex})` : `in(${match.in.join(",")})`;
  return byteLength(text) > MAX_TEXT_BYTES ? hashedText(text) : text;
}

/**
 * The shared level at the end of a path in the name of its counter. No value of a request has this text in a key, and no
 * other rule has it either, whatever the separators in its texts.
 */
export function sharedText(domain: string, path: readonly RuleSourcePart[]): string {
  const parts = path.map(({ key, value, match }) => [key, match ?? value]);
  return hashedText(path.at(-1)?.value ?? "", JSON.stringify([domain, ...parts]));
}

type RuleSourcePart = Pick<RuleSource, "key" | "value" | "match">;

/** Rules by expressions, in their order. */
export class ExpressionList<T> {
  readonly #items: { readonly regex: string; readonly target: T; matcher: Re2Matcher | undefined }[] = [];

  /** Adds a valid expression, which is compiled when it is first needed. */
  add(regex: string, target: T): void {
    this.#items.push({ regex, target, matcher: undefined });
  }

  /** The first rule whose expression is found in the value. */
  find(value: string): T | undefined {
    if (isTooLongForExpressions(value)) return undefined;
    for (const item of this.#items) {
      item.matcher ??= matcherOf(item.regex);
      if (item.matcher?.matches(value) === true) return item.target;
    }
    return undefined;
  }
}

/** True if the expression is found in the value. */
export function matchesExpression(regex: string, value: string): boolean {
  return !isTooLongForExpressions(value) && matcherOf(regex)?.matches(value) === true;
}

function matcherOf(regex: string): Re2Matcher | undefined {
  const read = re2Matcher(regex, MAX_EXPRESSION_STEPS);
  return "matcher" in read ? read.matcher : undefined;
}

/** True if no expression matches the value, whatever it is. */
export function isTooLongForExpressions(value: string): boolean {
  return value.length * MAX_BYTES_PER_UNIT > MAX_MATCHED_BYTES &&
    (value.length > MAX_MATCHED_BYTES || byteLength(value) > MAX_MATCHED_BYTES);
}
