import { eventBody } from "./event.ts";
import type { Execution, ExecutionStatus, NewEvent } from "./records.ts";
import { timeText } from "../../base/rfc3339.ts";

/** How an execution goes on after work on it; a final status ends it. */
export interface ExecutionChange {
  readonly status: ExecutionStatus;
  readonly stepAttempts: number;
  readonly startedAt?: number | undefined;
  readonly deadlineAt?: number | undefined;
  /** When it is worked on again; absent in final states. */
  readonly dueAt?: number | undefined;
  readonly finishedAt?: number | undefined;
  readonly output?: string | undefined;
  readonly error?: string | undefined;
}

/** How an execution ended. */
export interface ExecutionEnd {
  readonly status: "succeeded" | "failed" | "cancelled";
  /** JSON; of one that succeeded. */
  readonly output?: string | undefined;
  /** For people; of one that did not. */
  readonly error?: string | undefined;
}

/** The kind of the event that tells of a finished execution. */
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
  // One that was cancelled before it started began and ended at once.
  const startedAt = execution.startedAt ?? now;
  const { deadlineAt, stepAttempts } = execution;
  const change = { status, stepAttempts, startedAt, deadlineAt, finishedAt: now, output, error };
  const facts = JSON.stringify({
    workflowId: execution.workflow,
    executionId: execution.id,
    status,
    startedAt: timeText(startedAt),
    finishedAt: timeText(now),
    ...(error === undefined ? {} : { error }),
  });
  // The output is a text of JSON already, and its numbers keep their digits.
  const json = output === undefined ? facts : `${facts.slice(0, -1)},"output":${output}}`;
  return { change, event: { id: eventId, kind: COMPLETED_KIND, body: eventBody(COMPLETED_KIND, json) } };
}

/** An error as it is stored and shown. */
export function storedError(error: string): string {
  return error.slice(0, MAX_ERROR_LENGTH).toWellFormed();
}
