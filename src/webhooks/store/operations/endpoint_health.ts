import { timeTextIf } from "../../../base/rfc3339.ts";
import type { AuditAction } from "../../resources/audit_entry.ts";
import type { ATTEMPT_HOUR } from "../../resources/endpoint.ts";
import type { Shown } from "../../resources/field.ts";
import {
  afterAttempts,
  type AttemptSummary,
  type AttemptSums,
  type FailureRun,
  type HealthChange,
  NO_FAILURES,
} from "../../model/endpoint_health.ts";
import type { DisabledReason } from "../../model/records.ts";
import { endpointEvent, type ReportedEvent } from "../../model/endpoint_events.ts";
import { addOperationalEvents } from "./add_events.ts";
import { addAudit } from "./audit_log.ts";
import { integer, RECORDS, text } from "../rows.ts";
import {
  all,
  get,
  type Parameter,
  postgresOnly,
  type Row,
  run,
  sql,
  sqliteOnly,
  type Work,
} from "../work.ts";

/** The attempts of an endpoint since they were recorded last. */
export interface EndpointAttempts {
  readonly endpointId: string;
  readonly summary: AttemptSummary;
}

/** For the recording of attempts. */
interface RecordAttemptsOptions {
  readonly now: number;
  readonly newId: () => string;
  /** An endpoint whose attempts only fail for this long is disabled; 0 for never. */
  readonly disableAfterMs: number;
}

/** A change of an endpoint's health. */
export interface ChangedEndpoint {
  readonly endpointId: string;
  readonly change: HealthChange;
  /** The failures that it is about. */
  readonly run: FailureRun;
}

/** The changes of endpoints, and the endpoints that have deliveries of events about them. */
interface RecordedAttempts {
  readonly changed: readonly ChangedEndpoint[];
  readonly wokenIds: readonly string[];
}

/** The attempts of an endpoint in the last hour and day. */
export interface EndpointStatistics {
  readonly run: FailureRun;
  readonly hour: AttemptSums;
  readonly day: AttemptSums;
}

/** The attempts of an endpoint in one hour. */
type AttemptHour = Shown<typeof ATTEMPT_HOUR>;

/** Attempts are counted in steps of this length. */
export const STEP_MS = 600_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const NO_SUMS: AttemptSums = { succeeded: 0, failed: 0, answered: 0, totalMs: 0, maxMs: 0 };
/** The statistics of an endpoint without attempts. */
export const NO_STATISTICS: EndpointStatistics = { run: NO_FAILURES, hour: NO_SUMS, day: NO_SUMS };

const COLUMNS = "endpoint_id, at, succeeded, failed, answered, total_ms, max_ms";
/** Adds to the row of a step; `max` is the function that returns the larger of two values. */
function adding(max: "max" | "greatest"): string {
  const sums = ["succeeded", "failed", "answered", "total_ms"]
    .map((name) => `${name} = endpoint_attempts.${name} + excluded.${name}`);
  const longest = `max_ms = ${max}(endpoint_attempts.max_ms, excluded.max_ms)`;
  return `ON CONFLICT (endpoint_id, at) DO UPDATE SET ${[...sums, longest].join(", ")}`;
}
// An endpoint may have been deleted since its attempt.
const ADD_ROWS = sqliteOnly(`
  INSERT INTO endpoint_attempts (${COLUMNS})
  SELECT endpoint.id, ?, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
  FROM json_each(?) CROSS JOIN endpoint ON endpoint.id = value ->> 0 WHERE TRUE ${adding("max")}`);
const ADD_LISTS = postgresOnly(`
  INSERT INTO endpoint_attempts (${COLUMNS})
  SELECT endpoint.id, CAST(? AS BIGINT), succeeded, failed, answered, total_ms, max_ms
  FROM unnest(CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]),
      CAST(? AS BIGINT[])) AS given (endpoint_id, succeeded, failed, answered, total_ms, max_ms)
    JOIN endpoint ON endpoint.id = given.endpoint_id
  ORDER BY endpoint.id FOR KEY SHARE OF endpoint ${adding("greatest")}`);

const ADD_RUNS = sql((d) =>
  `INSERT INTO endpoint_health (endpoint_id, failures, failing_ms, is_reported)
   SELECT id, 0, 0, 0 FROM endpoint WHERE ${d.among("id")} ORDER BY id ${d.keyShare()}
   ON CONFLICT (endpoint_id) DO NOTHING`
);
// In one order, to avoid deadlocks.
const RUNS = sql((d) =>
  `SELECT * FROM endpoint_health WHERE ${d.among("endpoint_id")} ORDER BY endpoint_id ${d.lock()}`
);
const CHANGE_ROWS = sqliteOnly(`
  UPDATE endpoint_health SET failures = value ->> 1, failing_since = value ->> 2, last_failure_at = value ->> 3,
    failing_ms = value ->> 4, is_reported = value ->> 5
  FROM json_each(?) WHERE endpoint_id = value ->> 0`);
const CHANGE_LISTS = postgresOnly(`
  UPDATE endpoint_health SET failures = given.failures, failing_since = given.failing_since,
    last_failure_at = given.last_failure_at, failing_ms = given.failing_ms, is_reported = given.is_reported
  FROM unnest(CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]),
    CAST(? AS INTEGER[])) AS given (endpoint_id, failures, failing_since, last_failure_at, failing_ms, is_reported)
  WHERE endpoint_health.endpoint_id = given.endpoint_id`);
const DISABLE = `UPDATE endpoint SET enabled = 0, disabled_at = ?, disabled_reason = ?, updated_at = ?
  WHERE id = ? AND enabled = 1`;
// Not for the answer to an attempt before the last change, such as of its URL.
const DISABLE_GONE = `${DISABLE} AND updated_at <= ?`;

/** Adds attempts to the statistics of their endpoints, and reports and disables those that only fail. */
export function* recordAttempts(
  attempts: readonly EndpointAttempts[],
  { now, newId, disableAfterMs }: RecordAttemptsOptions,
): Work<RecordedAttempts> {
  if (attempts.length === 0) return { changed: [], wokenIds: [] };
  const summaries = new Map(attempts.map(({ endpointId, summary }) => [endpointId, summary]));
  yield* addAttempts(attempts, now);
  const failing = attempts.filter(({ summary }) => summary.failures !== undefined);
  if (failing.length > 0) yield* run(ADD_RUNS, failing.map(({ endpointId }) => endpointId));
  const runs: [endpointId: string, run: FailureRun][] = [];
  const changed: ChangedEndpoint[] = [];
  const events: ReportedEvent[] = [];
  for (const row of yield* all(RUNS, [...summaries.keys()])) {
    const endpointId = text(row, "endpoint_id");
    const summary = summaries.get(endpointId);
    const before = RECORDS.failureRuns.read(row);
    if (
      summary === undefined || (summary.failures === undefined && before.failures === 0 && !before.isReported)
    ) {
      continue;
    }
    const after = afterAttempts(before, summary, { disableAfterMs });
    runs.push([endpointId, after.run]);
    for (const change of after.changes) {
      const one = { endpointId, change, run: change === "recovered" ? before : after.run };
      // It may be disabled already.
      const { goneAt = now } = summary.failures ?? {};
      if (change === "disabled" && !(yield* disable(one, "failing", { now, newId }))) continue;
      if (change === "gone" && !(yield* disable(one, "gone", { now, newId, goneAt }))) continue;
      changed.push(one);
      const isReported = change === "recovered" || summary.failures?.areReportable === true;
      if (isReported) events.push(endpointEvent(change, { ...one, now, eventId: newId() }));
    }
  }
  yield* changeRuns(runs);
  return { changed, wokenIds: yield* addOperationalEvents(events, now) };
}

function* addAttempts(attempts: readonly EndpointAttempts[], now: number): Work<void> {
  const at = now - now % STEP_MS;
  const rows = attempts.map(({ endpointId, summary }) => {
    const { succeeded, failed, answered, totalMs, maxMs } = summary;
    return [endpointId, succeeded, failed, answered, Math.round(totalMs), Math.round(maxMs)];
  });
  // Each database skips the statement of the other.
  yield* run(ADD_LISTS, at, ...transposed(rows));
  yield* run(ADD_ROWS, at, JSON.stringify(rows));
}

function* changeRuns(runs: readonly (readonly [endpointId: string, run: FailureRun])[]): Work<void> {
  if (runs.length === 0) return;
  const rows = runs.map(([endpointId, { failures, failingSince, lastFailureAt, failingMs, isReported }]) => {
    return [endpointId, failures, failingSince, lastFailureAt, Math.round(failingMs), isReported ? 1 : 0];
  });
  yield* run(CHANGE_LISTS, ...transposed(rows));
  yield* run(CHANGE_ROWS, JSON.stringify(rows));
}

interface DisableOptions {
  readonly now: number;
  readonly newId: () => string;
  /** The start of the attempt that showed it. */
  readonly goneAt?: number;
}

function* disable(
  { endpointId, run: { failingSince, failures } }: ChangedEndpoint,
  reason: DisabledReason,
  { now, newId, goneAt }: DisableOptions,
): Work<boolean> {
  const values = [now, reason, now, endpointId];
  const changed = goneAt === undefined
    ? yield* run(DISABLE, ...values)
    : yield* run(DISABLE_GONE, ...values, goneAt);
  if (changed === 0) return false;
  yield* addAudit({
    id: newId(),
    at: now,
    actor: "system",
    action: "endpoint.disabled" satisfies AuditAction,
    object: `endpoint:${endpointId}`,
    details: { reason, failingSince: timeTextIf(failingSince), consecutiveFailures: failures },
  });
  return true;
}

type Value = string | number | undefined;

function transposed(rows: readonly (readonly Value[])[]): readonly Parameter[] {
  return (rows[0] ?? []).map((_, column) => rows.map((row) => row[column]));
}

// A step counts as long as a part of it is in the time.
const SUMS = sql((d) =>
  `SELECT endpoint_id, CASE WHEN at > ? THEN 1 ELSE 0 END AS recent, CAST(sum(succeeded) AS BIGINT) AS succeeded,
     CAST(sum(failed) AS BIGINT) AS failed, CAST(sum(answered) AS BIGINT) AS answered,
     CAST(sum(total_ms) AS BIGINT) AS total_ms, max(max_ms) AS max_ms
   FROM endpoint_attempts WHERE ${d.among("endpoint_id")} AND at > ? GROUP BY endpoint_id, recent`
);
const RUNS_OF = sql((d) => `SELECT * FROM endpoint_health WHERE ${d.among("endpoint_id")}`);

/** The statistics of endpoints by their ids; each id has some. */
export function* endpointStatistics(
  ids: readonly string[],
  now: number,
): Work<ReadonlyMap<string, EndpointStatistics>> {
  const runs = new Map(
    (yield* all(RUNS_OF, ids)).map((row) => [text(row, "endpoint_id"), RECORDS.failureRuns.read(row)]),
  );
  const rows = yield* all(SUMS, now - HOUR_MS - STEP_MS, ids, now - DAY_MS - STEP_MS);
  const sums = Map.groupBy(rows, (row) => text(row, "endpoint_id"));
  return new Map(ids.map((id) => {
    const parts = sums.get(id) ?? [];
    const recent = parts.filter((row) => integer(row, "recent") !== 0);
    return [id, { run: runs.get(id) ?? NO_FAILURES, hour: sumOf(recent), day: sumOf(parts) }];
  }));
}

const HOURS = `
  SELECT at - at % ${HOUR_MS} AS hour, CAST(sum(succeeded) AS BIGINT) AS succeeded,
    CAST(sum(failed) AS BIGINT) AS failed
  FROM endpoint_attempts WHERE endpoint_id = ? AND at >= ? GROUP BY hour ORDER BY hour`;

/** The attempts of an endpoint in the current hour and the 23 before it, without hours that have none. */
export function* attemptHours(endpointId: string, now: number): Work<readonly AttemptHour[]> {
  const since = now - now % HOUR_MS - (DAY_MS - HOUR_MS);
  return (yield* all(HOURS, endpointId, since)).map((row) => ({
    at: integer(row, "hour"),
    succeeded: integer(row, "succeeded"),
    failed: integer(row, "failed"),
  }));
}

/** The number of failed attempts of an endpoint since its last success. */
export function* failuresOf(endpointId: string): Work<number> {
  const row = yield* get("SELECT failures FROM endpoint_health WHERE endpoint_id = ?", endpointId);
  return row === undefined ? 0 : integer(row, "failures");
}

const FORGET =
  `UPDATE endpoint_health SET failures = 0, failing_since = NULL, last_failure_at = NULL, failing_ms = 0
  WHERE endpoint_id = ?`;

/** Forgets the failures of an endpoint that is enabled again. That they were reported stays: so is its recovery. */
export function* forgetFailures(endpointId: string): Work<void> {
  yield* run(FORGET, endpointId);
}

const REMOVE_ATTEMPTS = sql((d) =>
  `WITH portion AS MATERIALIZED (
     SELECT endpoint_id, at FROM endpoint_attempts WHERE at <= ? ORDER BY at LIMIT ? ${d.lockFree()})
   DELETE FROM endpoint_attempts WHERE (endpoint_id, at) IN (SELECT endpoint_id, at FROM portion)`
);

/** Removes statistics that no period has any more; returns how many rows. */
export function removeAttempts(now: number, max: number): Work<number> {
  return run(REMOVE_ATTEMPTS, now - DAY_MS - STEP_MS, max);
}

function sumOf(rows: readonly Row[]): AttemptSums {
  return rows.reduce((sum, row) => ({
    succeeded: sum.succeeded + integer(row, "succeeded"),
    failed: sum.failed + integer(row, "failed"),
    answered: sum.answered + integer(row, "answered"),
    totalMs: sum.totalMs + integer(row, "total_ms"),
    maxMs: Math.max(sum.maxMs, integer(row, "max_ms")),
  }), NO_SUMS);
}
