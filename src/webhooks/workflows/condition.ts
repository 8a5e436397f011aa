import { type JsonObject, type JsonValue, parseJson } from "../../base/exact_json.ts";
import { JsonText } from "../../base/json_text.ts";
import { type Condition, mismatchOf, readCondition } from "../model/condition.ts";
import {
  parsePath,
  type TemplatePath,
  type TemplateScope,
  valueAt,
  type ValueTemplate,
} from "../model/template.ts";
import type { WorkflowFields } from "./fields.ts";
import { readValue, type ValueReading } from "./value.ts";

/** Environment variables may be secrets, and the state of a step would show what they are equal to. */
const ROOTS = ["input", "steps", "execution"] as const;
/** Longest text of a value that is compared; JSON takes up to six characters for one. */
const MAX_COMPARED = 6 * 256 + 2;

/** The problem of a path that reads what is not there; undefined if there is none. */
type PathProblem = (path: TemplatePath) => string | undefined;

/** Reads the condition of a step; nothing where there is none, or an invalid one, which is logged. */
export function readStepCondition(
  fields: WorkflowFields,
  reading: ValueReading,
  pathProblem: PathProblem,
): Condition<TemplatePath> | undefined {
  const mapping = fields.mapping("if");
  if (mapping === undefined) return undefined;
  const before = reading.log.problems().length;
  const value = plainOf(readValue(mapping, fields.pathOf("if"), reading));
  if (value === undefined) {
    fields.error("if", "a condition cannot contain a template; write a path as the key, and a fixed value");
  }
  // The problems of the mapping itself are logged.
  if (value === undefined || reading.log.problems().length > before) return undefined;
  const { condition, problem } = readCondition(value as JsonObject, (text) => {
    const path = parsePath(text, ROOTS);
    const problem = typeof path === "string" ? path : pathProblem(path);
    if (typeof path !== "string" && problem === undefined) return { path };
    return { problem: typeof path === "string" ? path : `the path '${text}' ${problem}` };
  });
  if (problem !== undefined) {
    const { path, reason } = problem;
    fields.error("if", path === undefined ? reason : `'${path}': ${reason}`);
  }
  return condition;
}

/** The JSON value of a template without templates; undefined for one that has some. */
function plainOf(template: ValueTemplate): JsonValue | undefined {
  switch (template.kind) {
    case "value":
      return template.value;
    case "text":
      return undefined;
    case "list": {
      const items = template.items.map(plainOf);
      const plain = items.filter((item) => item !== undefined);
      return plain.length < items.length ? undefined : plain;
    }
    case "object": {
      const entries = template.entries.map(([key, value]) => [key, plainOf(value)] as const);
      return entries.some(([, value]) => value === undefined)
        ? undefined
        : Object.fromEntries(entries) as JsonObject;
    }
  }
}

/** Returns whether a condition holds for what templates read. */
export function conditionHolds(condition: Condition<TemplatePath>, scope: TemplateScope): boolean {
  return mismatchOf(condition, (path) => comparedValue(valueAt(path, scope))) === undefined;
}

/** A value as conditions compare it; those that no condition can name are not parsed. */
function comparedValue(value: JsonValue | undefined): JsonValue | undefined {
  if (!(value instanceof JsonText)) return value;
  return value.kind === "scalar" && value.text.length <= MAX_COMPARED ? parseJson(value.text) : [];
}
