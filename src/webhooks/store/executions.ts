import type {
  Execution,
  ExecutionStatus,
  ExecutionStep,
  ListedExecution,
  NewEvent,
} from "../model/records.ts";
import { addEvent } from "./accept.ts";
import type { VoidOptions } from "./delivery_claims.ts";
import { listPageOf } from "./lists.ts";
import { EXECUTIONS, STEPS, text, whole } from "./rows.ts";
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
import { completion, type ExecutionChange } from "../model/completion_event.ts";
import type { Logger } from "../../base/log.ts";
import type { ListOptions, Page } from "./store.ts";

const FINAL: ReadonlySet<ExecutionStatus> = new Set(["succeeded", "failed", "cancelled"]);

const RENEW = sql((d) =>
  `UPDATE execution SET lease_until = ? WHERE ${d.among("claim_id")} RETURNING claim_id`
);

/** Prolongs claims; answers those that are still held. */
export function* renewExecutionClaims(
  claimIds: readonly string[],
  leaseUntil: number,
): Work<readonly string[]> {
  const held = new Set((yield* all(RENEW, leaseUntil, claimIds)).map((row) => text(row, "claim_id")));
  return claimIds.filter((claimId) => held.has(claimId));
}

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

/** Writes a step and the state after it; `undefined`, and nothing changed, when the claim was lost. */
export function* commitExecution(
  options: ExecutionCommit,
): Work<{ readonly cancelRequested: boolean } | undefined> {
  const { executionId, claimId, step, change, event } = options;
  let row = yield* get(HELD, executionId, claimId);
  if (row === undefined) {
    const commit = commitAll(options);
    row = yield* (event === undefined ? alone(commit) : commit);
    if (row === undefined) return undefined;
  } else {
    const seq = whole(row, "seq");
    const cancelRequested = whole(row, "cancel_requested") !== 0;
    if (step !== undefined) yield* addStep(seq, step);
    yield* changeExecution(seq, change, { ...options, cancelRequested });
    const before = text(row, "status") as ExecutionStatus;
    yield* tallyMove(`execution.${before}`, `execution.${change.status}`);
  }
  if (event !== undefined) yield* addEvent(event, options.now);
  return { cancelRequested: whole(row, "cancel_requested") !== 0 };
}

const ADDED_STEP = `
  stepped AS (INSERT INTO execution_step
      (execution_seq, position, name, kind, status, attempts, started_at, finished_at, result, error)
    SELECT held.seq, CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT),
      CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT) FROM held
    ON CONFLICT (execution_seq, position) DO NOTHING),`;
const GIVEN_UP = ", claim_id = NULL, lease_until = NULL";
const COMMIT = committing("", "");
const COMMIT_RELEASE = committing("", GIVEN_UP);
const COMMIT_STEP = committing(ADDED_STEP, "");
const COMMIT_STEP_RELEASE = committing(ADDED_STEP, GIVEN_UP);

/** All of it in one way to the server and back. */
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
    changed AS (UPDATE execution SET status = ?, step_attempts = ?, started_at = coalesce(?, started_at),
        deadline_at = coalesce(?, deadline_at), finished_at = ?, output = ?, error = ?, voids = 0,
        due_at = CASE WHEN held.cancel_requested = 0 THEN CAST(? AS BIGINT) ELSE CAST(? AS BIGINT) END${release}
      FROM held WHERE execution.seq = held.seq)
    SELECT cancel_requested FROM held`,
  );
}

function commitAll(
  { executionId, claimId, step, change, now, keepClaim }: ExecutionCommit,
): Work<Row | undefined> {
  const { isReleased, dueAt } = after(change, keepClaim);
  const plain = isReleased ? COMMIT_RELEASE : COMMIT;
  const withStep = isReleased ? COMMIT_STEP_RELEASE : COMMIT_STEP;
  return get(
    step === undefined ? plain : withStep,
    executionId,
    claimId,
    ...(step === undefined ? [] : stepValues(step)),
    change.status,
    change.status,
    change.stepAttempts,
    change.startedAt,
    change.deadlineAt,
    change.finishedAt,
    change.output,
    change.error,
    dueAt,
    dueAt === undefined ? undefined : Math.min(dueAt, now),
  );
}

// What is due later is due now; what is not due stays so.
const DUE_BY = "due_at = CASE WHEN due_at > ? THEN ? ELSE due_at END";

const FIND_STATUS = sql((d) => `SELECT seq, status FROM execution WHERE id = ? ${d.lock()}`);
const CANCEL = `UPDATE execution SET cancel_requested = 1, ${DUE_BY} WHERE seq = ?`;

/** Asks that an execution end. */
export function* cancelExecution(id: string, now: number): Work<boolean | undefined> {
  const row = yield* get(FIND_STATUS, id);
  if (row === undefined) return undefined;
  if (FINAL.has(text(row, "status") as ExecutionStatus)) return false;
  yield* run(CANCEL, now, now, whole(row, "seq"));
  return true;
}

/** An execution with its steps. */
export function* findExecution(
  id: string,
): Work<{ readonly execution: Execution; readonly steps: readonly ExecutionStep[] } | undefined> {
  const row = yield* get("SELECT * FROM execution WHERE id = ?", id);
  if (row === undefined) return undefined;
  const steps = yield* stepsOf([row]);
  return { execution: EXECUTIONS.read(row), steps: steps.get(whole(row, "seq")) ?? [] };
}

/** Executions, newest first, with their steps but without the results of these. */
export function listExecutions(options: ListOptions): Work<Page<ListedExecution>> {
  return listPageOf("executions", options, listedExecutionsOf);
}

function* listedExecutionsOf(rows: readonly Row[]): Work<readonly ListedExecution[]> {
  const steps = yield* stepsOf(rows, LISTED_STEPS);
  return rows.map((row) => ({ ...EXECUTIONS.read(row), steps: steps.get(whole(row, "seq")) ?? [] }));
}

const VOID = sql((d) =>
  `WITH portion AS MATERIALIZED (
     SELECT seq FROM execution ${d.by("execution_lease")} WHERE claim_id IS NOT NULL AND lease_until < ?
     ${d.lockFree()})
   UPDATE execution SET claim_id = NULL, lease_until = NULL, voids = voids + 1, ${DUE_BY}
   WHERE seq IN (SELECT seq FROM portion)`
);

/** Takes back claims of executions; answers how many. */
export function voidExecutionClaims(
  { now, which }: VoidOptions,
): Work<number> {
  return run(VOID, which === "all" ? Number.MAX_SAFE_INTEGER : now, now, now);
}

const RELEASE = sql((d) =>
  `UPDATE execution SET claim_id = NULL, lease_until = NULL, ${DUE_BY} WHERE ${d.among("claim_id")}`
);

/** Takes back claims of one's own. */
export function* releaseExecutionClaims(claimIds: readonly string[], now: number): Work<void> {
  yield* run(RELEASE, now, now, claimIds);
}

/** One that cannot be carried out must not hold up the others. */
export function* failWithoutText(
  row: Row,
  { now, logger }: { readonly now: number; readonly logger: Logger },
): Work<void> {
  const execution = EXECUTIONS.read(row);
  logger.error("Cannot carry out an execution: its workflow's text is gone", { execution: execution.id });
  const end = { status: "failed", error: "its workflow's text is gone" } as const;
  const { change, event } = completion(execution, end, { now, eventId: crypto.randomUUID() });
  yield* changeExecution(whole(row, "seq"), change, { now, keepClaim: false, cancelRequested: false });
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

/** The steps of executions, by the number of each. */
export function* stepsOf(
  executions: readonly Row[],
  steps: Sql = ALL_STEPS,
): Work<ReadonlyMap<number, readonly ExecutionStep[]>> {
  if (executions.length === 0) return new Map();
  const rows = yield* all(steps, executions.map((row) => whole(row, "seq")));
  const groups = Map.groupBy(rows, (row) => whole(row, "execution_seq"));
  return new Map([...groups].map(([seq, group]) => [seq, group.map((row) => STEPS.read(row))]));
}

function* addStep(seq: number, step: ExecutionStep): Work<void> {
  yield* run(
    `INSERT INTO execution_step
       (execution_seq, position, name, kind, status, attempts, started_at, finished_at, result, error)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (execution_seq, position) DO NOTHING`,
    seq,
    ...stepValues(step),
  );
}

function stepValues(step: ExecutionStep): readonly Parameter[] {
  const { index, name, kind, status, attempts, startedAt, finishedAt, result, error } = step;
  return [index, name, kind, status, attempts, startedAt, finishedAt, result, error];
}

/** Nobody waits for an execution that is to end, and nobody keeps one that has. */
function after(
  change: ExecutionChange,
  keepClaim: boolean,
): { readonly isReleased: boolean; readonly dueAt: number | undefined } {
  const isOver = FINAL.has(change.status);
  return { isReleased: isOver || !keepClaim, dueAt: isOver ? undefined : change.dueAt };
}

const CHANGED = `status = ?, step_attempts = ?, started_at = coalesce(?, started_at),
  deadline_at = coalesce(?, deadline_at), due_at = ?, finished_at = ?, output = ?, error = ?, voids = 0`;
const CHANGE = `UPDATE execution SET ${CHANGED} WHERE seq = ?`;
const CHANGE_AND_RELEASE =
  `UPDATE execution SET ${CHANGED}, claim_id = NULL, lease_until = NULL WHERE seq = ?`;

function* changeExecution(
  seq: number,
  change: ExecutionChange,
  { now, keepClaim, cancelRequested }: {
    readonly now: number;
    readonly keepClaim: boolean;
    readonly cancelRequested: boolean;
  },
): Work<void> {
  const { isReleased, dueAt } = after(change, keepClaim);
  yield* run(
    isReleased ? CHANGE_AND_RELEASE : CHANGE,
    change.status,
    change.stepAttempts,
    change.startedAt,
    change.deadlineAt,
    dueAt !== undefined && cancelRequested ? Math.min(dueAt, now) : dueAt,
    change.finishedAt,
    change.output,
    change.error,
    seq,
  );
}
