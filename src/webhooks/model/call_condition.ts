import { cachedReading } from "../../base/cached_reading.ts";
import type { JsonObject } from "../../base/exact_json.ts";
import { JsonText } from "../../base/json_text.ts";
import { conditionPaths, type ConditionProblem, conditionProblem, storedCondition } from "./condition.ts";
import { conditionHolds, templatePathReader } from "./template_condition.ts";

/** A call of a trigger, as its condition reads it. */
interface ConditionedCall {
  readonly input: JsonObject;
  /** The kind of event that the provider named. */
  readonly event: string | undefined;
  /** The headers that the trigger passes, as JSON. */
  readonly headers: string | undefined;
}

const readPath = templatePathReader(["input", "execution"], ({ root, keys: [name, header, ...more] }) => {
  if (root === "input") return undefined;
  const isHeader = name === "headers" && header !== undefined;
  if (isHeader && header !== header.toLowerCase()) {
    return "the names of 'execution.headers' are in lower case";
  }
  if (more.length === 0 && (isHeader || name === "event" && header === undefined)) return undefined;
  return "before an execution starts, only 'execution.event' and 'execution.headers.NAME' are known of it";
});
const conditionOf = cachedReading((json) => storedCondition(json, readPath));

/** The problem of the condition of a trigger such as `{"input.action": ["opened"]}`; undefined if it is valid. */
export function callConditionProblem(condition: JsonObject): ConditionProblem | undefined {
  return conditionProblem(condition, readPath);
}

/** The headers that the condition with this JSON reads. */
export function conditionHeaders(json: string): readonly string[] {
  return conditionPaths(conditionOf(json)).flatMap(({ root, keys: [name, header = ""] }) => {
    return root === "execution" && name === "headers" ? [header] : [];
  });
}

/** Returns whether the condition with this JSON holds for a call. */
export function callConditionHolds(json: string, { input, event, headers }: ConditionedCall): boolean {
  const execution = {
    ...(event === undefined ? {} : { event }),
    ...(headers === undefined ? {} : { headers: new JsonText(headers) }),
  };
  const scope = { read: (root: string) => root === "input" ? input : execution };
  return conditionHolds(conditionOf(json), scope);
}
