import type { Logger } from "../../base/log.ts";
import { completion, type ExecutionChange } from "../model/completion_event.ts";
import type {
  Execution,
  ExecutionStatus,
  ExecutionStep,
  ListedExecution,
  NewEvent,
} from "../model/records.ts";
import { addEvent } from "./accept.ts";
import { renewing, type VoidOptions } from "./delivery_claims.ts";
import { listPageOf } from "./lists.ts";
import { integer, RECORDS, text } from "./rows.ts";
import type { ListOptions, Page } from "./store.ts";
import { tallyMove } from "./tally.ts";
import {
  all,
  alone,
  get,
  type Parameter,
  postgresOnly,
  type Row,
  run,
  type Sql,
  sql,
  sqliteOnly,
  type Work,
} from "./work.ts";

const FINAL: ReadonlySet<ExecutionStatus> = new Set(["succeeded", "failed", "cancelled"]);

/** Extends claims; returns those that are still held. */
export const renewExecutionClaims = renewing("execution");

const HELD = sqliteOnly("SELECT seq, status, cancel_requested FROM execution WHERE id = ? AND claim_id = ?");

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
  const { executionId, claimId, step, change, event } = options;
  let row = yield* get(HELD, executionId, claimId);
  if (row === undefined) {
    const commit = commitAtOnce(options);
    row = yield* (event === undefined ? alone(commit) : commit);
    if (row === undefined) return undefined;
  } else {
    const seq = integer(row, "seq");
    if (step !== undefined) yield* run(ADD_STEP, seq, ...stepValues(step));
    yield* changeExecution(row, options);
    const before = text(row, "status") as ExecutionStatus;
    yield* tallyMove(`execution.${before}`, `execution.${change.status}`);
  }
  if (event !== undefined) yield* addEvent(event, options.now);
  return { cancelRequested: integer(row, "cancel_requested") !== 0 };
}

const STEP_COLUMNS =
  "execution_seq, position, name, kind, status, attempts, started_at, finished_at, result, error";
const ADD_STEP = `INSERT INTO execution_step (${STEP_COLUMNS})
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (execution_seq, position) DO NOTHING`;
const ADD_STEP_OF_HELD = `
  stepped AS (INSERT INTO execution_step (${STEP_COLUMNS})
    SELECT held.seq, CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT),
      CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT) FROM held
    ON CONFLICT (execution_seq, position) DO NOTHING),`;
const GIVEN_UP = ", claim_id = NULL, lease_until = NULL";
const CHANGE = `UPDATE execution SET ${changed("execution")} WHERE seq = ?`;
const CHANGE_AND_RELEASE = `UPDATE execution SET ${changed("execution")}${GIVEN_UP} WHERE seq = ?`;
const COMMIT = committing("", "");
const COMMIT_RELEASE = committing("", GIVEN_UP);
const COMMIT_STEP = committing(ADD_STEP_OF_HELD, "");
const COMMIT_STEP_RELEASE = committing(ADD_STEP_OF_HELD, GIVEN_UP);

function changed(source: string): string {
  return `status = ?, step_attempts = ?, started_at = coalesce(?, started_at),
    deadline_at = coalesce(?, deadline_at), finished_at = ?, output = ?, error = ?, voids = 0,
    due_at = CASE WHEN ${source}.cancel_requested = 0 THEN CAST(? AS BIGINT) ELSE CAST(? AS BIGINT) END`;
}

/** A commit in one round trip. */
function committing(step: string, release: string): Sql {
  return postgresOnly(
    `WITH held AS MATERIALIZED (
      SELECT seq, status, cancel_requested FROM execution WHERE id = ? AND claim_id = ? FOR UPDATE),
    ${step}
    tallied AS (INSERT INTO tally (name, count) SELECT moved.name, moved.count FROM held
      CROSS JOIN (SELECT CAST(? AS TEXT) AS status) AS after
      CROSS JOIN LATERAL (VALUES ('execution.' || held.status, -1), ('execution.' || after.status, 1))
        AS moved (name, count)
      WHERE held.status <> after.status),
    changed AS (UPDATE execution SET ${changed("held")}${release} FROM held WHERE execution.seq = held.seq)
    SELECT cancel_requested FROM held`,
  );
}

function commitAtOnce(options: ExecutionCommit): Work<Row | undefined> {
  const { executionId, claimId, step, change } = options;
  const { isReleased, values } = changesOf(options);
  const plain = isReleased ? COMMIT_RELEASE : COMMIT;
  const withStep = isReleased ? COMMIT_STEP_RELEASE : COMMIT_STEP;
  return step === undefined
    ? get(plain, executionId, claimId, change.status, ...values)
    : get(withStep, executionId, claimId, ...stepValues(step), change.status, ...values);
}

type Changes = Pick<ExecutionCommit, "change" | "now" | "keepClaim">;

function* changeExecution(row: Row, changes: Changes): Work<void> {
  const { isReleased, values } = changesOf(changes);
  yield* run(isReleased ? CHANGE_AND_RELEASE : CHANGE, ...values, integer(row, "seq"));
}

/** An execution that is to be cancelled waits for nothing, and a final one has no claim. */
function changesOf({ change, now, keepClaim }: Changes) {
  const { status, stepAttempts, startedAt, deadlineAt, finishedAt, output, error } = change;
  const isFinal = FINAL.has(status);
  const dueAt = isFinal ? undefined : change.dueAt;
  const dueNow = dueAt === undefined ? undefined : Math.min(dueAt, now);
  const values = [status, stepAttempts, startedAt, deadlineAt, finishedAt, output, error, dueAt, dueNow];
  return { isReleased: isFinal || !keepClaim, values };
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
  `UPDATE execution SET claim_id = NULL, lease_until = NULL, ${DUE_BY} WHERE ${d.among("claim_id")}`
);

/** Releases claims of executions by their ids. */
export function* releaseExecutionClaims(claimIds: readonly string[], now: number): Work<void> {
  yield* run(RELEASE, now, now, claimIds);
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
  yield* changeExecution(row, { change, now, keepClaim: false });
  yield* tallyMove(`execution.${execution.status}`, "execution.failed");
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
