import { backoffMs } from "../../base/backoff.ts";
import { byteLength, stringifyJson } from "../../base/exact_json.ts";
import { unlessAborted, withTimeout } from "../../base/wait.ts";
import { descriptorProblem, type LimitDecision } from "../model/limit_call.ts";
import { renderText, renderValue, TemplateError } from "../model/template.ts";
import type { LimitStep, WorkflowStep } from "../model/workflow.ts";
import { conditionHolds } from "../model/template_condition.ts";
import type { StepContext, StepOutcome } from "./step_context.ts";

/** Maximum size of the result of a step as JSON, in bytes. */
const MAX_RESULT_BYTES = 1_048_576 + 65_536;
/** The timeout of a decision. */
const DECISION_MS = 10_000;
/** The wait after a decision without the end of its limit. */
const DEFAULT_RESET_MS = 1_000;
/** Failed decisions are retried until the timeout of the execution. */
const FAILED_BACKOFF = { firstMs: 1_000, longestMs: 60_000 };

/** Makes one attempt of a step, unless its condition does not hold. */
export async function runStep(step: WorkflowStep, context: StepContext): Promise<StepOutcome> {
  const { condition } = step;
  if (condition !== undefined && !conditionHolds(condition, context.scope)) return { kind: "skipped" };
  try {
    return bounded(await attempted(step, context));
  } catch (error) {
    if (error instanceof TemplateError) return { kind: "failed", error: error.message };
    throw error;
  }
}

async function attempted(step: WorkflowStep, context: StepContext): Promise<StepOutcome> {
  switch (step.kind) {
    case "request": {
      // Its client is loaded by the first step that sends.
      const { sendRequest } = await import("./request_step.ts");
      return await sendRequest(step, context);
    }
    case "limit":
      return await askLimit(step, context);
    case "set":
      return { kind: "done", result: stringifyJson(renderValue(step.value, context.scope)) };
  }
}

/** Asks the decision service; over the limit the step waits until the limit ends, or fails. */
async function askLimit(step: LimitStep, context: StepContext): Promise<StepOutcome> {
  const { scope, clock, signal } = context;
  const descriptors = step.descriptors.map((entries) =>
    entries.map(([key, template]) => [key, renderText(template, scope)] as const)
  );
  const problem = descriptors.map(descriptorProblem).find((one) => one !== undefined);
  if (problem !== undefined) return { kind: "failed", error: `limit_value_too_long: ${problem}` };
  let decision: LimitDecision;
  try {
    const overdue = () => new Error("no answer in time");
    const answer = withTimeout(context.limit(step.domain, descriptors), DECISION_MS, clock, overdue);
    decision = await unlessAborted(answer, signal);
  } catch {
    if (signal.aborted) return { kind: "interrupted" };
    const dueAt = clock.now() + Math.ceil(backoffMs(context.attempt, context.random(), FAILED_BACKOFF));
    return { kind: "again", dueAt, error: "the limit could not be decided on" };
  }
  const { code, resetMs } = decision;
  if (code === "OK") {
    return { kind: "done", result: stringifyJson({ code, ...(resetMs === undefined ? {} : { resetMs }) }) };
  }
  const waitMs = Math.max(1, Math.ceil(resetMs ?? DEFAULT_RESET_MS));
  const error = `over the limit of domain "${step.domain}" for another ${Math.ceil(waitMs / 1_000)} s`;
  return step.onOver === "wait"
    ? { kind: "again", dueAt: clock.now() + waitMs, error }
    : { kind: "failed", error };
}

/** Limits what is stored, read by later steps and sent in the event. */
function bounded(outcome: StepOutcome): StepOutcome {
  if (outcome.kind !== "done" || outcome.result.length * 3 <= MAX_RESULT_BYTES) return outcome;
  // A text has at least as many bytes as code units, so a long one is not encoded to be measured.
  const isShort = outcome.result.length <= MAX_RESULT_BYTES;
  if (isShort && byteLength(outcome.result) <= MAX_RESULT_BYTES) return outcome;
  return { kind: "failed", error: `its result has more than ${MAX_RESULT_BYTES} bytes` };
}
