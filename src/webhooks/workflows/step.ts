import { byteLength, stringifyJson } from "../../base/exact_json.ts";
import { renderValue, TemplateError } from "../model/template.ts";
import type { SetStep, WorkflowStep } from "../model/workflow.ts";
import type { StepContext, StepOutcome } from "./step_context.ts";
import { askLimit } from "./limit_step.ts";

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
      const { sendRequest } = await import("./request_step.ts");
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
