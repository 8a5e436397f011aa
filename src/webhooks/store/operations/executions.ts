import type { Logger } from "../../../base/log.ts";
import { completion, type ExecutionChange } from "../../model/completion_event.ts";
import type {
  Execution,
  ExecutionStatus,
  ExecutionStep,
  ListedExecution,
  NewEvent,
} from "../../model/records.ts";
import { addAllEvents } from "./add_events.ts";
import { CompoundStatement } from "../compound_statement.ts";
import {
  firstOfEach,
  HELD_CALLS,
  heldClaims,
  renewing,
  tallyingMoves,
  type VoidOptions,
} from "./delivery_claims.ts";
import { APART, listed } from "../list_operation.ts";
import { listPageOf } from "./lists.ts";
import { integer, RECORDS, text } from "../rows.ts";
import type { ListOptions, Page } from "../store.ts";
import { tallyMoveInSqlite } from "./tally.ts";
import { all, get, type Row, run, type Sql, sql, type Work } from "../work.ts";

const FINAL: ReadonlySet<ExecutionStatus> = new Set(["succeeded", "failed", "cancelled"]);

/** Extends claims; returns those that are still held. */
export const renewExecutionClaims = renewing("execution");

/** A change of an execution under its claim. */
export interface ExecutionCommit {
  readonly executionId: string;
  readonly claimId: string;
  readonly now: number;
  /** A step that is over. */
  readonly step?: ExecutionStep | undefined;
  readonly change: ExecutionChange;
  /** Of a final status; it is written with its deliveries. */
  readonly event?: NewEvent | undefined;
  /** True if the work continues under the same claim. */
  readonly keepClaim: boolean;
}

const CHANGED_STEPS = "step JOIN changed ON changed.place = step.place";
const COMMIT = new CompoundStatement({
  given: {
    asked: {
      id: "TEXT",
      claim: "TEXT",
      state: "TEXT",
      step_attempts: "BIGINT",
      deadline_at: "BIGINT",
      finished_at: "BIGINT",
      output: "TEXT",
      error: "TEXT",
      due_at: "BIGINT",
      due_now: "BIGINT",
      released: "BIGINT",
    },
    step: {
      position: "BIGINT",
      name: "TEXT",
      kind: "TEXT",
      status: "TEXT",
      attempts: "BIGINT",
      started_at: "BIGINT",
      finished_at: "BIGINT",
      result: "TEXT",
      error: "TEXT",
    },
  },
  parts: {
    // SQLite finds them by the change.
    held: {
      text: `SELECT asked.place, asked.state, execution.status AS before
        FROM asked, execution WHERE execution.id = asked.id AND execution.claim_id = asked.claim {}`,
      from: "asked",
      order: "ORDER BY execution.seq FOR UPDATE OF execution",
      inSqlite: { as: "asked" },
    },
    tallied: tallyingMoves("execution"),
    changed: {
      text: `UPDATE execution SET status = asked.state, step_attempts = asked.step_attempts,
          deadline_at = coalesce(asked.deadline_at, execution.deadline_at),
          finished_at = asked.finished_at, output = asked.output, error = asked.error, voids = 0,
          due_at = CASE WHEN cancel_requested = 0 THEN asked.due_at ELSE asked.due_now END,
          claim_id = CASE WHEN asked.released = 0 THEN claim_id END,
          lease_until = CASE WHEN asked.released = 0 THEN lease_until END
        FROM ${HELD_CALLS} WHERE execution.id = asked.id AND execution.claim_id = asked.claim
        RETURNING asked.place, execution.seq, cancel_requested`,
      from: HELD_CALLS,
    },
    stepped: {
      text: `INSERT INTO execution_step
          (execution_seq, position, name, kind, status, attempts, started_at, finished_at, result, error)
        SELECT changed.seq, step.position, step.name, step.kind, step.status, step.attempts, step.started_at,
          step.finished_at, step.result, step.error
        FROM ${CHANGED_STEPS} {} ON CONFLICT (execution_seq, position) DO NOTHING`,
      from: CHANGED_STEPS,
    },
  },
  answers: ["changed"],
  columns: "place, cancel_requested",
});

/**
 * Writes a step and the state after it; returns whether cancelling was requested, or `undefined`, with nothing changed,
 * when the claim was lost.
 */
export const commitExecution = listed<
  readonly [ExecutionCommit],
  { readonly cancelRequested: boolean } | undefined
>({
  bytes: ({ step, change, event }) =>
    (step?.result ?? "").length + (change.output ?? "").length + (event?.body.length ?? 0),
  *work(calls) {
    const firsts = firstOfEach(calls, ([{ executionId }]) => executionId);
    const commits = [...firsts].map(([commit]) => commit);
    const asked = commits.map((commit, place) => ({ place, ...rowOfCommit(commit) }));
    const step = commits.flatMap(({ step }, place) =>
      step === undefined ? [] : [{ place, ...rowOfStep(step) }]
    );
    const isAlone = commits.every(({ event }) => event === undefined);
    const rows = yield* COMMIT.run({ asked, step }, isAlone);
    const held = new Map(rows.map((row) => [commits[integer(row, "place")]?.executionId, row]));
    for (const { executionId, change } of commits) {
      // Its claim has started it.
      if (held.has(executionId)) yield* tallyMoveInSqlite("execution.running", `execution.${change.status}`);
    }
    yield* addAllEvents(
      commits.flatMap(({ executionId, event, now }) =>
        event !== undefined && held.has(executionId) ? [[event, { now }] as const] : []
      ),
    );
    return calls.map((call) => {
      if (!firsts.has(call)) return APART;
      const row = held.get(call[0].executionId);
      return row && { cancelRequested: integer(row, "cancel_requested") !== 0 };
    });
  },
});

/** A changed execution is due at `due_at`, or at `due_now` if it is to be cancelled, which waits for nothing. */
function rowOfCommit({ executionId, claimId, change, now, keepClaim }: ExecutionCommit) {
  const isFinal = FINAL.has(change.status);
  const dueAt = isFinal ? undefined : change.dueAt;
  return {
    id: executionId,
    claim: claimId,
    state: change.status,
    step_attempts: change.stepAttempts,
    deadline_at: change.deadlineAt,
    finished_at: change.finishedAt,
    output: change.output,
    error: change.error,
    due_at: dueAt,
    due_now: dueAt === undefined ? undefined : Math.min(dueAt, now),
    // A final one has no claim.
    released: isFinal || !keepClaim,
  };
}

function rowOfStep({ index, startedAt, finishedAt, ...same }: ExecutionStep) {
  return { ...same, position: index, started_at: startedAt, finished_at: finishedAt };
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
  yield* commitExecution({ executionId, claimId, change, now, event, keepClaim: false });
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
