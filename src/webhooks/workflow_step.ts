import type { Clock } from "../base/clock.ts";
import type { Fetch } from "../rest/mod.ts";
import { byteLength, stringifyJson } from "./json_text.ts";
import { renderValue, TemplateError, type TemplateScope } from "./template.ts";
import type { LimitCall } from "./trigger_limit.ts";
import type { SetStep, WorkflowStep } from "./workflow.ts";
import { askLimit } from "./workflow_step_limit.ts";

/** How one attempt of a step went. */
export type StepOutcome =
  /** Its result as JSON. */
  | { readonly kind: "done"; readonly result: string }
  /** For people; holds nothing of the request. */
  | { readonly kind: "failed"; readonly error: string }
  /** It is tried again at that time. */
  | { readonly kind: "again"; readonly dueAt: number; readonly error: string }
  /** It was ended by the signal, and nothing is known of it. */
  | { readonly kind: "interrupted" };

/** What a step is carried out with. */
export interface StepContext {
  readonly executionId: string;
  readonly scope: TemplateScope;
  /** The number of this attempt, from 1. */
  readonly attempt: number;
  /** How long the execution may still take. */
  readonly remainingMs: number;
  /** Ends the attempt. */
  readonly signal: AbortSignal;
  readonly fetch: Fetch;
  readonly limit: LimitCall;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
}

/** How many bytes the result of a step may have as JSON. */
export const MAX_RESULT_BYTES = 1_048_576 + 65_536;

/** Makes one attempt of a step. */
export async function runStep(step: WorkflowStep, context: StepContext): Promise<StepOutcome> {
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
      const { sendRequest } = await import("./workflow_step_request.ts");
      return await sendRequest(step, context);
    }
    case "limit":
      return await askLimit(step, context);
    case "set":
      return madeValue(step, context);
  }
}

function madeValue({ value }: SetStep, { scope }: StepContext): StepOutcome {
  return { kind: "done", result: stringifyJson(renderValue(value, scope)) };
}

/** What is stored, read by later steps and told in the event is bounded, whatever it is made of. */
function bounded(outcome: StepOutcome): StepOutcome {
  if (outcome.kind !== "done" || outcome.result.length * 3 <= MAX_RESULT_BYTES) return outcome;
  // No text has fewer bytes than it has code units: a long one is not encoded to be measured.
  const isShort = outcome.result.length <= MAX_RESULT_BYTES;
  if (isShort && byteLength(outcome.result) <= MAX_RESULT_BYTES) return outcome;
  return { kind: "failed", error: `its result has more than ${MAX_RESULT_BYTES} bytes` };
}
