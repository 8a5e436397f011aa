import type { AuditEntry, Replay } from "../../model/records.ts";
import { MAX_RUNNING_REPLAYS } from "../../resources/replay.ts";
import { addAudit } from "./audit_log.ts";
import { countBacklog } from "./backlog.ts";
import { REOPEN, RESEND } from "./deliveries.ts";
import { listPage } from "./lists.ts";
import { replayedEvents, type ReplayPosition, retriedDeliveries } from "./replay_search.ts";
import { integer, RECORDS, text } from "../rows.ts";
import type { ChangeOptions, ListOptions, Page } from "../store.ts";
import { tally, tallyMove } from "./tally.ts";
import { all, get, postgresOnly, type Row, run, type Sql, sql, type Work } from "../work.ts";

/** Replays, newest first. */
export function listReplays(options: ListOptions): Work<Page<Replay>> {
  return listPage("replays", options, RECORDS.replays);
}

/** A replay by its id. */
export function* findReplay(id: string): Work<Replay | undefined> {
  return (yield* all("SELECT * FROM replay WHERE id = ?", id)).map((row) => RECORDS.replays.read(row))[0];
}

// Only one transaction at a time counts the running ones.
const ADD_TURN = postgresOnly("INSERT INTO turn (name) VALUES ('replay') ON CONFLICT (name) DO NOTHING");
const LOCK_TURN = postgresOnly("SELECT name FROM turn WHERE name = 'replay' FOR UPDATE");
const COUNT_RUNNING = "SELECT count(*) AS count FROM replay WHERE state = 'running'";
const ADD_PARTS = `
  INSERT INTO replay_part (replay_seq, endpoint_id, at, position, next_at)
  SELECT replay.seq, endpoint.id, coalesce(replay.since, 0), 0, replay.created_at FROM replay
    CROSS JOIN endpoint
  WHERE replay.id = ? AND (replay.endpoint_id IS NULL OR endpoint.id = replay.endpoint_id)`;

/** Starts a replay, of its endpoint or of all; undefined where its endpoint does not exist. */
export function* startReplay(replay: Replay, audit: AuditEntry): Work<"started" | "too_many" | undefined> {
  yield* run(ADD_TURN);
  yield* all(LOCK_TURN);
  if (integer(yield* get(COUNT_RUNNING), "count") >= MAX_RUNNING_REPLAYS) return "too_many";
  yield* RECORDS.replays.insert(replay);
  const parts = yield* run(ADD_PARTS, replay.id);
  if (parts === 0 && replay.endpointId !== undefined) {
    yield* run("DELETE FROM replay WHERE id = ?", replay.id);
    return undefined;
  }
  if (parts === 0) yield* run(END_OF_ID, "finished", replay.createdAt, replay.id);
  yield* addAudit(audit);
  return "started";
}

const FIND_SEQ = "SELECT seq FROM replay WHERE id = ?";
// Before the replay, as who continues a part does.
const LOCK_PARTS = sql((d) =>
  `SELECT endpoint_id FROM replay_part WHERE replay_seq = ? ORDER BY endpoint_id ${d.lock()}`
);
const REMOVE_PARTS = "DELETE FROM replay_part WHERE replay_seq = ?";
const END_OF_ID = "UPDATE replay SET state = ?, finished_at = ? WHERE id = ? AND state = 'running'";

/** Cancels a replay: what it has created or retried stays. False if it has ended, undefined for none. */
export function* cancelReplay(id: string, { now, audit }: ChangeOptions): Work<boolean | undefined> {
  const row = yield* get(FIND_SEQ, id);
  if (row === undefined) return undefined;
  yield* all(LOCK_PARTS, integer(row, "seq"));
  if ((yield* run(END_OF_ID, "cancelled", now, id)) === 0) return false;
  yield* run(REMOVE_PARTS, integer(row, "seq"));
  yield* addAudit(audit);
  return true;
}

/** Deliveries of an endpoint that are due: a replay adds to them up to this number, so that others wait for few. */
const MAX_DUE = 200;
/** After a step that has filled them up, the next one of a part waits for so long, and longer where none was possible. */
export const STEP_MS = 100;
const FULL_MS = 500;
/** A later time was set before the clock was set back. */
const MAX_WAIT_MS = 60_000;
const IS_DUE = "SELECT 1 AS one FROM replay_part WHERE next_at <= ? OR next_at > ? LIMIT 1";
const NEXT_PART = sql((d) =>
  `SELECT part.endpoint_id AS part_endpoint_id, part.at, part.position, replay.*
   FROM replay_part AS part JOIN replay ON replay.seq = part.replay_seq
   WHERE part.next_at <= ? OR part.next_at > ?
   ORDER BY part.next_at, part.replay_seq, part.endpoint_id LIMIT 1 ${d.lockFree("part")}`
);
const ENDPOINT = sql((d) => `SELECT id, events, data_filter FROM endpoint WHERE id = ? ${d.keyShare()}`);
const COUNT_DUE = sql((d) =>
  `SELECT count(*) AS count FROM (
     SELECT 1 AS one FROM delivery ${d.by("delivery_next")}
     WHERE endpoint_id = ? AND next_at <= ? LIMIT ?) AS due`
);
const MOVE_PART =
  "UPDATE replay_part SET at = ?, position = ?, next_at = ? WHERE replay_seq = ? AND endpoint_id = ?";
const DELAY_PART = "UPDATE replay_part SET next_at = ? WHERE replay_seq = ? AND endpoint_id = ?";
const REMOVE_PART = "DELETE FROM replay_part WHERE replay_seq = ? AND endpoint_id = ?";
const COUNT_DONE = "UPDATE replay SET done = done + ? WHERE seq = ?";
const END = `UPDATE replay SET state = ?, reason = ?, finished_at = ? WHERE seq = ? AND state = 'running'
  AND NOT EXISTS (SELECT 1 FROM replay_part WHERE replay_seq = replay.seq)`;

/** True if a part of a replay may be continued. */
export function* isReplayDue(now: number): Work<boolean> {
  return (yield* get(IS_DUE, now, now + MAX_WAIT_MS)) !== undefined;
}

/** Options of a step of replays. */
interface ContinueOptions {
  readonly now: number;
  readonly newId: () => string;
  /** Most open deliveries of an endpoint that a replay adds to. */
  readonly maxOpen: number;
}

/** A step of a replay: deliveries that are due now. */
export interface ReplayStep {
  readonly endpointId: string;
  readonly count: number;
}

/**
 * Continues a part of a replay that no other process continues, the one that waits longest, by a limited number of
 * rows; undefined where none is due. Deliveries, position and progress are written together, so each row has its turn
 * once.
 */
export function* continueReplay({ now, newId, maxOpen }: ContinueOptions): Work<ReplayStep | undefined> {
  const part = yield* get(NEXT_PART, now, now + MAX_WAIT_MS);
  if (part === undefined) return undefined;
  const endpointId = text(part, "part_endpoint_id");
  const key = [integer(part, "seq"), endpointId] as const;
  const replay = RECORDS.replays.read(part);
  const endpoint = yield* get(ENDPOINT, endpointId);
  if (endpoint === undefined) {
    yield* endPart(key, replay.source === "events" ? "endpoint_deleted" : undefined, now);
    return { endpointId, count: 0 };
  }
  const room = yield* roomOf(replay, { endpointId, now, maxOpen });
  if (room === 0) {
    yield* run(DELAY_PART, now + FULL_MS, ...key);
    return { endpointId, count: 0 };
  }
  const at = { at: integer(part, "at"), seq: integer(part, "position") };
  const { count, next } = yield* STEPS[replay.source]({ replay, endpoint, now, newId, room, position: at });
  yield* run(COUNT_DONE, count, key[0]);
  if (next === undefined) yield* endPart(key, undefined, now);
  else yield* run(MOVE_PART, next.at, next.seq, count < room ? now : now + STEP_MS, ...key);
  return { endpointId, count };
}

/** The number of deliveries that a replay may make due for an endpoint. */
function* roomOf(
  { source, deliveryState }: Replay,
  { endpointId, now, maxOpen }: Pick<ContinueOptions, "now" | "maxOpen"> & { readonly endpointId: string },
): Work<number> {
  const room = MAX_DUE - integer(yield* get(COUNT_DUE, endpointId, now, MAX_DUE), "count");
  // Those that are retried are open already.
  if (room === 0 || source === "deliveries" && deliveryState === "retrying") return room;
  return Math.max(0, Math.min(room, maxOpen - (yield* countBacklog(endpointId, maxOpen))));
}

/** The update of the progress locks the replay: of two that end its last parts, the second one finds none. */
function* endPart(
  key: readonly [replaySeq: number, endpointId: string],
  reason: Replay["reason"],
  now: number,
): Work<void> {
  yield* run(COUNT_DONE, 0, key[0]);
  yield* run(REMOVE_PART, ...key);
  yield* run(END, reason === undefined ? "finished" : "failed", reason, now, key[0]);
}

interface Step {
  readonly replay: Replay;
  readonly endpoint: Row;
  readonly now: number;
  readonly newId: () => string;
  readonly room: number;
  readonly position: ReplayPosition;
}

/** The number of deliveries, and the position after them; none at the end. */
interface StepEnd {
  readonly count: number;
  readonly next: ReplayPosition | undefined;
}

const STEPS: Readonly<Record<Replay["source"], (step: Step) => Work<StepEnd>>> = {
  *events({ replay, endpoint, now, newId, room, position }) {
    const { seqs, next } = yield* replayedEvents(replay, endpoint, { position, max: room, isLocking: true });
    const ids = seqs.map(newId);
    if (ids.length > 0) {
      yield* run(ADD_DELIVERIES, ids, text(endpoint, "id"), now, now, replay.id, seqs);
      yield* tally("delivery.attempting", ids.length);
    }
    return { count: ids.length, next };
  },
  *deliveries({ replay, endpoint, now, room, position }) {
    const options = { position, max: room, isLocking: true };
    const { seqs, next } = yield* retriedDeliveries(replay, text(endpoint, "id"), options);
    if (seqs.length > 0 && replay.deliveryState === "retrying") {
      yield* run(RESEND, now, now, replay.id, seqs);
    } else if (seqs.length > 0) {
      yield* run(REOPEN, now, replay.id, seqs);
      yield* tallyMove("delivery.failed", "delivery.attempting", seqs.length);
    }
    return { count: seqs.length, next };
  },
};

const ADDED = (id: string) => `
  INSERT INTO delivery (id, endpoint_id, event_id, event, state, created_at, slot, due_at, attempts, replay_id)
  SELECT ${id}, CAST(? AS TEXT), event.id, event.kind, 'attempting', CAST(? AS BIGINT), 0, CAST(? AS BIGINT), 0,
    CAST(? AS TEXT)`;
const ADD_DELIVERIES: Sql = {
  sqlite: `${ADDED("CAST(? AS TEXT) ->> taken.key")}
    FROM json_each(?) AS taken CROSS JOIN event ON event.seq = taken.value ORDER BY taken.key`,
  postgres: `${ADDED("(CAST(? AS TEXT[]))[taken.place]")}
    FROM unnest(CAST(? AS BIGINT[])) WITH ORDINALITY AS taken (number, place)
      JOIN event ON event.seq = taken.number ORDER BY taken.place`,
};
