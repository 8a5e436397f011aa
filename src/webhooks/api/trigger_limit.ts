import {
  descriptorProblem,
  type LimitCall,
  type LimitDecision,
  type LimitDescriptor,
  readTriggerLimit,
} from "../model/limit_call.ts";
import { errorText } from "../../base/error_text.ts";
import type { JsonObject } from "../../base/exact_json.ts";
import { refusal, unavailable, WebhookRefusal } from "./problem.ts";
import type { Trigger } from "../model/records.ts";
import { parseTemplate, renderText, TemplateError, type TemplateScope } from "../model/template.ts";

/** Descriptors of a call, or why they cannot be filled in. */
type LimitDescriptors = readonly LimitDescriptor[] | WebhookRefusal;

/**
 * Asks whether a call is within the limit of its trigger, if it has one. Throws a `WebhookRefusal`: 429 over the limit,
 * 422 where the input lacks a value or has one that is too long, 503 where the decision fails and the trigger denies.
 */
export async function checkLimit(
  { limit, onLimitError }: Pick<Trigger, "limit" | "onLimitError">,
  descriptors: LimitDescriptors,
  ask: LimitCall,
): Promise<void> {
  if (limit === undefined) return;
  if (descriptors instanceof WebhookRefusal) throw descriptors;
  let decision: LimitDecision;
  try {
    decision = await ask(readTriggerLimit(limit).domain, descriptors);
  } catch (error) {
    if (onLimitError === "allow") return;
    const detail = "Cannot decide on the trigger's limit: the decision failed";
    throw new WebhookRefusal(unavailable("limit_failed", detail), { cause: error });
  }
  if (decision.code === "OK") return;
  const seconds = Math.max(1, Math.ceil((decision.resetMs ?? 0) / 1_000));
  const detail = `Cannot accept the call: the trigger is over its limit for another ${seconds} s`;
  throw refusal("over_limit", detail, { headers: { "retry-after": String(seconds) } });
}

/** The descriptors of the limit with this JSON, filled in from an input. */
export function limitDescriptors(limit: string, input: JsonObject): LimitDescriptors {
  const scope: TemplateScope = { read: (root) => root === "input" ? input : undefined };
  try {
    return readTriggerLimit(limit).descriptors.map((entries) => {
      const descriptor = entries.map(([key, text]) => [key, filled(text, scope)] as const);
      // The caller learns it here, whatever `onLimitError` says.
      const problem = descriptorProblem(descriptor);
      if (problem !== undefined) throw wrongInput("limit_value_too_long", problem);
      return descriptor;
    });
  } catch (error) {
    if (error instanceof WebhookRefusal) return error;
    throw error;
  }
}

function wrongInput(code: "limit_value_too_long" | "limit_value_missing", state: string): WebhookRefusal {
  return refusal(code, `Cannot decide on the trigger's limit: ${state}`, { field: "body" });
}

function filled(text: string, scope: TemplateScope): string {
  const { template, problem } = parseTemplate(text, ["input"]);
  if (template === undefined) throw new Error(problem);
  try {
    return renderText(template, scope);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    throw wrongInput("limit_value_missing", errorText(error));
  }
}
