import { dueAfter, type FinishedAttempt, RELEASED } from "../operations/delivery_claims.ts";
import { afterCommit, type ExecutionCommit } from "../operations/executions.ts";
import { integer, text } from "../rows.ts";
import { all, alone, postgresOnly, type Row, type Work } from "../work.ts";
import { ALONE } from "./call_groups.ts";
import { GivenRows } from "./given_rows.ts";
import { addEvents, type EventCall } from "./grouped_accepts.ts";

/** Adds to the tally what moved from one state to another; in one row for each. */
function tallying(kind: "delivery" | "execution"): string {
  return `tallied AS (
    INSERT INTO tally (name, count)
    SELECT '${kind}.' || moved.state, sum(moved.count) FROM held
      CROSS JOIN LATERAL (VALUES (held.before, -1), (held.state, 1)) AS moved (state, count)
    WHERE held.before <> held.state GROUP BY moved.state HAVING sum(moved.count) <> 0 ORDER BY moved.state)`;
}

const FINISHED = new GivenRows("asked", {
  ...{ id: "TEXT", claim: "TEXT", number: "BIGINT", ended_at: "BIGINT", result: "TEXT", status: "BIGINT" },
  ...{ error_kind: "TEXT", error: "TEXT", response: "TEXT" },
  // Of the delivery; without a state it stays as it is.
  ...{ state: "TEXT", slot: "BIGINT", first_failure_at: "BIGINT", due_at: "BIGINT", finished_at: "BIGINT" },
  ...{ reason: "TEXT" },
});
const FINISH = postgresOnly(`
  WITH ${FINISHED.sql},
  held AS MATERIALIZED (
    SELECT delivery.seq, delivery.state AS before, asked.*
    FROM asked JOIN delivery ON delivery.id = asked.id AND delivery.claim_id = asked.claim
    ORDER BY delivery.seq FOR UPDATE OF delivery),
  closed AS (
    UPDATE attempt SET finished_at = held.ended_at, result = held.result, status = held.status,
      error_kind = held.error_kind, error = held.error, response = held.response
    FROM held WHERE attempt.delivery_seq = held.seq AND attempt.number = held.number),
  ${tallying("delivery")},
  changed AS (
    UPDATE delivery SET ${RELEASED},
      state = coalesce(held.state, delivery.state), slot = coalesce(held.slot, delivery.slot),
      first_failure_at = coalesce(held.first_failure_at, delivery.first_failure_at),
      due_at = CASE WHEN held.state IS NULL THEN delivery.due_at ELSE held.due_at END,
      finished_at = CASE WHEN held.state IS NULL THEN delivery.finished_at ELSE held.finished_at END,
      reason = CASE WHEN held.state IS NULL THEN delivery.reason ELSE held.reason END
    FROM held WHERE delivery.seq = held.seq)
  SELECT id FROM held`);

/** `finishAttempt` of several attempts. */
export function* finishAttempts(
  calls: readonly (readonly [FinishedAttempt])[],
): Work<readonly (boolean | typeof ALONE)[]> {
  const { firsts, isFirst } = firstOfEach(calls, ([{ deliveryId }]) => deliveryId);
  const given = firsts.map(([{ deliveryId, claimId, number, outcome, change }]) => ({
    ...{ id: deliveryId, claim: claimId, number, ended_at: outcome.finishedAt, result: outcome.result },
    ...{ status: outcome.status, error_kind: outcome.errorKind, error: outcome.error },
    ...{ response: outcome.response, state: change?.state, slot: change?.slot },
    ...{ first_failure_at: change?.firstFailureAt, due_at: change && dueAfter(change) },
    ...{ finished_at: change?.finishedAt, reason: change?.reason },
  }));
  const held = idsOf(yield* alone(all(FINISH, ...FINISHED.parameters(given))));
  return calls.map((call) => isFirst(call) ? held.has(call[0].deliveryId) : ALONE);
}

const COMMITTED = new GivenRows("asked", {
  ...{ id: "TEXT", claim: "TEXT", state: "TEXT", step_attempts: "BIGINT" },
  ...{ deadline_at: "BIGINT", finished_at: "BIGINT", output: "TEXT", error: "TEXT" },
  ...{ due_at: "BIGINT", due_now: "BIGINT", released: "BIGINT" },
});
const STEPS = new GivenRows("step", {
  ...{ id: "TEXT", position: "BIGINT", name: "TEXT", kind: "TEXT", status: "TEXT", attempts: "BIGINT" },
  ...{ started_at: "BIGINT", finished_at: "BIGINT", result: "TEXT", error: "TEXT" },
});
const COMMIT = postgresOnly(`
  WITH ${COMMITTED.sql},
  ${STEPS.sql},
  held AS MATERIALIZED (
    SELECT execution.seq, execution.status AS before, execution.cancel_requested, asked.*
    FROM asked JOIN execution ON execution.id = asked.id AND execution.claim_id = asked.claim
    ORDER BY execution.seq FOR UPDATE OF execution),
  stepped AS (
    INSERT INTO execution_step
      (execution_seq, position, name, kind, status, attempts, started_at, finished_at, result, error)
    SELECT held.seq, step.position, step.name, step.kind, step.status, step.attempts, step.started_at,
      step.finished_at, step.result, step.error
    FROM step JOIN held ON held.id = step.id
    ON CONFLICT (execution_seq, position) DO NOTHING),
  ${tallying("execution")},
  changed AS (
    UPDATE execution SET status = held.state, step_attempts = held.step_attempts,
      deadline_at = coalesce(held.deadline_at, execution.deadline_at),
      finished_at = held.finished_at, output = held.output, error = held.error, voids = 0,
      due_at = CASE WHEN held.cancel_requested = 0 THEN held.due_at ELSE held.due_now END,
      claim_id = CASE WHEN held.released = 0 THEN execution.claim_id END,
      lease_until = CASE WHEN held.released = 0 THEN execution.lease_until END
    FROM held WHERE execution.seq = held.seq)
  SELECT id, cancel_requested FROM held`);

type Committed = { readonly cancelRequested: boolean } | undefined;

/** `commitExecution` of several executions. */
export function* commitExecutions(
  calls: readonly (readonly [ExecutionCommit])[],
): Work<readonly (Committed | typeof ALONE)[]> {
  const { firsts, isFirst } = firstOfEach(calls, ([{ executionId }]) => executionId);
  const commits = firsts.map(([commit]) => commit);
  const statement = all(
    COMMIT,
    ...COMMITTED.parameters(commits.map(rowOfCommit)),
    ...STEPS.parameters(commits.flatMap(rowsOfStep)),
  );
  const rows = yield* (commits.some(({ event }) => event !== undefined) ? statement : alone(statement));
  const held = new Map(rows.map((row) => [text(row, "id"), integer(row, "cancel_requested") !== 0]));
  const events = commits.flatMap(({ executionId, event, now }): readonly EventCall[] =>
    event !== undefined && held.has(executionId) ? [[event, { now }]] : []
  );
  for (let rest = events; rest.length > 0;) {
    const added = yield* addEvents(rest);
    rest = rest.filter((call) => !added.has(call));
  }
  return calls.map((call) => {
    if (!isFirst(call)) return ALONE;
    const cancelRequested = held.get(call[0].executionId);
    return cancelRequested === undefined ? undefined : { cancelRequested };
  });
}

function rowOfCommit(commit: ExecutionCommit) {
  const { status, stepAttempts, deadlineAt, finishedAt, output, error } = commit.change;
  const { isReleased, dueAt, dueNow } = afterCommit(commit);
  return {
    ...{ id: commit.executionId, claim: commit.claimId, state: status, step_attempts: stepAttempts },
    ...{ deadline_at: deadlineAt, finished_at: finishedAt, output, error },
    ...{ due_at: dueAt, due_now: dueNow, released: isReleased },
  };
}

function rowsOfStep({ executionId, step }: ExecutionCommit) {
  if (step === undefined) return [];
  const { index, name, kind, status, attempts, startedAt, finishedAt, result, error } = step;
  const times = { started_at: startedAt, finished_at: finishedAt };
  return [{ id: executionId, position: index, name, kind, status, attempts, ...times, result, error }];
}

/** A statement can change a row only once. */
function firstOfEach<C>(calls: readonly C[], idOf: (call: C) => string) {
  const firsts = new Map<string, C>();
  for (const call of calls) if (!firsts.has(idOf(call))) firsts.set(idOf(call), call);
  return { firsts: [...firsts.values()], isFirst: (call: C) => firsts.get(idOf(call)) === call };
}

function idsOf(rows: readonly Row[]): ReadonlySet<string> {
  return new Set(rows.map((row) => text(row, "id")));
}
