import { byteLength, type JsonObject, parseJson, stringifyJson } from "../../base/exact_json.ts";
import { type ConditionProblem, mismatchOf, type ReadCondition, readCondition } from "./condition.ts";
import { parsePath, type TemplatePath, valueAt } from "./template.ts";

/** Longest condition as JSON, in bytes. */
const MAX_BYTES = 8_192;
const ROOTS = ["input", "execution"] as const;

/** A call of a trigger, as its condition reads it. */
interface ConditionedCall {
  readonly input: JsonObject;
  /** The kind of event that the provider named. */
  readonly event: string | undefined;
}

/** The problem of the condition of a trigger such as `{"input.action": ["opened"]}`; undefined if it is valid. */
export function callConditionProblem(condition: JsonObject): ConditionProblem | undefined {
  const { problem } = read(condition);
  if (problem !== undefined || byteLength(stringifyJson(condition)) <= MAX_BYTES) return problem;
  return { reason: `expected at most ${MAX_BYTES} bytes` };
}

function read(condition: JsonObject): ReadCondition<TemplatePath> {
  return readCondition(condition, (text) => {
    const path = parsePath(text, ROOTS);
    if (typeof path === "string") return { problem: path };
    const isKnown = path.root === "input" || path.keys.join(".") === "event";
    return isKnown
      ? { path }
      : { problem: "before an execution starts, only 'execution.event' is known of it" };
  });
}

/** Returns whether the condition with this JSON holds for a call. */
export function callConditionHolds(json: string, { input, event }: ConditionedCall): boolean {
  const { condition, problem } = read(parseJson(json) as JsonObject);
  if (condition === undefined) throw new Error(`Cannot read a condition: ${problem.reason}`);
  const execution = event === undefined ? {} : { event };
  const scope = { read: (root: string) => root === "input" ? input : execution };
  return mismatchOf(condition, (path) => valueAt(path, scope)) === undefined;
}
