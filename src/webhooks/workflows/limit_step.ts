import { backoffMs } from "../../base/backoff.ts";
import { aborted, answeredWithin } from "../../base/wait.ts";
import { stringifyJson } from "../../base/exact_json.ts";
import { renderText } from "../model/template.ts";
import { descriptorProblem, type LimitDecision } from "../model/limit_call.ts";
import type { LimitStep } from "../model/workflow.ts";
import type { StepContext, StepOutcome } from "./step_context.ts";

/** How long a decision may take. */
const DECISION_MS = 10_000;
/** The wait where a decision does not say when its limit ends. */
const DEFAULT_RESET_MS = 1_000;
/** While nobody can decide, it is asked again until the time of the execution is over. */
const FAILED_BACKOFF = { firstMs: 1_000, longestMs: 60_000 };

/** Asks the decision service; over the limit it waits until the limit ends, or fails. */
export async function askLimit(step: LimitStep, context: StepContext): Promise<StepOutcome> {
  const { scope, clock, signal } = context;
  const descriptors = step.descriptors.map((entries) =>
    Object.fromEntries(entries.map(([key, template]) => [key, renderText(template, scope)]))
  );
  const problem = descriptors.map(descriptorProblem).find((one) => one !== undefined);
  if (problem !== undefined) return { kind: "failed", error: `limit_value_too_long: ${problem}` };
  let decision: LimitDecision | void;
  try {
    const overdue = () => new Error("no answer in time");
    const answer = answeredWithin(context.limit(step.domain, descriptors), DECISION_MS, clock, overdue);
    decision = await Promise.race([answer, aborted(signal)]);
  } catch {
    const dueAt = clock.now() + Math.ceil(backoffMs(context.attempt, context.random(), FAILED_BACKOFF));
    return { kind: "again", dueAt, error: "the limit could not be decided on" };
  }
  if (decision === undefined) return { kind: "interrupted" };
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
