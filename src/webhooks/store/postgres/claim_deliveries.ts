import { endpointsOf } from "../endpoints.ts";
import { claimedDeliveryOf, failWithoutPayload, type LoggedClaimOptions } from "../delivery_claims.ts";
import { bytes, integer, text } from "../rows.ts";
import { all, postgresOnly, type Row, run, type Work } from "../work.ts";
import { GivenRows } from "./given_rows.ts";
import type { ClaimedDelivery } from "../store.ts";

// In one order, to avoid deadlocks. One process at a time claims for an endpoint, while others may add events to it.
const LOCK_ENDPOINTS = postgresOnly(`
  SELECT * FROM endpoint WHERE id = ANY(?) AND enabled = 1 ORDER BY id FOR NO KEY UPDATE`);

// A separate statement, which sees the claims of the previous holder of the lock. Locked rows are being changed.
const LOCK_DUE = postgresOnly(`
  SELECT delivery.* FROM (
    SELECT due.seq
    FROM unnest(CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[])) AS requested (endpoint_id, most, concurrency)
      CROSS JOIN LATERAL (
        SELECT count(*) AS claimed FROM delivery
        WHERE endpoint_id = requested.endpoint_id AND claim_id IS NOT NULL
      ) AS held
      CROSS JOIN LATERAL (
        SELECT seq, row_number() OVER (ORDER BY next_at, seq) AS place FROM delivery
        WHERE endpoint_id = requested.endpoint_id AND next_at <= ? ORDER BY next_at, seq LIMIT ?
      ) AS due
    WHERE due.place <= requested.most AND due.place <= requested.concurrency - held.claimed
  ) AS chosen JOIN delivery ON delivery.seq = chosen.seq
  WHERE delivery.next_at <= ? FOR UPDATE OF delivery SKIP LOCKED`);

const BODIES = postgresOnly("SELECT id, body FROM event WHERE id = ANY(?)");

const TAKEN = new GivenRows("taken", {
  ...{ seq: "BIGINT", claim: "TEXT", number: "BIGINT", url: "TEXT", manual: "BIGINT" },
});
const CLAIM = postgresOnly(`
  WITH ${TAKEN.sql},
  begun AS (
    INSERT INTO attempt (delivery_seq, number, started_at, url, manual)
    SELECT seq, number, CAST(? AS BIGINT), url, manual FROM taken)
  UPDATE delivery SET claim_id = taken.claim, lease_until = CAST(? AS BIGINT), claim_resend_at = resend_at,
    attempts = taken.number
  FROM taken WHERE delivery.seq = taken.seq`);

/** Claims due deliveries: of an endpoint no more than its concurrency, over all processes. */
export function* claimDeliveries(options: LoggedClaimOptions): Work<readonly ClaimedDelivery[]> {
  const { now } = options;
  const requests = new Map(options.requests.map(({ endpointId, max }) => [endpointId, max]));
  const endpoints = yield* all(LOCK_ENDPOINTS, [...requests.keys()]);
  if (endpoints.length === 0) return [];
  const ids = endpoints.map((row) => text(row, "id"));
  const most = ids.map((id) => requests.get(id) ?? 0);
  const concurrency = endpoints.map((row) => integer(row, "concurrency"));
  const rows = yield* all(LOCK_DUE, ids, most, concurrency, now, Math.max(...most), now);
  if (rows.length === 0) return [];
  const inOrder = rows.toSorted((a, b) =>
    integer(a, "next_at") - integer(b, "next_at") || integer(a, "seq") - integer(b, "seq")
  );
  return yield* claimRows(inOrder, endpoints, options);
}

function* claimRows(
  rows: readonly Row[],
  endpointRows: readonly Row[],
  { now, leaseUntil, newClaimId, logger }: LoggedClaimOptions,
): Work<readonly ClaimedDelivery[]> {
  const bodies = yield* bodiesOf(rows);
  for (const row of rows) {
    if (!bodies.has(text(row, "event_id"))) yield* failWithoutPayload(row, { now, logger });
  }
  const named = new Set(rows.map((row) => text(row, "endpoint_id")));
  const read = yield* endpointsOf(endpointRows.filter((row) => named.has(text(row, "id"))));
  const endpoints = new Map(read.map((one) => [one.id, one]));
  const taken = rows.flatMap((row) => {
    const endpoint = endpoints.get(text(row, "endpoint_id"));
    const body = bodies.get(text(row, "event_id"));
    if (endpoint === undefined || body === undefined) return [];
    const claim = claimedDeliveryOf(row, { endpoint, now, leaseUntil, claimId: newClaimId(), body });
    return { seq: integer(row, "seq"), claim };
  });
  if (taken.length > 0) {
    const given = taken.map(({ seq, claim: { claimId, attempt: number, endpoint: { url }, manual } }) => {
      return { seq, claim: claimId, number, url, manual };
    });
    yield* run(CLAIM, ...TAKEN.parameters(given), now, leaseUntil);
  }
  return taken.map(({ claim }) => claim);
}

function* bodiesOf(rows: readonly Row[]): Work<ReadonlyMap<string, Uint8Array>> {
  const ids = [...new Set(rows.map((row) => text(row, "event_id")))];
  const found = yield* all(BODIES, ids);
  return new Map(
    found.filter((row) => row["body"] !== null).map((row) => [text(row, "id"), bytes(row, "body")]),
  );
}
