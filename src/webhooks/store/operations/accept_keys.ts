import { isLive, KEY_LIVES_MS } from "../../model/key_life.ts";
import type { IdempotencyRow } from "../../model/records.ts";
import type { Part } from "../compound_statement.ts";
import { RECORDS } from "../rows.ts";
import { get, storedText, type Work } from "../work.ts";

/** The key under which a request is accepted once. */
export interface NewIdempotency {
  readonly scope: string;
  readonly key: string;
  readonly bodyHash: string;
}

/** When something is accepted, and under which key. */
export interface AcceptOptions {
  readonly now: number;
  readonly idempotency?: NewIdempotency | undefined;
}

/** The columns of the key and the time of what is accepted. */
export const KEY_COLUMNS = { created_at: "BIGINT", scope: "TEXT", key: "TEXT", body_hash: "TEXT" } as const;

/** Adds the keys of new results, in one order, to avoid deadlocks; a key is replaced after 24 hours. */
export function addingKeys(
  source: string,
  { from, deliveries }: { readonly from: string; readonly deliveries: string },
): Part {
  return {
    text: `
      INSERT INTO idempotency (scope, key, accepted_at, body_hash, result_id, deliveries)
      SELECT ${source}.scope, ${source}.key, ${source}.created_at, ${source}.body_hash, ${source}.id, ${deliveries}
      FROM ${from} WHERE ${source}.key IS NOT NULL {}
      ON CONFLICT (scope, key) DO UPDATE SET accepted_at = excluded.accepted_at, body_hash = excluded.body_hash,
        result_id = excluded.result_id, deliveries = excluded.deliveries
      WHERE idempotency.accepted_at <= excluded.accepted_at - ${KEY_LIVES_MS}
      RETURNING result_id`,
    from,
    order: `ORDER BY ${source}.scope, ${source}.key`,
    needs: "key",
  };
}

/** Nothing is added under a key that is known. */
export const UNLESS_KNOWN = { needs: "key", part: "keyed" };

const FIND_KEY = "SELECT * FROM idempotency WHERE scope = ? AND key = ?";

/** The row of the key that was accepted less than 24 hours before. */
export function* liveKey({ now, idempotency }: AcceptOptions): Work<IdempotencyRow | undefined> {
  if (idempotency === undefined) return undefined;
  const row = yield* get(FIND_KEY, idempotency.scope, idempotency.key);
  const found = row && RECORDS.idempotencyKeys.read(row);
  return found && isLive(found.acceptedAt, now) ? found : undefined;
}

/** The values of `KEY_COLUMNS`. */
export function keyColumns({ now, idempotency }: AcceptOptions) {
  return {
    created_at: now,
    scope: idempotency?.scope,
    key: idempotency?.key,
    body_hash: idempotency?.bodyHash,
  };
}

/** Those calls that one statement may run: it can add a key only once. */
export function firstOfEachKey<C extends readonly [unknown, AcceptOptions]>(
  calls: readonly C[],
): ReadonlySet<C> {
  const keys = new Set<string>();
  return new Set(calls.filter(([, { idempotency }]) => {
    if (idempotency === undefined) return true;
    const { size } = keys;
    // Equal keys of several scopes are rare, and may be added one after the other.
    return keys.add(storedText(idempotency.key)).size > size;
  }));
}

/** A key as one text; a stored text has no U+0000. */
export function keyOf({ scope, key }: { readonly scope: string; readonly key: string }): string {
  return `${scope}\0${key}`;
}
