import { JsonText } from "../../base/json_text.ts";
import { timeText, timeTextIf } from "../../base/rfc3339.ts";
import type { Execution, ExecutionStep } from "../model/records.ts";
import type { WorkflowStep } from "../model/workflow.ts";
import * as auditLog from "../store/audit_log.ts";
import { findWorkflowVersion } from "../store/execution_claims.ts";
import * as executions from "../store/executions.ts";
import { EXECUTION_OPERATIONS } from "./execution_operations.ts";
import { lister } from "./list_query.ts";
import { found, refusal } from "./problem.ts";
import { adminAudit, jsonAnswer, type RoutedCall, type RoutesOf } from "./route.ts";

/** `/executions` and `/audit`. */
export const EXECUTION_ROUTES: RoutesOf<typeof EXECUTION_OPERATIONS> = {
  "GET /executions": lister(
    EXECUTION_OPERATIONS["GET /executions"].query,
    executions.listExecutions,
    (one) => shown(one, one.steps),
  ),
  "GET /executions/:id": getExecution,
  "POST /executions/:id/cancel": cancelExecution,
  "GET /audit": lister(
    EXECUTION_OPERATIONS["GET /audit"].query,
    auditLog.listAudit,
    ({ at, ...rest }) => ({ ...rest, at: timeText(at) }),
  ),
};

async function getExecution(call: RoutedCall) {
  const record = await call.store.read(executions.findExecution, call.id);
  const { execution, steps } = found(record, "this execution");
  const currentStep = await currentStepOf(execution, steps.length, call);
  return jsonAnswer(200, { ...shown(execution, steps), currentStep, input: new JsonText(execution.input) });
}

/** The step that a running execution works on or waits for. */
async function currentStepOf(
  { status, versionId, stepAttempts, error, claimId, dueAt }: Execution,
  index: number,
  { store, workflows }: RoutedCall,
): Promise<Record<string, unknown> | undefined> {
  if (status !== "running") return undefined;
  const version = await store.read(findWorkflowVersion, versionId);
  let step: WorkflowStep | undefined;
  try {
    step = version === undefined ? undefined : workflows.parse(version).steps[index];
  } catch {
    // The execution fails for the same reason, and reports it, once it is worked on.
  }
  return {
    name: step?.name,
    kind: step?.kind,
    attempt: stepAttempts + 1,
    lastError: error,
    nextAttemptAt: claimId === undefined ? timeTextIf(dueAt) : undefined,
  };
}

async function cancelExecution(call: RoutedCall) {
  const { id, store, clock } = call;
  call.fields({}, { optional: true });
  const isCancelled = await store.write(executions.cancelExecution, id, clock.now());
  if (!found(isCancelled, "this execution")) {
    throw refusal("already_ended", "Cannot cancel the execution: it has ended");
  }
  await store.write(auditLog.addAudit, adminAudit(call, "execution.cancel_asked", `execution:${id}`));
  call.wakeRunner();
  return jsonAnswer(202, { id });
}

function shown(execution: Execution, steps: readonly ExecutionStep[]): Record<string, unknown> {
  const { id, workflow, versionId, triggerId, event, status, cancelRequested, output, error, finishedAt } =
    execution;
  return {
    ...{ id, workflow, versionId, triggerId, event, status },
    createdAt: timeText(execution.createdAt),
    startedAt: timeTextIf(execution.startedAt),
    finishedAt: timeTextIf(finishedAt),
    cancelRequested,
    output: output === undefined ? undefined : new JsonText(output),
    // Until the end it is the error of the current step.
    error: finishedAt === undefined ? undefined : error,
    steps: steps.map(({ startedAt, finishedAt, result, ...rest }) => ({
      ...rest,
      startedAt: timeText(startedAt),
      finishedAt: timeText(finishedAt),
      result: result === undefined ? undefined : new JsonText(result),
    })),
  };
}
