import { byteLength } from "../../base/exact_json.ts";
import { JsonText } from "../../base/json_text.ts";
import type { Execution, ExecutionStep } from "../model/records.ts";
import type { WorkflowStep } from "../model/workflow.ts";
import { AUDIT, AUDIT_FIELDS } from "../resources/audit_entry.ts";
import { EXECUTION_DETAILS, EXECUTION_FIELDS, EXECUTIONS } from "../resources/execution.ts";
import * as auditLog from "../store/operations/audit_log.ts";
import { findWorkflowVersion } from "../store/operations/execution_claims.ts";
import * as executions from "../store/operations/executions.ts";
import type { AUDIT_OPERATIONS, EXECUTION_OPERATIONS } from "./execution_operations.ts";
import { lister } from "./list_query.ts";
import { found, idempotencyKeyRefusal, refusal } from "./problem.ts";
import { adminAudit, jsonAnswer, type RoutedCall, type RoutesOf, shownRecord } from "./route.ts";

/** `/executions`. */
export const EXECUTION_ROUTES: RoutesOf<typeof EXECUTION_OPERATIONS> = {
  "GET /executions": lister(EXECUTIONS, executions.listExecutions, (one) => shown(one, one.steps)),
  "GET /executions/:id": getExecution,
  "POST /executions/:id/cancel": cancelExecution,
  "POST /executions/:id/rerun": rerunExecution,
};

/** `/audit`. */
export const AUDIT_ROUTES: RoutesOf<typeof AUDIT_OPERATIONS> = {
  "GET /audit": lister(AUDIT, auditLog.listAudit, (one) => shownRecord(AUDIT_FIELDS, { ...one })),
};

async function getExecution(call: RoutedCall) {
  const record = await call.store.read(executions.findExecution, call.id);
  const { execution, steps } = found(record, "this execution");
  const currentStep = await currentStepOf(execution, steps.length, call);
  const details = shownRecord(EXECUTION_DETAILS, {
    currentStep,
    headers: execution.headers,
    input: new JsonText(execution.input),
  });
  return jsonAnswer(200, { ...shown(execution, steps), ...details });
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
    nextAttemptAt: claimId === undefined ? dueAt : undefined,
  };
}

async function cancelExecution(call: RoutedCall) {
  const { id, store, clock } = call;
  await call.fields({}, { optional: true });
  const isCancelled = await store.write(executions.cancelExecution, id, clock.now());
  if (!found(isCancelled, "this execution")) {
    throw refusal("already_ended", "Cannot cancel the execution: it has ended");
  }
  await store.write(auditLog.addAudit, adminAudit(call, "execution.cancel_asked", `execution:${id}`));
  call.wakeRunner();
  return jsonAnswer(202, { id });
}

async function rerunExecution(call: RoutedCall) {
  const { id, idempotencyKey, store, maxBodyBytes = Infinity } = call;
  await call.fields({}, { optional: true });
  const refused = idempotencyKeyRefusal(idempotencyKey);
  if (refused !== undefined) throw refused;
  const record = await store.read(executions.findExecution, id);
  const { execution } = found(record, "this execution: it does not exist, or was removed with its input");
  if (execution.finishedAt === undefined) {
    throw refusal("not_ended", "Cannot run the execution again: it has not ended; cancel it first");
  }
  const bytes = byteLength(execution.input);
  if (bytes > maxBodyBytes) {
    const detail = `Cannot run the execution again: its input has ${bytes} bytes, ` +
      `more than WEBHOOK_MAX_BODY_BYTES (${maxBodyBytes})`;
    throw refusal("too_large", detail, { field: "input" });
  }
  const audit = (executionId: string) =>
    adminAudit(call, "execution.rerun", `execution:${id}`, { executionId });
  return await call.rerun(execution, { idempotencyKey, audit });
}

function shown(execution: Execution, steps: readonly ExecutionStep[]): Record<string, unknown> {
  // Until the end it is the error of the current step.
  const error = execution.finishedAt === undefined ? undefined : execution.error;
  return shownRecord(EXECUTION_FIELDS, { ...execution, error, steps });
}
