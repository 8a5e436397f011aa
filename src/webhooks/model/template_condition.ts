import { type JsonValue, parseJson } from "../../base/exact_json.ts";
import { JsonText } from "../../base/json_text.ts";
import { type Condition, MAX_CONDITION_TEXT, mismatchOf, type ReadPath } from "./condition.ts";
import { parsePath, type TemplatePath, type TemplateScope, valueAt } from "./template.ts";

/** A condition on what templates read. */
export type TemplateCondition = Condition<TemplatePath>;

/** Longest text of a value that is compared; JSON takes up to six characters for one. */
const MAX_COMPARED = 6 * MAX_CONDITION_TEXT + 2;

/**
 * Reads paths of templates; `problemOf` says what is wrong with one of good syntax. None is of `env`: environment variables
 * may be secrets, and a state would show what they are equal to.
 */
export function templatePathReader(
  roots: readonly ("input" | "steps" | "execution")[],
  problemOf: (path: TemplatePath) => string | undefined,
): ReadPath<TemplatePath> {
  return (text) => {
    const path = parsePath(text, roots);
    if (typeof path === "string") return { problem: path };
    const problem = problemOf(path);
    return problem === undefined ? { path } : { problem };
  };
}

/** Returns whether a condition holds for what templates read. */
export function conditionHolds(condition: TemplateCondition, scope: TemplateScope): boolean {
  return mismatchOf(condition, (path) => comparedValue(valueAt(path, scope))) === undefined;
}

/** A value as conditions compare it; those that no condition can name are not parsed. */
function comparedValue(value: JsonValue | undefined): JsonValue | undefined {
  if (!(value instanceof JsonText)) return value;
  return value.kind === "scalar" && value.text.length <= MAX_COMPARED ? parseJson(value.text) : [];
}
