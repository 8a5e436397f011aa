import { isAboutEndpoint } from "../../model/endpoint_events.ts";
import { isOperationalKind, matchesKind } from "../../model/event.ts";
import { matchesFilter, payloadOf, readEventFilter } from "../../model/event_filter.ts";
import type { Replay } from "../../model/records.ts";
import { bytes, integer, text } from "../rows.ts";
import { all, type Dialect, get, type Row, type Sql, sql, type Work } from "../work.ts";

/** The last row that was searched: its time, for events, and its number. */
export interface ReplayPosition {
  readonly at: number;
  readonly seq: number;
}

/** The rows that match, in order, and the position after them; none at the end. */
interface Found {
  readonly seqs: readonly number[];
  readonly next: ReplayPosition | undefined;
}

/** Options of a search. */
interface SearchOptions {
  readonly position: ReplayPosition;
  /** Most rows. */
  readonly max: number;
  /** True to lock the rows. */
  readonly isLocking: boolean;
}

type Scope = Omit<Replay, "id" | "state" | "done" | "createdAt">;

/** Rows that are searched at a time, so that others can use the store in between. */
const MAX_SEARCHED = 500;
/** Bytes of payloads that are read at a time, but for one that is larger. */
const MAX_BYTES = 1_048_576;

const EVENTS = sql((d) =>
  `SELECT seq, kind, created_at, octet_length(body) AS size FROM event ${d.by("event_created")}
   WHERE created_at < ? AND (created_at, seq) > (?, ?) ORDER BY created_at, seq LIMIT ?`
);
// The locks wait for payloads that are being erased, whose events are omitted then.
const LOCK_EVENT = (d: Dialect) => d.share();
const KEPT = { look: kept("seq"), lock: kept("seq", LOCK_EVENT) };
const PAYLOADS = { look: kept("seq, kind, body"), lock: kept("seq, kind, body", LOCK_EVENT) };

function kept(columns: string, lock = (_: Dialect) => ""): Sql {
  return sql((d) =>
    `SELECT ${columns} FROM event WHERE ${d.among("seq")} AND body IS NOT NULL ORDER BY seq ${lock(d)}`
  );
}

/** Events that a replay sends to an endpoint, among the next ones; those that the endpoint does not receive are none. */
export function* replayedEvents(
  scope: Scope,
  endpoint: Row,
  { position, max, isLocking }: SearchOptions,
): Work<Found> {
  const rows = yield* all(EVENTS, scope.until, position.at, position.seq, MAX_SEARCHED);
  const subscribed: readonly string[] = JSON.parse(text(endpoint, "events"));
  const filters = [endpoint["data_filter"], scope.filter].filter((json) => typeof json === "string")
    .map(readEventFilter);
  const needsPayload = (kind: string) => filters.length > 0 || isOperationalKind(kind);
  const candidates: Row[] = [];
  let [size, end] = [0, 0];
  for (const row of rows) {
    if (candidates.length === max) break;
    const kind = text(row, "kind");
    if (row["size"] !== null && [subscribed, scope.events ?? [kind]].every((one) => matchesKind(one, kind))) {
      size += needsPayload(kind) ? integer(row, "size") : 0;
      if (size > MAX_BYTES && candidates.length > 0) break;
      candidates.push(row);
    }
    end++;
  }
  const isRead = candidates.some((row) => needsPayload(text(row, "kind")));
  const found = candidates.length === 0
    ? []
    : yield* all((isRead ? PAYLOADS : KEPT)[isLocking ? "lock" : "look"], seqsOf(candidates));
  const id = text(endpoint, "id");
  const isSent = (row: Row) => {
    if (!isRead) return true;
    const [kind, data] = [text(row, "kind"), payloadOf(bytes(row, "body"))];
    return !isAboutEndpoint({ kind, data }, id) && filters.every((filter) => matchesFilter(filter, data));
  };
  const sent = new Set(seqsOf(found.filter(isSent)));
  return { seqs: seqsOf(candidates).filter((seq) => sent.has(seq)), next: positionAfter(rows, end) };
}

function seqsOf(rows: readonly Row[]): readonly number[] {
  return rows.map((row) => integer(row, "seq"));
}

const OF_STATE = sql((d) =>
  `SELECT seq, created_at, event, event_id FROM delivery ${d.by("delivery_endpoint_state")}
   WHERE endpoint_id = ? AND state = ? AND seq > ? ORDER BY seq LIMIT ?`
);
const WITH_PAYLOAD = {
  look: withPayload(() => ""),
  lock: withPayload((d) => `${d.share("event")} ${d.lock("delivery")}`),
};

function withPayload(lock: (dialect: Dialect) => string): Sql {
  return sql((d) =>
    `SELECT delivery.seq FROM delivery JOIN event ON event.id = delivery.event_id AND event.body IS NOT NULL
     WHERE ${d.among("delivery.seq")} AND delivery.state = ? ORDER BY delivery.seq ${lock(d)}`
  );
}

/** Deliveries of an endpoint that a replay retries, among the next ones. */
export function* retriedDeliveries(
  { deliveryState = "failed", since = 0, until, eventId, events }: Scope,
  endpointId: string,
  { position, max, isLocking }: SearchOptions,
): Work<Found> {
  const rows = yield* all(OF_STATE, endpointId, deliveryState, position.seq, MAX_SEARCHED);
  const candidates: Row[] = [];
  let end = 0;
  for (const row of rows) {
    if (candidates.length === max) break;
    const createdAt = integer(row, "created_at");
    const isMatch = createdAt >= since && createdAt < until &&
      (eventId === undefined || row["event_id"] === eventId) &&
      (events === undefined || events.includes(text(row, "event")));
    if (isMatch) candidates.push(row);
    end++;
  }
  const next = positionAfter(rows, end);
  if (candidates.length === 0) return { seqs: [], next };
  const statement = WITH_PAYLOAD[isLocking ? "lock" : "look"];
  return { seqs: seqsOf(yield* all(statement, seqsOf(candidates), deliveryState)), next };
}

/** The position after the first rows; undefined where they are the last ones. */
function positionAfter(rows: readonly Row[], count: number): ReplayPosition | undefined {
  const last = rows[count - 1];
  if (last === undefined || count === rows.length && rows.length < MAX_SEARCHED) return undefined;
  return { at: integer(last, "created_at"), seq: integer(last, "seq") };
}

/** The endpoint and the last row that were counted. */
interface CountPosition extends ReplayPosition {
  readonly endpointId: string;
}

const ONE_ENDPOINT = "SELECT id, events, data_filter FROM endpoint WHERE id = ?";
const NEXT_ENDPOINT = "SELECT id, events, data_filter FROM endpoint WHERE id > ? ORDER BY id LIMIT 1";

/** Counts a portion of what a replay would send or retry, behind a position; the next one is absent at the end. */
export function* countMatches(
  scope: Scope,
  position: CountPosition | undefined,
): Work<{ readonly count: number; readonly next: CountPosition | undefined }> {
  const endpoint = yield* endpointAt(scope, position);
  if (endpoint === undefined) return { count: 0, next: undefined };
  const endpointId = text(endpoint, "id");
  const from = position?.endpointId === endpointId && position.seq > 0
    ? position
    : { at: scope.since ?? 0, seq: 0 };
  const options = { position: from, max: Infinity, isLocking: false };
  const { seqs, next } = scope.source === "events"
    ? yield* replayedEvents(scope, endpoint, options)
    : yield* retriedDeliveries(scope, endpointId, options);
  if (next !== undefined) return { count: seqs.length, next: { ...next, endpointId } };
  const isLast = scope.endpointId !== undefined;
  return { count: seqs.length, next: isLast ? undefined : { endpointId, at: 0, seq: 0 } };
}

/** The endpoint that is counted: a position without a row is behind its endpoint. */
function* endpointAt({ endpointId }: Scope, position: CountPosition | undefined): Work<Row | undefined> {
  if (endpointId !== undefined) return yield* get(ONE_ENDPOINT, endpointId);
  if (position === undefined) return yield* get(NEXT_ENDPOINT, "");
  const { endpointId: last, seq } = position;
  const begun = seq > 0 ? yield* get(ONE_ENDPOINT, last) : undefined;
  return begun ?? (yield* get(NEXT_ENDPOINT, last));
}
