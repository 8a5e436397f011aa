import type {
  Execution,
  ExecutionStatus,
  ExecutionStep,
  ListedExecution,
  WorkflowVersion,
} from "./records.ts";
import { addEvent } from "./sqlite_store_accept.ts";
import type { Row, SqliteConnection } from "./sqlite_store_connection.ts";
import type { RowFaults } from "./sqlite_store_deliveries.ts";
import { executionOf, stepOf, text, whole } from "./sqlite_store_rows.ts";
import { tallyMove } from "./sqlite_store_tally.ts";
import { type ClaimedExecution, type ExecutionChange, type ExecutionStore, SUSPECT_VOIDS } from "./store.ts";
import { completion } from "./workflow_completion.ts";

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

/** Claims executions that are due: first those that began, last those whose claims were void. */
export function claimExecutions(
  connection: SqliteConnection,
  { now, leaseUntil, newClaimId, max, ...faults }:
    & Parameters<ExecutionStore["claimExecutions"]>[0]
    & RowFaults,
): readonly ClaimedExecution[] {
  const due = (began: boolean, limit: number) =>
    connection.all(
      `SELECT * FROM execution INDEXED BY execution_next
       WHERE began = ? AND next_at <= ? AND voids = 0 ORDER BY next_at, seq LIMIT ?`,
      began,
      now,
      limit,
    );
  const running = due(true, max);
  const rows = [...running, ...due(false, max - running.length)];
  rows.push(...voidedRows(connection, now, max - rows.length));
  return rows.flatMap((row) => {
    const version = versionOf(connection, text(row, "version_id"));
    if (version !== undefined) {
      return [claimOne(connection, row, { claimId: newClaimId(), leaseUntil, version })];
    }
    failWithoutText(connection, row, { ...faults, now });
    return [];
  });
}

/** Those whose claims were void; of suspects one, if nobody has another. */
function voidedRows(connection: SqliteConnection, now: number, max: number): readonly Row[] {
  const rows = connection.all(
    `SELECT * FROM execution INDEXED BY execution_voided
     WHERE voids > 0 AND next_at <= ? ORDER BY voids, next_at, seq LIMIT ?`,
    now,
    max,
  );
  const isSuspect = (row: Row) => whole(row, "voids") >= SUSPECT_VOIDS;
  const suspect = rows.find(isSuspect);
  const others = rows.filter((row) => !isSuspect(row));
  if (suspect === undefined) return others;
  const taken = connection.get(
    `SELECT 1 AS one FROM execution INDEXED BY execution_lease WHERE claim_id IS NOT NULL AND voids >= ? LIMIT 1`,
    SUSPECT_VOIDS,
  );
  return taken === undefined ? [...others, suspect] : others;
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

/** Reads executions of a list. */
export function withSteps(connection: SqliteConnection): (row: Row) => ListedExecution {
  return (row) => ({
    ...executionOf(row),
    steps: connection.all(
      `SELECT position, name, kind, status, attempts, started_at, finished_at, error, NULL AS result
       FROM execution_step WHERE execution_seq = ? ORDER BY position`,
      whole(row, "seq"),
    ).map(stepOf),
  });
}

/** Takes back claims of executions; answers how many. */
export function voidExecutionClaims(
  connection: SqliteConnection,
  { now, which }: { readonly now: number; readonly which: "all" | "expired" },
): number {
  return connection.run(
    `UPDATE execution INDEXED BY execution_lease SET claim_id = NULL, lease_until = NULL, voids = voids + 1,
       due_at = min(due_at, ?)
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
  { claimId, leaseUntil, version }: {
    readonly claimId: string;
    readonly leaseUntil: number;
    readonly version: WorkflowVersion;
  },
): ClaimedExecution {
  connection.run(
    "UPDATE execution SET claim_id = ?, lease_until = ? WHERE seq = ?",
    claimId,
    leaseUntil,
    whole(row, "seq"),
  );
  return {
    execution: { ...executionOf(row), claimId, leaseUntil },
    claimId,
    version,
    steps: stepsOf(connection, row),
    voids: whole(row, "voids"),
  };
}

function versionOf(connection: SqliteConnection, id: string): WorkflowVersion | undefined {
  const row = connection.get("SELECT * FROM workflow_version WHERE id = ?", id);
  return row && { id: text(row, "id"), workflow: text(row, "workflow"), text: text(row, "text") };
}

/** One that cannot be carried out must not hold up the others. */
function failWithoutText(
  connection: SqliteConnection,
  row: Row,
  { now, newId, logger }: RowFaults & { readonly now: number },
): void {
  const execution = executionOf(row);
  logger.error("Cannot carry out an execution: its workflow's text is gone", { execution: execution.id });
  const end = { status: "failed", error: "its workflow's text is gone" } as const;
  const { change, event } = completion(execution, end, { now, eventId: newId() });
  changeExecution(connection, whole(row, "seq"), change, { now, keepClaim: false, cancelRequested: false });
  tallyMove(connection, `execution.${execution.status}`, "execution.failed");
  addEvent(connection, event, { now, newId });
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
       deadline_at = coalesce(?, deadline_at), due_at = ?, finished_at = ?, output = ?, error = ?, voids = 0
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
