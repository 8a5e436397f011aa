import {
  adminAudit,
  type AdministrationParts,
  type AdministrationRoute,
  jsonAnswer,
  type RoutedCall,
} from "./route.ts";
import { FieldReader } from "./field_reader.ts";
import { parseJson } from "../../base/exact_json.ts";
import { listOptionsOf, pageOf } from "./list_query.ts";
import { conflict, notFound } from "./problem.ts";
import type { AuditEntry, Execution, ExecutionStep } from "../model/records.ts";
import type { WebhookAnswer } from "./calls.ts";
import { timeText } from "../../base/rfc3339.ts";
import type { WorkflowStep } from "../model/workflow.ts";
import * as auditLog from "../store/audit_log.ts";
import { findWorkflowVersion } from "../store/execution_claims.ts";
import * as executions from "../store/executions.ts";

const STATUSES = ["queued", "running", "succeeded", "failed", "cancelled"];

/** `/executions` and `/audit`. */
export function executionRoutes(parts: AdministrationParts): AdministrationRoute[] {
  return [
    { method: "GET", pattern: "/executions", handle: (call) => listExecutions(call, parts) },
    { method: "GET", pattern: "/executions/:id", handle: (call) => getExecution(call, parts) },
    { method: "POST", pattern: "/executions/:id/cancel", handle: (call) => cancelExecution(call, parts) },
    { method: "GET", pattern: "/audit", handle: (call) => listAudit(call, parts) },
  ];
}

async function listExecutions({ query }: RoutedCall, { store }: AdministrationParts): Promise<WebhookAnswer> {
  const options = listOptionsOf(query, ["state", "since", "until"], { states: STATUSES });
  return jsonAnswer(
    200,
    await pageOf(store.read(executions.listExecutions, options), (listed) => shown(listed, listed.steps)),
  );
}

async function getExecution(
  { ids: [id = ""] }: RoutedCall,
  parts: AdministrationParts,
): Promise<WebhookAnswer> {
  const found = await parts.store.read(executions.findExecution, id);
  if (found === undefined) throw notFound("this execution");
  const { execution, steps } = found;
  const currentStep = await shownCurrentStep(execution, steps.length, parts);
  return jsonAnswer(200, { ...shown(execution, steps), currentStep, input: parseJson(execution.input) });
}

/** What a running execution works on or waits for. */
async function shownCurrentStep(
  { status, versionId, stepAttempts, error, claimId, dueAt }: Execution,
  index: number,
  { store, workflows }: AdministrationParts,
): Promise<Record<string, unknown> | undefined> {
  if (status !== "running") return undefined;
  const version = await store.read(findWorkflowVersion, versionId);
  let step: WorkflowStep | undefined;
  try {
    step = version === undefined ? undefined : workflows.parse(version).steps[index];
  } catch {
    // The execution fails for the same reason, and says so, once it is worked on.
  }
  return {
    name: step?.name,
    kind: step?.kind,
    attempt: stepAttempts + 1,
    lastError: error,
    nextAttemptAt: claimId === undefined ? timeIf(dueAt) : undefined,
  };
}

async function cancelExecution({ ids: [id = ""], object }: RoutedCall, parts: AdministrationParts) {
  new FieldReader(object({ optional: true }), []);
  const isAsked = await parts.store.write(executions.cancelExecution, id, parts.clock.now());
  if (isAsked === undefined) throw notFound("this execution");
  if (!isAsked) throw conflict("already_ended", "Cannot cancel the execution: it has ended");
  await parts.store.write(auditLog.addAudit, adminAudit(parts, "execution.cancel_asked", `execution:${id}`));
  parts.wakeRunner();
  return jsonAnswer(202, { id });
}

async function listAudit({ query }: RoutedCall, { store }: AdministrationParts): Promise<WebhookAnswer> {
  const options = listOptionsOf(query, ["event", "since", "until"]);
  return jsonAnswer(200, await pageOf(store.read(auditLog.listAudit, options), shownEntry));
}

function shown(execution: Execution, steps: readonly ExecutionStep[]): Record<string, unknown> {
  const { id, workflow, versionId, triggerId, status, cancelRequested, output, error } = execution;
  return {
    id,
    workflow,
    versionId,
    triggerId,
    status,
    createdAt: timeText(execution.createdAt),
    startedAt: timeIf(execution.startedAt),
    finishedAt: timeIf(execution.finishedAt),
    cancelRequested,
    output: output === undefined ? undefined : parseJson(output),
    // Until it ends, it is that of its current step.
    error: execution.finishedAt === undefined ? undefined : error,
    steps: steps.map(shownStep),
  };
}

function shownStep({ startedAt, finishedAt, result, ...rest }: ExecutionStep): Record<string, unknown> {
  return {
    ...rest,
    startedAt: timeText(startedAt),
    finishedAt: timeText(finishedAt),
    result: result === undefined ? undefined : parseJson(result),
  };
}

function shownEntry({ at, ...rest }: AuditEntry): Record<string, unknown> {
  return { ...rest, at: timeText(at) };
}

function timeIf(time: number | undefined): string | undefined {
  return time === undefined ? undefined : timeText(time);
}
