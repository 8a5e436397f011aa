import { type WebhookProblem, WebhookRefusal } from "../../../../src/webhooks/api/problem.ts";

/** Why it is refused; throws when it is not. */
export async function refusalOf(run: () => unknown): Promise<WebhookProblem> {
  try {
    await run();
  } catch (error) {
    if (error instanceof WebhookRefusal) return error.problem;
    throw error;
  }
  throw new Error("Cannot find the refusal: nothing was refused");
}
