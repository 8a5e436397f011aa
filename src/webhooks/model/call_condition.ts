import type { JsonObject } from "../../base/exact_json.ts";
import { type ConditionProblem, conditionProblem, storedCondition } from "./condition.ts";
import { conditionHolds, templatePathReader } from "./template_condition.ts";

/** A call of a trigger, as its condition reads it. */
interface ConditionedCall {
  readonly input: JsonObject;
  /** The kind of event that the provider named. */
  readonly event: string | undefined;
}

const readPath = templatePathReader(["input", "execution"], ({ root, keys }) => {
  if (root === "input" || keys.join(".") === "event") return undefined;
  return "before an execution starts, only 'execution.event' is known of it";
});

/** The problem of the condition of a trigger such as `{"input.action": ["opened"]}`; undefined if it is valid. */
export function callConditionProblem(condition: JsonObject): ConditionProblem | undefined {
  return conditionProblem(condition, readPath);
}

/** Returns whether the condition with this JSON holds for a call. */
export function callConditionHolds(json: string, { input, event }: ConditionedCall): boolean {
  const execution = event === undefined ? {} : { event };
  const scope = { read: (root: string) => root === "input" ? input : execution };
  return conditionHolds(storedCondition(json, readPath), scope);
}
