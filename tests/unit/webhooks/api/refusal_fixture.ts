import type { Seen } from "../../../harness/webhook_service_fixture.ts";
import { PROBLEM_CODES } from "../../../../src/webhooks/api/problem_codes.ts";
import { type WebhookProblem, WebhookRefusal } from "../../../../src/webhooks/api/problem.ts";

/** The detail and the status of its refusal; throws if it is not refused. */
export async function refusalOf(run: () => unknown): Promise<WebhookProblem & { readonly status: number }> {
  try {
    await run();
  } catch (error) {
    if (error instanceof WebhookRefusal) {
      return { ...error.problem, status: PROBLEM_CODES[error.problem.code][0] };
    }
    throw error;
  }
  throw new Error("Cannot find the refusal: nothing was refused");
}

/** The status of an answer, and its code or the name of its first field. */
export function codeOf({ status, body }: Seen): unknown[] {
  return [status, body?.code ?? Object.keys(body ?? {})[0]];
}
