import type { Execution, ExecutionStatus, ExecutionStep, WorkflowVersion } from "./records.ts";
import { addEvent } from "./sqlite_store_accept.ts";
import type { Row, SqliteConnection } from "./sqlite_store_connection.ts";
import { executionOf, stepOf, text, whole } from "./sqlite_store_rows.ts";
import { tallyMove } from "./sqlite_store_tally.ts";
import type { ClaimedExecution, ExecutionChange, ExecutionStore } from "./store.ts";

const FINAL: ReadonlySet<ExecutionStatus> = new Set(["succeeded", "failed", "cancelled"]);

/** Keeps a text of a workflow. */
export function saveWorkflowVersion(connection: SqliteConnection, version: WorkflowVersion): void {
  connection.run(
    "INSERT INTO workflow_version (id, workflow, text) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING",
    version.id,
    version.workflow,
    version.text,
  );
}

/** Claims executions that are due: first those that began. */
export function claimExecutions(
  connection: SqliteConnection,
  { now, leaseUntil, newClaimId, max }: Parameters<ExecutionStore["claimExecutions"]>[0],
): readonly ClaimedExecution[] {
  const due = (began: boolean, limit: number) =>
    connection.all(
      `SELECT * FROM execution INDEXED BY execution_next
       WHERE began = ? AND next_at <= ? ORDER BY next_at, seq LIMIT ?`,
      began,
      now,
      limit,
    );
  const running = due(true, max);
  const rows = [...running, ...due(false, max - running.length)];
  return rows.map((row) => claimOne(connection, row, newClaimId(), leaseUntil));
}

/** Prolongs claims; answers those that are still held. */
export function renewExecutionClaims(
  connection: SqliteConnection,
  claimIds: readonly string[],
  leaseUntil: number,
): readonly string[] {
  return claimIds.filter((claimId) =>
    connection.run("UPDATE execution SET lease_until = ? WHERE claim_id = ?", leaseUntil, claimId) > 0
  );
}

/** Writes what was done of an execution. */
export function commitExecution(
  connection: SqliteConnection,
  options: Parameters<ExecutionStore["commitExecution"]>[0] & { readonly newId: () => string },
): { readonly cancelRequested: boolean } | undefined {
  const { executionId, claimId, step, change, event } = options;
  const row = connection.get(
    "SELECT seq, status, cancel_requested FROM execution WHERE id = ? AND claim_id = ?",
    executionId,
    claimId,
  );
  if (row === undefined) return undefined;
  const seq = whole(row, "seq");
  const cancelRequested = whole(row, "cancel_requested") !== 0;
  if (step !== undefined) addStep(connection, seq, step);
  changeExecution(connection, seq, change, { ...options, cancelRequested });
  const before = text(row, "status") as ExecutionStatus;
  tallyMove(connection, `execution.${before}`, `execution.${change.status}`);
  if (event !== undefined) addEvent(connection, event, options);
  return { cancelRequested };
}

/** Asks that an execution end. */
export function cancelExecution(connection: SqliteConnection, id: string, now: number): boolean | undefined {
  const row = connection.get("SELECT seq, status FROM execution WHERE id = ?", id);
  if (row === undefined) return undefined;
  if (FINAL.has(text(row, "status") as ExecutionStatus)) return false;
  connection.run(
    "UPDATE execution SET cancel_requested = 1, due_at = min(due_at, ?) WHERE seq = ?",
    now,
    whole(row, "seq"),
  );
  return true;
}

/** An execution with its steps. */
export function findExecution(
  connection: SqliteConnection,
  id: string,
): { readonly execution: Execution; readonly steps: readonly ExecutionStep[] } | undefined {
  const row = connection.get("SELECT * FROM execution WHERE id = ?", id);
  if (row === undefined) return undefined;
  return { execution: executionOf(row), steps: stepsOf(connection, row) };
}

/** Takes back claims of executions; answers how many. */
export function voidExecutionClaims(
  connection: SqliteConnection,
  { now, which }: { readonly now: number; readonly which: "all" | "expired" },
): number {
  return connection.run(
    `UPDATE execution INDEXED BY execution_lease SET claim_id = NULL, lease_until = NULL, due_at = min(due_at, ?)
     WHERE claim_id IS NOT NULL AND lease_until < ?`,
    now,
    which === "all" ? Number.MAX_SAFE_INTEGER : now,
  );
}

/** Takes back claims of one's own. */
export function releaseExecutionClaims(
  connection: SqliteConnection,
  claimIds: readonly string[],
  now: number,
): void {
  for (const claimId of claimIds) {
    connection.run(
      "UPDATE execution SET claim_id = NULL, lease_until = NULL, due_at = min(due_at, ?) WHERE claim_id = ?",
      now,
      claimId,
    );
  }
}

function claimOne(
  connection: SqliteConnection,
  row: Row,
  claimId: string,
  leaseUntil: number,
): ClaimedExecution {
  connection.run(
    "UPDATE execution SET claim_id = ?, lease_until = ? WHERE seq = ?",
    claimId,
    leaseUntil,
    whole(row, "seq"),
  );
  const versions = connection.all("SELECT * FROM workflow_version WHERE id = ?", text(row, "version_id"));
  const [version] = versions.map((found) => ({
    id: text(found, "id"),
    workflow: text(found, "workflow"),
    text: text(found, "text"),
  }));
  if (version === undefined) {
    throw new Error(`Cannot claim the execution "${text(row, "id")}": its workflow's text is gone`);
  }
  return {
    execution: { ...executionOf(row), claimId, leaseUntil },
    claimId,
    version,
    steps: stepsOf(connection, row),
  };
}

function stepsOf(connection: SqliteConnection, execution: Row): readonly ExecutionStep[] {
  return connection.all(
    "SELECT * FROM execution_step WHERE execution_seq = ? ORDER BY position",
    whole(execution, "seq"),
  ).map(stepOf);
}

function addStep(connection: SqliteConnection, seq: number, step: ExecutionStep): void {
  connection.run(
    `INSERT INTO execution_step
       (execution_seq, position, name, kind, status, attempts, started_at, finished_at, result, error)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    seq,
    step.index,
    step.name,
    step.kind,
    step.status,
    step.attempts,
    step.startedAt,
    step.finishedAt,
    step.result,
    step.error,
  );
}

/** Nobody waits for an execution that is to end, and nobody keeps one that has. */
function changeExecution(
  connection: SqliteConnection,
  seq: number,
  change: ExecutionChange,
  { now, keepClaim, cancelRequested }: {
    readonly now: number;
    readonly keepClaim: boolean;
    readonly cancelRequested: boolean;
  },
): void {
  const isOver = FINAL.has(change.status);
  const dueAt = cancelRequested && change.dueAt !== undefined ? Math.min(change.dueAt, now) : change.dueAt;
  connection.run(
    `UPDATE execution SET status = ?, step_attempts = ?, started_at = coalesce(?, started_at),
       deadline_at = coalesce(?, deadline_at), due_at = ?, finished_at = ?, output = ?, error = ?
     WHERE seq = ?`,
    change.status,
    change.stepAttempts,
    change.startedAt,
    change.deadlineAt,
    isOver ? undefined : dueAt,
    change.finishedAt,
    change.output,
    change.error,
    seq,
  );
  if (keepClaim && !isOver) return;
  connection.run("UPDATE execution SET claim_id = NULL, lease_until = NULL WHERE seq = ?", seq);
}
