import { KEY_LIVES_MS } from "../../model/key_life.ts";
import { removeAttempts } from "./endpoint_health.ts";
import { removeEpisodes } from "./limit_episodes.ts";
import { integer, text } from "../rows.ts";
import { type Tallied, tally } from "./tally.ts";
import { all, get, postgresOnly, type Row, run, sql, type Work } from "../work.ts";

/** Events that never had a delivery are searched for in this many times `max` rows. */
const SEARCHED_SHARE = 10;

const REMOVE_AUDIT = sql((d) =>
  `WITH portion AS MATERIALIZED (SELECT seq FROM audit WHERE at < ? ORDER BY at LIMIT ? ${d.lockFree()})
   DELETE FROM audit WHERE seq IN (SELECT seq FROM portion)`
);
const REMOVE_KEYS = sql((d) =>
  `WITH portion AS MATERIALIZED (
     SELECT scope, key FROM idempotency WHERE accepted_at <= ? ORDER BY accepted_at LIMIT ? ${d.lockFree()})
   DELETE FROM idempotency WHERE (scope, key) IN (SELECT scope, key FROM portion)`
);

const REMOVE_REPLAYS = sql((d) =>
  `WITH portion AS MATERIALIZED (
     SELECT seq FROM replay WHERE finished_at < ? ORDER BY seq LIMIT ? ${d.lockFree()})
   DELETE FROM replay WHERE seq IN (SELECT seq FROM portion)`
);

/** A request to remove work that ended before `before`, at most `max` rows. */
interface RetentionOptions {
  readonly before: number;
  readonly now: number;
  readonly max: number;
}

/**
 * Removes ended work and replays, unused texts of workflows, expired idempotency keys, old statistics and ended episodes; returns how
 * many rows.
 */
export function* removeFinished({ before, now, max }: RetentionOptions): Work<number> {
  // An event is removed with its last delivery, so the sum may exceed `max` by one.
  let removed = yield* removeDeliveries(before, Math.ceil(max / 2));
  const left = () => Math.max(0, max - removed);
  removed += yield* removeExecutions(before, left());
  removed += yield* removeEvents(before, left());
  removed += yield* run(REMOVE_REPLAYS, before, left());
  removed += yield* run(REMOVE_AUDIT, before, left());
  removed += yield* run(REMOVE_KEYS, now - KEY_LIVES_MS, left());
  removed += yield* removeAttempts(now, left());
  removed += yield* removeEpisodes(now, left());
  return removed;
}

// Locks the events too: of two concurrent removals neither would see that it removes the last delivery.
const REMOVE_DELIVERIES = sql((d) =>
  `WITH portion AS MATERIALIZED (
     SELECT delivery.seq FROM delivery ${d.crossJoin} event ON event.id = delivery.event_id
     WHERE delivery.finished_at < ? AND delivery.resend_at IS NULL AND delivery.claim_id IS NULL
     ORDER BY delivery.finished_at LIMIT ? ${d.lockFree()})
   DELETE FROM delivery WHERE seq IN (SELECT seq FROM portion) RETURNING state, event_id`
);
const REMOVE_EMPTY_EVENTS = sql((d) =>
  `DELETE FROM event WHERE ${d.among("id")} AND created_at < ?
     AND NOT EXISTS (SELECT 1 FROM delivery WHERE delivery.event_id = event.id)`
);

function* removeDeliveries(before: number, max: number): Work<number> {
  const rows = yield* all(REMOVE_DELIVERIES, before, max);
  if (rows.length === 0) return 0;
  yield* tallyRemoved("delivery", rows.map((row) => text(row, "state")));
  return rows.length + (yield* run(REMOVE_EMPTY_EVENTS, distinct(rows, "event_id"), before));
}

const REMOVE_EXECUTIONS = sql((d) =>
  `WITH portion AS MATERIALIZED (
     SELECT seq FROM execution WHERE finished_at < ? ORDER BY finished_at LIMIT ? ${d.lockFree()})
   DELETE FROM execution WHERE seq IN (SELECT seq FROM portion) RETURNING status, version_id`
);
// Waits for concurrent starts of executions, so that the next statement sees them.
const LOCK_VERSIONS = postgresOnly(
  "SELECT id FROM workflow_version WHERE id = ANY(?) ORDER BY id FOR UPDATE",
);
const REMOVE_UNUSED_VERSIONS = sql((d) =>
  `DELETE FROM workflow_version WHERE ${d.among("id")}
     AND NOT EXISTS (SELECT 1 FROM execution WHERE execution.version_id = workflow_version.id)`
);

/** Removes the text of a workflow with its last execution; a new execution saves it again. */
function* removeExecutions(before: number, max: number): Work<number> {
  const rows = yield* all(REMOVE_EXECUTIONS, before, max);
  if (rows.length === 0) return 0;
  yield* tallyRemoved("execution", rows.map((row) => text(row, "status")));
  const versions = distinct(rows, "version_id");
  yield* all(LOCK_VERSIONS, versions);
  yield* run(REMOVE_UNUSED_VERSIONS, versions);
  return rows.length;
}

const SWEPT = sql((d) => `SELECT at, seq FROM swept WHERE name = 'event' ${d.lock()}`);
const SWEEP = sql((d) =>
  `SELECT seq, created_at,
     CASE WHEN EXISTS (SELECT 1 FROM delivery WHERE delivery.event_id = event.id) THEN 0 ELSE 1 END AS idle
   FROM event ${d.by("event_created")}
   WHERE created_at < ? AND (created_at, seq) > (?, ?) ORDER BY created_at, seq LIMIT ?`
);
const REMOVE_EVENTS = sql((d) => `DELETE FROM event WHERE ${d.among("seq")}`);
const KEEP_POSITION = `INSERT INTO swept (name, at, seq) VALUES ('event', ?, ?)
  ON CONFLICT (name) DO UPDATE SET at = excluded.at, seq = excluded.seq`;

/** Removes events without deliveries. Each is examined once: the next call begins where this one ends. */
function* removeEvents(before: number, max: number): Work<number> {
  if (max <= 0) return 0;
  const kept = yield* get(SWEPT);
  // Events may be older than the position after a clock was set back.
  const position = kept !== undefined && integer(kept, "at") < before
    ? [integer(kept, "at"), integer(kept, "seq")]
    : [Number.MIN_SAFE_INTEGER, 0];
  const rows = yield* all(SWEEP, before, ...position, SEARCHED_SHARE * max);
  const idle = rows.filter((row) => integer(row, "idle") !== 0).slice(0, max);
  const last = idle.length === max ? idle.at(-1) : rows.at(-1);
  if (last === undefined) return 0;
  yield* run(KEEP_POSITION, integer(last, "created_at"), integer(last, "seq"));
  return idle.length === 0 ? 0 : yield* run(REMOVE_EVENTS, idle.map((row) => integer(row, "seq")));
}

function distinct(rows: readonly Row[], column: string): readonly string[] {
  return [...new Set(rows.map((row) => text(row, column)))].sort();
}

function* tallyRemoved(kind: "delivery" | "execution", states: readonly string[]): Work<void> {
  for (const [state, { length }] of Map.groupBy(states, (state) => state)) {
    yield* tally(`${kind}.${state}` as Tallied, -length);
  }
}
