import { eventBody } from "./event.ts";
import type { Execution, NewEvent } from "./records.ts";
import { timeText } from "../../base/rfc3339.ts";

/** Changes of an execution after work on it; a final status ends it. */
export type ExecutionChange = Pick<
  Execution,
  "status" | "stepAttempts" | "deadlineAt" | "dueAt" | "finishedAt" | "output" | "error"
>;

/** The end of an execution, with an output or an error. */
export interface ExecutionEnd {
  readonly output?: string | undefined;
  readonly error?: string | undefined;
  readonly status: "succeeded" | "failed" | "cancelled";
}

/** The kind of the event that reports a finished execution. */
export const COMPLETED_KIND = "workflow.execution.completed";
const MAX_ERROR_LENGTH = 1_000;

/** The change that ends an execution, and the event that is written with it. */
export function completion(
  execution: Pick<Execution, "id" | "workflow" | "startedAt" | "deadlineAt" | "stepAttempts">,
  end: ExecutionEnd,
  { now, eventId }: { readonly now: number; readonly eventId: string },
): { readonly change: ExecutionChange; readonly event: NewEvent } {
  const { status, output } = end;
  const error = end.error === undefined ? undefined : storedError(end.error);
  const { startedAt = now, deadlineAt, stepAttempts } = execution;
  const change = { status, stepAttempts, deadlineAt, finishedAt: now, output, error };
  const facts = JSON.stringify({
    workflowId: execution.workflow,
    executionId: execution.id,
    status,
    startedAt: timeText(startedAt),
    finishedAt: timeText(now),
    ...(error === undefined ? {} : { error }),
  });
  // The output is JSON text already, whose numbers keep their digits.
  const json = output === undefined ? facts : `${facts.slice(0, -1)},"output":${output}}`;
  return { change, event: { id: eventId, kind: COMPLETED_KIND, body: eventBody(COMPLETED_KIND, json) } };
}

/** An error as it is stored and shown. */
export function storedError(error: string): string {
  return error.slice(0, MAX_ERROR_LENGTH).toWellFormed();
}
