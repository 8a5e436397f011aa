import type { JsonObject, JsonValue } from "../../base/exact_json.ts";
import { readCondition } from "../model/condition.ts";
import type { TemplatePath, ValueTemplate } from "../model/template.ts";
import { type TemplateCondition, templatePathReader } from "../model/template_condition.ts";
import type { WorkflowFields } from "./fields.ts";
import { readValue, type ValueReading } from "./value.ts";

/** The problem of a path that reads what is not there; undefined if there is none. */
type PathProblem = (path: TemplatePath) => string | undefined;

/** Reads the condition of a step; nothing where there is none, or an invalid one, which is logged. */
export function readStepCondition(
  fields: WorkflowFields,
  reading: ValueReading,
  pathProblem: PathProblem,
): TemplateCondition | undefined {
  const mapping = fields.mapping("if");
  if (mapping === undefined) return undefined;
  const before = reading.log.problems().length;
  const value = plainOf(readValue(mapping, fields.pathOf("if"), reading));
  if (value === undefined) {
    fields.error("if", "a condition cannot contain a template; write a path as the key, and a fixed value");
  }
  // The problems of the mapping itself are logged.
  if (value === undefined || reading.log.problems().length > before) return undefined;
  const readPath = templatePathReader(["input", "steps", "execution"], (path) => {
    const problem = pathProblem(path);
    return problem === undefined ? undefined : `the path '${path.text}' ${problem}`;
  });
  const { condition, problem } = readCondition(value as JsonObject, readPath);
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
