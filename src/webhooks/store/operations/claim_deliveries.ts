import { claiming } from "../claiming.ts";
import { saveWaits, takeRates } from "./endpoint_rates.ts";
import { claimedDeliveryOf, failWithoutPayload, type LoggedClaimOptions } from "./delivery_claims.ts";
import { sentBodies } from "./delivery_bodies.ts";
import { endpointsOf } from "./endpoints.ts";
import { NOT_PAUSED } from "../pause.ts";
import { integer, text } from "../rows.ts";
import { all, postgresOnly, type Row, run, type Sql, sql, sqliteOnly, type Work } from "../work.ts";
import type { ClaimedDelivery } from "../store.ts";

const ENABLED = sql((d) =>
  `SELECT * FROM endpoint WHERE ${d.among("id")} AND enabled = 1 AND ${NOT_PAUSED} ORDER BY id`
);
// In one order, to avoid deadlocks. One process at a time claims for an endpoint, while others may add events to it.
const LOCK_ENABLED: Sql = { ...ENABLED, postgres: `${ENABLED.postgres} FOR NO KEY UPDATE` };

/** The deliveries that belong to no replay are searched among so many that are due longest. */
const MAX_SEARCHED = 2_000;

/** Due deliveries of endpoints, longest due first: all, or those that belong to no replay. */
const DUE = { all: inSqlite(allDue), own: inSqlite(ownDue) };
const LOCK_DUE = { all: inPostgres(allDue), own: inPostgres(ownDue) };

interface DueParts {
  readonly columns: string;
  readonly from: string;
  readonly endpointId: string;
}

function allDue({ columns, from, endpointId }: DueParts): string {
  return `SELECT ${columns} FROM ${from}
    WHERE endpoint_id = ${endpointId} AND next_at <= ? ORDER BY next_at, seq`;
}

function ownDue({ columns, ...parts }: DueParts): string {
  const longest = allDue({ columns: "seq, next_at, replay_id", ...parts });
  return `SELECT ${columns} FROM (${longest} LIMIT ${MAX_SEARCHED}) AS longest
    WHERE replay_id IS NULL ORDER BY next_at, seq`;
}

// With a limit that is a mere parameter SQLite would prepare the statement again each time.
function inSqlite(due: typeof allDue): Sql {
  const parts = {
    columns: "seq",
    from: "delivery INDEXED BY delivery_next",
    endpointId: "requested.value",
  };
  return sqliteOnly(`
  SELECT requested.key AS place, delivery.seq, delivery.next_at, delivery.replay_id FROM json_each(?) AS requested
    CROSS JOIN delivery ON delivery.seq IN (${due(parts)} LIMIT ? + 0)`);
}

// A separate statement, which sees the claims of the previous holder of the lock. Locked rows are being changed.
function inPostgres(due: typeof allDue): Sql {
  const parts = {
    columns: "seq, row_number() OVER (ORDER BY next_at, seq) AS rank",
    from: "delivery",
    endpointId: "requested.endpoint_id",
  };
  return postgresOnly(`
  SELECT chosen.place - 1 AS place, delivery.seq, delivery.next_at, delivery.replay_id FROM (
    SELECT requested.place, due.seq
    FROM unnest(CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]))
        WITH ORDINALITY AS requested (endpoint_id, most, concurrency, place)
      CROSS JOIN LATERAL (
        SELECT count(*) AS claimed FROM delivery
        WHERE endpoint_id = requested.endpoint_id AND claim_id IS NOT NULL
      ) AS held
      CROSS JOIN LATERAL (
        ${due(parts)} LIMIT ?
      ) AS due
    WHERE due.rank <= requested.most AND due.rank <= requested.concurrency - held.claimed
  ) AS chosen JOIN delivery ON delivery.seq = chosen.seq
  WHERE delivery.next_at <= ? FOR UPDATE OF delivery SKIP LOCKED`);
}

const EVENTS = sql((d) => `SELECT id, created_at, body FROM event WHERE ${d.among("id")}`);

const CLAIM = claiming("delivery", ", claim_resend_at = resend_at, attempts = attempts + 1");
const BEGIN = sql((d) => `
  INSERT INTO attempt (delivery_seq, number, started_at, url, manual)
  SELECT delivery.seq, delivery.attempts, CAST(? AS BIGINT), endpoint.url,
    CASE WHEN delivery.due_at <= ? THEN 0 ELSE 1 END
  FROM delivery ${d.crossJoin} endpoint ON endpoint.id = delivery.endpoint_id WHERE ${
  d.among("delivery.seq")
}`);

/** Unless they are paused, claims due deliveries and begins their attempts; on PostgreSQL, of an endpoint no more than its concurrency, over all processes. */
export function* claimDeliveries(options: LoggedClaimOptions): Work<readonly ClaimedDelivery[]> {
  const requests = new Map(options.requests.map(({ endpointId, max }) => [endpointId, max]));
  const endpoints = yield* all(LOCK_ENABLED, [...requests.keys()]);
  if (endpoints.length === 0) return [];
  const due = yield* dueOf(endpoints, requests, options.now);
  const { rows, waitedMs } = yield* takeRates(due, endpoints, options);
  if (rows.length === 0) return [];
  return yield* claimRows(rows.map((row) => integer(row, "seq")), endpoints, { ...options, waitedMs });
}

/** The deliveries to claim, longest due first; those of replays only where no others are due. */
function* dueOf(
  endpoints: readonly Row[],
  requests: ReadonlyMap<string, number>,
  now: number,
): Work<readonly Row[]> {
  const ids = endpoints.map((row) => text(row, "id"));
  const most = ids.map((id) => requests.get(id) ?? 0);
  const concurrency = endpoints.map((row) => integer(row, "concurrency"));
  const longest = Math.max(...most);
  // Each database skips the statement of the other.
  const dueRows = function* (which: keyof typeof DUE): Work<readonly Row[]> {
    return [
      ...yield* all(DUE[which], ids, now, longest),
      ...yield* all(LOCK_DUE[which], ids, most, concurrency, now, longest, now),
    ];
  };
  const longestDue = yield* dueRows("all");
  let due = longestDue;
  if (longestDue.some(isReplayed)) {
    // PostgreSQL has found as many as the endpoint may have.
    const found = Map.groupBy(longestDue, (row) => integer(row, "place"));
    for (const [place, left] of most.entries()) most[place] = Math.min(left, found.get(place)?.length ?? 0);
    due = [...yield* dueRows("own"), ...longestDue.filter(isReplayed)];
  }
  const sorted = due.toSorted((a, b) =>
    Number(isReplayed(a)) - Number(isReplayed(b)) ||
    integer(a, "next_at") - integer(b, "next_at") || integer(a, "seq") - integer(b, "seq")
  );
  return sorted.filter((row) => {
    const place = integer(row, "place");
    const left = most[place] ?? 0;
    most[place] = left - 1;
    return left > 0;
  });
}

function isReplayed(row: Row): boolean {
  return row["replay_id"] !== null;
}

function* claimRows(
  seqs: readonly number[],
  endpointRows: readonly Row[],
  { now, leaseUntil, newClaimId, logger, waitedMs }: LoggedClaimOptions & {
    readonly waitedMs: ReadonlyMap<number, number>;
  },
): Work<readonly ClaimedDelivery[]> {
  const claimed = yield* all(CLAIM, seqs.map(newClaimId), leaseUntil, seqs);
  const events = yield* eventsOf(claimed);
  const named = new Set(claimed.map((row) => text(row, "endpoint_id")));
  const read = yield* endpointsOf(endpointRows.filter((row) => named.has(text(row, "id"))));
  const endpoints = new Map(read.map((one) => [one.id, one]));
  const sent = yield* sentBodies(claimed, events, endpoints);
  const claims = new Map<number, ClaimedDelivery>();
  const waits = new Map<number, number>();
  for (const row of claimed) {
    const endpoint = endpoints.get(text(row, "endpoint_id"));
    const body = sent.get(row);
    if (body === undefined) yield* failWithoutPayload(row, { now, logger });
    else if (endpoint !== undefined) {
      const seq = integer(row, "seq");
      const claim = claimedDeliveryOf(row, { endpoint, now, ...body });
      const waited = claim.delivery.state === "retrying" && !claim.manual ? waitedMs.get(seq) ?? 0 : 0;
      claims.set(seq, waited > 0 ? afterWait(claim, waited) : claim);
      if (waited > 0) waits.set(seq, waited);
    }
  }
  yield* saveWaits(waits);
  if (claims.size > 0) yield* run(BEGIN, now, now, [...claims.keys()]);
  return seqs.flatMap((seq) => claims.get(seq) ?? []);
}

/** A retry that has waited for the rate of its endpoint. */
function afterWait(claim: ClaimedDelivery, waited: number): ClaimedDelivery {
  const { delivery } = claim;
  return { ...claim, delivery: { ...delivery, waitedMs: (delivery.waitedMs ?? 0) + waited } };
}

/** The events of deliveries that have a payload. */
function* eventsOf(rows: readonly Row[]): Work<ReadonlyMap<string, Row>> {
  const ids = [...new Set(rows.map((row) => text(row, "event_id")))];
  const found = yield* all(EVENTS, ids);
  return new Map(found.filter((row) => row["body"] !== null).map((row) => [text(row, "id"), row]));
}
