import type { ReportedEvent } from "../../model/endpoint_events.ts";
import { eventBody } from "../../model/event.ts";
import { beginningJson, endingJson, type Episode, OPERATIONAL_KINDS } from "../../model/operational_event.ts";
import { addOperationalEvents } from "./add_events.ts";
import { integer, text } from "../rows.ts";
import { all, ConflictError, get, type Row, run, sql, type Work } from "../work.ts";

/** A report of an episode whose key is hidden and whose values are redacted. */
export interface EpisodeReport {
  readonly id: string;
  readonly event: "over_limit" | "near_limit";
  readonly hits: number;
  readonly startedAt: number;
  readonly endsAt: number;
  /** Of the first report of a process: the shared facts as JSON text, and when the key is free again. */
  readonly first?: { readonly facts: string; readonly freeAt: number } | undefined;
}

/** A batch of a process, and what it is written with. */
export interface ReportOptions {
  readonly reporter: string;
  readonly number: number;
  readonly reports: readonly EpisodeReport[];
  readonly events: readonly { readonly kind: string; readonly json: string }[];
  readonly now: number;
  readonly newId: () => string;
}

/** The end of episodes. */
interface EndOptions {
  readonly now: number;
  readonly max: number;
  readonly newId: () => string;
}

interface StoredEpisode extends Episode {
  readonly event: string;
  readonly facts: string;
  readonly isClosed: boolean;
}

/**
 * An episode goes on for so long after the end that is stored: a process reports its further hits every ten seconds, and
 * a little later if it is busy. Until then neither its end is an event, nor a first report of another process.
 */
export const EPISODE_GRACE_MS = 15_000;

interface WriteOptions {
  readonly now: number;
  readonly newId: () => string;
}

const ADD_BATCH = `INSERT INTO reporter (id, batch, at) VALUES (?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = excluded.at WHERE reporter.batch < excluded.batch`;
const KNOWN = sql((d) => `SELECT * FROM limit_episode WHERE ${d.among("id")} ORDER BY id ${d.lock()}`);
const ADD = `INSERT INTO limit_episode (id, event, started_at, ends_at, hits, facts, closed)
  VALUES (?, ?, ?, ?, ?, ?, 0) ON CONFLICT (id) DO NOTHING`;
const BEGIN_AGAIN =
  "UPDATE limit_episode SET started_at = ?, ends_at = ?, hits = ?, facts = ?, closed = 0 WHERE id = ?";
const EXTEND = "UPDATE limit_episode SET ends_at = ?, hits = ?, closed = 0 WHERE id = ?";

/**
 * Writes what a process reports, once for each batch: the first report of an episode over all processes becomes an
 * event, and further ones add their hits. Returns the endpoints that events go to.
 */
export function* takeReports({ reporter, number, reports, events, now, newId }: ReportOptions): Work<
  readonly string[]
> {
  if ((yield* run(ADD_BATCH, reporter, number, now)) === 0) return [];
  const reported = events.map(({ kind, json }) => eventOf(kind, json, newId));
  if (reports.length > 0) reported.push(...yield* writeEpisodes(reports, { now, newId }));
  return yield* addOperationalEvents(reported, now);
}

/** Writes the episodes of reports; returns their events. */
function* writeEpisodes(
  reports: readonly EpisodeReport[],
  options: WriteOptions,
): Work<readonly ReportedEvent[]> {
  // All processes lock rows in this order.
  const inOrder = reports.toSorted((a, b) =>
    a.id === b.id ? a.startedAt - b.startedAt : a.id < b.id ? -1 : 1
  );
  const rows = yield* all(KNOWN, [...new Set(inOrder.map(({ id }) => id))]);
  const known = new Map(rows.map((row) => [text(row, "id"), episodeOf(row)]));
  const events: ReportedEvent[] = [];
  for (const report of inOrder) events.push(...yield* takeReport(report, known, options));
  return events;
}

function* takeReport(
  report: EpisodeReport,
  known: Map<string, StoredEpisode>,
  options: WriteOptions,
): Work<readonly ReportedEvent[]> {
  const { id, event, startedAt, endsAt, hits, first } = report;
  const before = known.get(id);
  const isNext = first !== undefined &&
    (before === undefined || startedAt >= before.endsAt + EPISODE_GRACE_MS);
  if (isNext) {
    known.set(id, { id, event, startedAt, endsAt, hits, facts: first.facts, isClosed: false });
    return yield* begin(report, first, before, options.newId);
  }
  // Its first report was lost, or the report is late.
  if (before === undefined || (before.isClosed && endsAt <= options.now)) return [];
  if (before.isClosed && event === "over_limit") {
    // The store was unavailable for so long that the end was reported although the episode goes on.
    const { facts } = before;
    const again = { ...report, startedAt: before.endsAt };
    known.set(id, { ...before, startedAt: before.endsAt, endsAt, hits, isClosed: false });
    return yield* begin(again, { facts, freeAt: first?.freeAt ?? endsAt }, before, options.newId);
  }
  const extended = {
    ...before,
    endsAt: Math.max(before.endsAt, endsAt),
    hits: before.hits + hits,
    isClosed: false,
  };
  known.set(id, extended);
  yield* run(EXTEND, extended.endsAt, extended.hits, id);
  return [];
}

function* begin(
  { id, event, startedAt, endsAt, hits }: EpisodeReport,
  { facts, freeAt }: NonNullable<EpisodeReport["first"]>,
  before: StoredEpisode | undefined,
  newId: () => string,
): Work<readonly ReportedEvent[]> {
  if (before !== undefined) yield* run(BEGIN_AGAIN, startedAt, endsAt, hits, facts, id);
  // Another process has begun it in between.
  else if ((yield* run(ADD, id, event, startedAt, endsAt, hits, facts)) === 0) throw new ConflictError();
  const kind = event === "over_limit" ? OPERATIONAL_KINDS.overLimit : OPERATIONAL_KINDS.nearLimit;
  const ended = before === undefined || before.isClosed ? [] : endOf(before, newId);
  return [...ended, eventOf(kind, beginningJson(facts, { id, startedAt }, freeAt), newId)];
}

const OVER = sql((d) =>
  `SELECT * FROM limit_episode WHERE closed = 0 AND ends_at < ? ORDER BY ends_at LIMIT ? ${d.lockFree()}`
);
const IS_OVER = "SELECT 1 AS one FROM limit_episode WHERE closed = 0 AND ends_at < ? LIMIT 1";
const CLOSE = sql((d) => `UPDATE limit_episode SET closed = 1 WHERE ${d.among("id")}`);

/** True if an episode is over whose end was not reported. */
export function* isEpisodeOver(now: number): Work<boolean> {
  return (yield* get(IS_OVER, now - EPISODE_GRACE_MS)) !== undefined;
}

/** Reports the ends of episodes, at most `max`; returns how many, and the endpoints that events go to. */
export function* endEpisodes(
  { max, now, newId }: EndOptions,
): Work<{ readonly count: number; readonly endpointIds: readonly string[] }> {
  const episodes = (yield* all(OVER, now - EPISODE_GRACE_MS, max)).map(episodeOf);
  if (episodes.length > 0) yield* run(CLOSE, episodes.map(({ id }) => id));
  const ends = episodes.flatMap((episode) => endOf(episode, newId));
  const endpointIds = yield* addOperationalEvents(ends, now);
  return { count: episodes.length, endpointIds };
}

const REMOVE_EPISODES = sql((d) =>
  `WITH portion AS MATERIALIZED (
     SELECT id FROM limit_episode WHERE closed = 1 AND ends_at < ? ORDER BY ends_at LIMIT ? ${d.lockFree()})
   DELETE FROM limit_episode WHERE id IN (SELECT id FROM portion)`
);
const REMOVE_REPORTERS = sql((d) =>
  `WITH portion AS MATERIALIZED (SELECT id FROM reporter WHERE at < ? LIMIT ? ${d.lockFree()})
   DELETE FROM reporter WHERE id IN (SELECT id FROM portion)`
);
/** Until late reports of an episode have come, and repeated batches of a process. */
const KEPT_MS = 24 * 60 * 60_000;

/** Removes what is left of ended episodes and processes, at most `max` rows of each; returns how many. */
export function* removeEpisodes(now: number, max: number): Work<number> {
  return (yield* run(REMOVE_EPISODES, now - KEPT_MS, max)) +
    (yield* run(REMOVE_REPORTERS, now - KEPT_MS, max));
}

/** The end of an episode near the limit is no event. */
function endOf(episode: StoredEpisode, newId: () => string): readonly ReportedEvent[] {
  if (episode.event !== "over_limit") return [];
  return [eventOf(OPERATIONAL_KINDS.overLimitEnded, endingJson(episode.facts, episode), newId)];
}

function eventOf(kind: string, json: string, newId: () => string): ReportedEvent {
  return { id: newId(), kind, body: eventBody(kind, json) };
}

function episodeOf(row: Row): StoredEpisode {
  return {
    id: text(row, "id"),
    event: text(row, "event"),
    startedAt: integer(row, "started_at"),
    endsAt: integer(row, "ends_at"),
    hits: integer(row, "hits"),
    facts: text(row, "facts"),
    isClosed: integer(row, "closed") !== 0,
  };
}
