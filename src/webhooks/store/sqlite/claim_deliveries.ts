import { claimedDeliveryOf, failWithoutPayload, type RowFaults } from "../delivery_claims.ts";
import { findEndpoint } from "../endpoints.ts";
import { text, whole } from "../rows.ts";
import { all, get, run, sqliteOnly, type Work } from "../work.ts";
import type { ClaimedDelivery, ClaimOptions } from "../store.ts";

const DUE = sqliteOnly(
  `SELECT * FROM delivery INDEXED BY delivery_next
   WHERE endpoint_id = ? AND next_at <= ? ORDER BY next_at, seq LIMIT ?`,
);
const CLAIM = sqliteOnly(
  "UPDATE delivery SET claim_id = ?, lease_until = ?, claim_resend_at = resend_at WHERE seq = ?",
);
const BODY = sqliteOnly("SELECT body FROM event WHERE id = ?");

/** Claims deliveries that are due; for a database that has one writer at a time. */
export function* claimDeliveries(
  { now, leaseUntil, newClaimId, wants, ...faults }: ClaimOptions & RowFaults,
): Work<readonly ClaimedDelivery[]> {
  const bodies = new Map<string, Uint8Array>();
  const claimed: { readonly nextAt: number; readonly seq: number; readonly claim: ClaimedDelivery }[] = [];
  for (const { endpointId, max } of wants) {
    const rows = yield* all(DUE, endpointId, now, max);
    const endpoint = rows.length === 0 ? undefined : yield* findEndpoint(endpointId);
    if (endpoint?.enabled !== true) continue;
    for (const row of rows) {
      const body = yield* bodyOf(text(row, "event_id"), bodies);
      if (body === undefined) {
        yield* failWithoutPayload(row, { ...faults, now });
        continue;
      }
      const [seq, claimId] = [whole(row, "seq"), newClaimId()];
      yield* run(CLAIM, claimId, leaseUntil, seq);
      const claim = claimedDeliveryOf(row, { endpoint, now, leaseUntil, claimId, body });
      claimed.push({ nextAt: whole(row, "next_at"), seq, claim });
    }
  }
  claimed.sort((a, b) => a.nextAt - b.nextAt || a.seq - b.seq);
  return claimed.map(({ claim }) => claim);
}

/** The body of an event; many deliveries of one claim have the same. */
function* bodyOf(eventId: string, bodies: Map<string, Uint8Array>): Work<Uint8Array | undefined> {
  const known = bodies.get(eventId);
  if (known !== undefined) return known;
  const body = (yield* get(BODY, eventId))?.["body"];
  if (!(body instanceof Uint8Array)) return undefined;
  bodies.set(eventId, body);
  return body;
}
