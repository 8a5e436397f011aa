import { descriptorProblem, type LimitCall, type LimitDecision } from "../model/limit_call.ts";
import { errorText } from "../../base/error_text.ts";
import type { JsonObject } from "../../base/exact_json.ts";
import { unavailable, WebhookRefusal } from "./problem.ts";
import type { Trigger, TriggerLimit } from "../model/records.ts";
import { parseTemplate, renderText, TemplateError, type TemplateScope } from "../model/template.ts";

/** A call of a trigger that has a limit. */
export interface LimitedCall {
  readonly limit: TriggerLimit;
  readonly onLimitError: Trigger["onLimitError"];
  readonly descriptors: ReturnType<typeof limitDescriptors>;
  readonly ask: LimitCall;
}

/**
 * Asks whether a call is within the limit of its trigger. Throws a `WebhookRefusal`: 429 beyond it, 422 where the input
 * lacks what the limit is made of or says too much of it, 503 where nobody can decide and that is not allowed to pass.
 */
export async function triggerLimit(
  { limit, onLimitError, descriptors, ask }: LimitedCall,
): Promise<void> {
  if (descriptors instanceof WebhookRefusal) throw descriptors;
  let decision: LimitDecision;
  try {
    decision = await ask(limit.domain, descriptors);
  } catch (error) {
    if (onLimitError === "allow") return;
    const detail = "Cannot decide on the trigger's limit: the decision failed";
    throw new WebhookRefusal(unavailable("limit_failed", detail), { cause: error });
  }
  if (decision.code === "OK") return;
  const seconds = Math.max(1, Math.ceil((decision.resetMs ?? 0) / 1_000));
  throw new WebhookRefusal({
    status: 429,
    code: "over_limit",
    detail: `Cannot accept the call: the trigger is over its limit for another ${seconds} s`,
    headers: { "retry-after": String(seconds) },
  });
}

/** Why a value of a descriptor cannot be used; nothing when it can. */
export function limitValueProblem(text: string): string | undefined {
  return parseTemplate(text, ["input"]).problem;
}

/** What the decision service is asked for an input, or why it cannot be asked. */
export function limitDescriptors(
  { descriptors }: TriggerLimit,
  input: JsonObject,
): readonly Readonly<Record<string, string>>[] | WebhookRefusal {
  const scope: TemplateScope = { read: (root) => root === "input" ? input : undefined };
  try {
    return descriptors.map((descriptor) =>
      Object.fromEntries(Object.entries(descriptor).map(([key, text]) => [key, filled(text, scope)]))
    ).map((descriptor) => {
      // Were the service asked, its refusal would count as a decision that failed, and a caller could get past a
      // limit that lets calls pass then.
      const problem = descriptorProblem(descriptor);
      if (problem !== undefined) throw wrongInput("limit_value_too_long", problem);
      return descriptor;
    });
  } catch (error) {
    if (error instanceof WebhookRefusal) return error;
    throw error;
  }
}

function wrongInput(code: string, state: string): WebhookRefusal {
  const detail = `Cannot decide on the trigger's limit: ${state}`;
  return new WebhookRefusal({ status: 422, code, field: "body", detail });
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
