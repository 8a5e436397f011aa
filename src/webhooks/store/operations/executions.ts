import type { Logger } from "../../../base/log.ts";
import { completion, type ExecutionChange } from "../../model/completion_event.ts";
import type {
  Execution,
  ExecutionStatus,
  ExecutionStep,
  ListedExecution,
  NewEvent,
} from "../../model/records.ts";
import { addEvent } from "./accept.ts";
import { heldClaims, renewing, type VoidOptions } from "./delivery_claims.ts";
import { listPageOf } from "./lists.ts";
import { integer, RECORDS, text } from "../rows.ts";
import type { ListOptions, Page } from "../store.ts";
import { tallyMove } from "./tally.ts";
import { all, get, type Parameter, type Row, run, type Sql, sql, type Work } from "../work.ts";

const FINAL: ReadonlySet<ExecutionStatus> = new Set(["succeeded", "failed", "cancelled"]);

/** Extends claims; returns those that are still held. */
export const renewExecutionClaims = renewing("execution");

/** What is written of an execution. */
export interface ExecutionCommit {
  readonly executionId: string;
  readonly claimId: string;
  readonly now: number;
  /** A step that is over. */
  readonly step?: ExecutionStep | undefined;
  readonly change: ExecutionChange;
  /** Of a final status; it is written with its deliveries. */
  readonly event?: NewEvent | undefined;
  /** Whether the work goes on under the same claim. */
  readonly keepClaim: boolean;
}

/**
 * Writes a step and the state after it; returns whether cancelling was requested, or `undefined`, with nothing changed,
 * when the claim was lost.
 */
export function* commitExecution(
  options: ExecutionCommit,
): Work<{ readonly cancelRequested: boolean } | undefined> {
  const { step, change, event } = options;
  const row = yield* changeExecution(options);
  if (row === undefined) return undefined;
  if (step !== undefined) yield* run(ADD_STEP, integer(row, "seq"), ...stepValues(step));
  // Its claim has started it.
  yield* tallyMove("execution.running", `execution.${change.status}`);
  if (event !== undefined) yield* addEvent(event, options.now);
  return { cancelRequested: integer(row, "cancel_requested") !== 0 };
}

const ADD_STEP = `
  INSERT INTO execution_step
    (execution_seq, position, name, kind, status, attempts, started_at, finished_at, result, error)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (execution_seq, position) DO NOTHING`;
const CHANGED = `status = ?, step_attempts = ?, deadline_at = coalesce(?, deadline_at), finished_at = ?,
  output = ?, error = ?, voids = 0,
  due_at = CASE WHEN cancel_requested = 0 THEN CAST(? AS BIGINT) ELSE CAST(? AS BIGINT) END`;
const HELD = "WHERE id = ? AND claim_id = ? RETURNING seq, cancel_requested";
const CHANGE = `UPDATE execution SET ${CHANGED} ${HELD}`;
const CHANGE_AND_RELEASE = `UPDATE execution SET ${CHANGED}, claim_id = NULL, lease_until = NULL ${HELD}`;

type Changes = Pick<ExecutionCommit, "change" | "now" | "keepClaim">;

/** Nothing when the claim was lost. */
function changeExecution(
  { executionId, claimId, ...changes }: Changes & Pick<ExecutionCommit, "executionId" | "claimId">,
): Work<Row | undefined> {
  const { status, stepAttempts, deadlineAt, finishedAt, output, error } = changes.change;
  const { isReleased, dueAt, dueNow } = afterCommit(changes);
  return get(
    isReleased ? CHANGE_AND_RELEASE : CHANGE,
    ...[status, stepAttempts, deadlineAt, finishedAt, output, error, dueAt, dueNow, executionId, claimId],
  );
}

/** When a changed execution is due, or is due if it is to be cancelled, which waits for nothing. A final one has no claim. */
export function afterCommit({ change, now, keepClaim }: Changes) {
  const isFinal = FINAL.has(change.status);
  const dueAt = isFinal ? undefined : change.dueAt;
  const dueNow = dueAt === undefined ? undefined : Math.min(dueAt, now);
  return { isReleased: isFinal || !keepClaim, dueAt, dueNow };
}

function stepValues(step: ExecutionStep): readonly Parameter[] {
  const { index, name, kind, status, attempts, startedAt, finishedAt, result, error } = step;
  return [index, name, kind, status, attempts, startedAt, finishedAt, result, error];
}

// An earlier time stays, and so does NULL.
const DUE_BY = "due_at = CASE WHEN due_at > ? THEN ? ELSE due_at END";

const FIND_STATUS = sql((d) => `SELECT seq, status FROM execution WHERE id = ? ${d.lock()}`);
const CANCEL = `UPDATE execution SET cancel_requested = 1, ${DUE_BY} WHERE seq = ?`;

/** Requests that an execution ends; false when it has ended, `undefined` when there is none. */
export function* cancelExecution(id: string, now: number): Work<boolean | undefined> {
  const row = yield* get(FIND_STATUS, id);
  if (row === undefined) return undefined;
  if (FINAL.has(text(row, "status") as ExecutionStatus)) return false;
  yield* run(CANCEL, now, now, integer(row, "seq"));
  return true;
}

/** An execution with its steps. */
export function* findExecution(
  id: string,
): Work<{ readonly execution: Execution; readonly steps: readonly ExecutionStep[] } | undefined> {
  const row = yield* get("SELECT * FROM execution WHERE id = ?", id);
  if (row === undefined) return undefined;
  const steps = yield* stepsOf([row]);
  return { execution: RECORDS.executions.read(row), steps: steps.get(integer(row, "seq")) ?? [] };
}

/** Executions, newest first, with their steps without results. */
export function listExecutions(options: ListOptions): Work<Page<ListedExecution>> {
  return listPageOf("executions", options, listedExecutionsOf);
}

function* listedExecutionsOf(rows: readonly Row[]): Work<readonly ListedExecution[]> {
  const steps = yield* stepsOf(rows, LISTED_STEPS);
  return rows.map((row) => ({
    ...RECORDS.executions.read(row),
    steps: steps.get(integer(row, "seq")) ?? [],
  }));
}

const VOID = sql((d) =>
  `WITH portion AS MATERIALIZED (
     SELECT seq FROM execution ${d.by("execution_lease")} WHERE claim_id IS NOT NULL AND lease_until < ?
     ${d.lockFree()})
   UPDATE execution SET claim_id = NULL, lease_until = NULL, voids = voids + 1, ${DUE_BY}
   WHERE seq IN (SELECT seq FROM portion)`
);

/** Releases claims of executions; returns how many. */
export function voidExecutionClaims({ now, which }: VoidOptions): Work<number> {
  return run(VOID, which === "all" ? Number.MAX_SAFE_INTEGER : now, now, now);
}

const RELEASE = sql((d) =>
  `WITH held AS MATERIALIZED (${heldClaims("execution", d)})
   UPDATE execution SET claim_id = NULL, lease_until = NULL, ${DUE_BY} WHERE seq IN (SELECT seq FROM held)`
);

/** Releases claims of executions by their ids. */
export function* releaseExecutionClaims(claimIds: readonly string[], now: number): Work<void> {
  yield* run(RELEASE, claimIds, now, now);
}

/** Fails an execution that cannot run, with its event, so that it does not block others. */
export function* failWithoutText(
  row: Row,
  { now, logger }: { readonly now: number; readonly logger: Logger },
): Work<void> {
  const execution = RECORDS.executions.read(row);
  logger.error("Cannot run an execution: its workflow's text is gone", { execution: execution.id });
  const end = { status: "failed", error: "its workflow's text is gone" } as const;
  const { change, event } = completion(execution, end, { now, eventId: crypto.randomUUID() });
  const { id: executionId, claimId = "" } = execution;
  yield* changeExecution({ executionId, claimId, change, now, keepClaim: false });
  yield* tallyMove("execution.running", "execution.failed");
  yield* addEvent(event, now);
}

const ALL_STEPS = sql((d) =>
  `SELECT * FROM execution_step WHERE ${d.among("execution_seq")} ORDER BY execution_seq, position`
);
const LISTED_STEPS = sql((d) =>
  `SELECT execution_seq, position, name, kind, status, attempts, started_at, finished_at, error, NULL AS result
   FROM execution_step WHERE ${d.among("execution_seq")} ORDER BY execution_seq, position`
);

/** The steps of executions by `seq`. */
export function* stepsOf(
  executions: readonly Row[],
  steps: Sql = ALL_STEPS,
): Work<ReadonlyMap<number, readonly ExecutionStep[]>> {
  if (executions.length === 0) return new Map();
  const rows = yield* all(steps, executions.map((row) => integer(row, "seq")));
  const groups = Map.groupBy(rows, (row) => integer(row, "execution_seq"));
  return new Map([...groups].map(([seq, group]) => [seq, group.map((row) => RECORDS.steps.read(row))]));
}
