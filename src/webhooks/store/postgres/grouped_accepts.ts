import { isLive, KEY_LIVES_MS } from "../../model/key_life.ts";
import type { EventKey, Execution, IdempotencyRow, NewEvent } from "../../model/records.ts";
import {
  type Acceptance,
  type AcceptOptions,
  firstExecution,
  type NewExecution,
} from "../operations/accept.ts";
import { RECORDS, text } from "../rows.ts";
import { subscribedTo, SUBSCRIPTIONS } from "../operations/subscriptions.ts";
import { all, alone, postgresOnly, storedText, type Work } from "../work.ts";
import { ALONE } from "./call_groups.ts";
import { GivenRows } from "./given_rows.ts";

const FIND_EVENT_KEYS = postgresOnly("SELECT * FROM event_key WHERE hash = ANY(?)");

/** `findEventKey` of several hashes. */
export function* findEventKeys(
  calls: readonly (readonly [hash: string])[],
): Work<readonly (EventKey | undefined)[]> {
  const rows = yield* alone(all(FIND_EVENT_KEYS, [...new Set(calls.map(([hash]) => hash))]));
  const found = new Map(rows.map((row) => [text(row, "hash"), RECORDS.eventKeys.read(row)]));
  return calls.map(([hash]) => found.get(hash));
}

const ASKED_KEYS = new GivenRows("asked", { scope: "TEXT", key: "TEXT" });
const FIND_KEYS = postgresOnly(`
  WITH ${ASKED_KEYS.sql}
  SELECT idempotency.* FROM asked
    JOIN idempotency ON idempotency.scope = asked.scope AND idempotency.key = asked.key`);

/** `findIdempotency` of several keys. */
export function* findIdempotencies(
  calls: readonly (readonly [scope: string, key: string, now: number])[],
): Work<readonly (IdempotencyRow | undefined)[]> {
  const asked = new Map(calls.map(([scope, key]) => [keyOf({ scope, key }), { scope, key }]));
  const rows = yield* alone(all(FIND_KEYS, ...ASKED_KEYS.parameters([...asked.values()])));
  const found = new Map(
    rows.map((row) => RECORDS.idempotencyKeys.read(row)).map((row) => [keyOf(row), row]),
  );
  return calls.map(([scope, key, now]) => {
    const row = found.get(keyOf({ scope: storedText(scope), key: storedText(key) }));
    return row !== undefined && isLive(row.acceptedAt, now) ? row : undefined;
  });
}

const KEY_COLUMNS = { now: "BIGINT", scope: "TEXT", key: "TEXT", body_hash: "TEXT" } as const;

/** As the key of one request is added; in one order, to avoid deadlocks of several groups. */
function addingKeys(source: string, deliveries: string): string {
  return `keyed AS (
    INSERT INTO idempotency (scope, key, accepted_at, body_hash, result_id, deliveries)
    SELECT scope, key, now, body_hash, id, ${deliveries} FROM ${source} WHERE key IS NOT NULL ORDER BY scope, key
    ON CONFLICT (scope, key) DO UPDATE SET accepted_at = excluded.accepted_at, body_hash = excluded.body_hash,
      result_id = excluded.result_id, deliveries = excluded.deliveries
    WHERE idempotency.accepted_at <= excluded.accepted_at - ${KEY_LIVES_MS}
    RETURNING result_id)`;
}

const NEW_EXECUTIONS = new GivenRows("asked", {
  ...{ id: "TEXT", workflow: "TEXT", version_id: "TEXT", trigger_id: "TEXT" },
  ...{ trigger_event: "TEXT", input: "TEXT", claim_id: "TEXT", lease_until: "BIGINT" },
  ...KEY_COLUMNS,
});
// Locks the texts against removal.
const ADD_EXECUTIONS = postgresOnly(`
  WITH ${NEW_EXECUTIONS.sql},
  kept AS MATERIALIZED (SELECT id FROM workflow_version WHERE id = ANY(?) ORDER BY id FOR SHARE),
  startable AS MATERIALIZED (SELECT asked.* FROM asked JOIN kept ON kept.id = asked.version_id),
  ${addingKeys("startable", "CAST(NULL AS BIGINT)")},
  added AS (
    INSERT INTO execution
      (id, workflow, version_id, trigger_id, trigger_event, status, input, created_at, due_at, started_at,
       claim_id, lease_until, step_attempts, cancel_requested)
    SELECT id, workflow, version_id, trigger_id, trigger_event,
      CASE WHEN claim_id IS NULL THEN 'queued' ELSE 'running' END, input, now, now,
      CASE WHEN claim_id IS NULL THEN NULL ELSE now END, claim_id, lease_until, 0, 0 FROM startable
    WHERE key IS NULL OR id IN (SELECT result_id FROM keyed) ORDER BY place
    RETURNING id, status),
  tallied AS (
    INSERT INTO tally (name, count) SELECT 'execution.' || status, count(*) FROM added GROUP BY status)
  SELECT id FROM added`);

/** `acceptExecution` of several requests; those with a known key or an unknown text are run alone. */
export function* acceptExecutions(
  calls: readonly (readonly [NewExecution, AcceptOptions])[],
): Work<readonly (Acceptance<Execution> | typeof ALONE)[]> {
  const firsts = firstOfEachKey(calls);
  const given = [...firsts].map(([execution, options]) => ({
    ...{ id: execution.id, workflow: execution.workflow, version_id: execution.versionId },
    ...{ trigger_id: execution.triggerId, trigger_event: execution.event, input: execution.input },
    ...{ claim_id: execution.claim?.id, lease_until: execution.claim?.leaseUntil },
    ...keyColumns(options),
  }));
  const versions = [...new Set(given.map((row) => row.version_id))];
  const rows = yield* alone(all(ADD_EXECUTIONS, ...NEW_EXECUTIONS.parameters(given), versions));
  const added = new Set(rows.map((row) => text(row, "id")));
  return calls.map((call) => {
    const [execution, { now }] = call;
    if (!firsts.has(call) || !added.has(execution.id)) return ALONE;
    return { kind: "new", value: firstExecution(execution, now) };
  });
}

const NEW_EVENTS = new GivenRows("asked", {
  ...{ id: "TEXT", kind: "TEXT", body: "BYTEA" },
  ...KEY_COLUMNS,
});
const NEW_DELIVERIES = new GivenRows("subscribed", { id: "TEXT", event_id: "TEXT", endpoint_id: "TEXT" });
// Waits for endpoints that are being removed, and omits them; a later removal finds the delivery.
const ADD_EVENTS = postgresOnly(`
  WITH ${NEW_EVENTS.sql},
  ${NEW_DELIVERIES.sql},
  kept AS MATERIALIZED (SELECT id FROM endpoint WHERE id = ANY(?) ORDER BY id FOR KEY SHARE),
  reached AS MATERIALIZED (SELECT subscribed.* FROM subscribed JOIN kept ON kept.id = subscribed.endpoint_id),
  counted AS MATERIALIZED (
    SELECT asked.*, coalesce(counts.deliveries, 0) AS deliveries FROM asked
      LEFT JOIN (SELECT event_id, count(*) AS deliveries FROM reached GROUP BY event_id) AS counts
        ON counts.event_id = asked.id),
  ${addingKeys("counted", "deliveries")},
  added AS (
    INSERT INTO event (id, kind, body, created_at) SELECT id, kind, body, now FROM counted
    WHERE key IS NULL OR id IN (SELECT result_id FROM keyed) ORDER BY place
    RETURNING id, kind, created_at),
  delivered AS (
    INSERT INTO delivery (id, endpoint_id, event_id, event, state, created_at, slot, due_at, attempts)
    SELECT reached.id, reached.endpoint_id, added.id, added.kind, 'attempting', added.created_at, 0, added.created_at, 0
    FROM added JOIN reached ON reached.event_id = added.id ORDER BY reached.place
    RETURNING seq),
  tallied AS (
    INSERT INTO tally (name, count) SELECT 'delivery.attempting', count(*) FROM delivered HAVING count(*) > 0)
  SELECT id FROM added UNION ALL SELECT id FROM kept`);

/** Of one statement, to end long before its timeout. */
const MAX_DELIVERIES = 4_000;

type AddedEvent = Acceptance<{ readonly endpointIds: readonly string[] }>;

/** `acceptEvent` of several events; those with a known key, or beyond the most deliveries, are run alone. */
export function* acceptEvents(
  calls: readonly EventCall[],
): Work<readonly (AddedEvent | typeof ALONE)[]> {
  const added = yield* addEvents([...firstOfEachKey(calls)]);
  return calls.map((call) => {
    const endpointIds = added.get(call);
    return endpointIds === undefined ? ALONE : { kind: "new", value: { endpointIds } };
  });
}

/** An event to add, and when and under which key. */
export type EventCall = readonly [NewEvent, AcceptOptions];

/**
 * Adds events with a delivery for each endpoint that they go to, as many of the first events as one statement may;
 * answers these endpoints of each added one.
 */
export function* addEvents(calls: readonly EventCall[]): Work<ReadonlyMap<EventCall, readonly string[]>> {
  const endpoints = yield* all(SUBSCRIPTIONS);
  const subscribed = firstsOf(calls.map((call) => ({ call, list: subscribedTo(call[0], endpoints) })));
  const given = subscribed.map(({ call: [{ id, kind, body }, options] }) => {
    return { id, kind, body, ...keyColumns(options) };
  });
  const deliveries = subscribed.flatMap(({ call: [event], list }) =>
    list.map(({ id, endpointId }) => ({ id, event_id: event.id, endpoint_id: endpointId }))
  );
  const rows = yield* all(
    ADD_EVENTS,
    ...NEW_EVENTS.parameters(given),
    ...NEW_DELIVERIES.parameters(deliveries),
    [...new Set(deliveries.map((delivery) => delivery.endpoint_id))],
  );
  const known = new Set(rows.map((row) => text(row, "id")));
  return new Map(
    subscribed.filter(({ call: [event] }) => known.has(event.id)).map(({ call, list }) => {
      return [call, list.map(({ endpointId }) => endpointId).filter((id) => known.has(id))];
    }),
  );
}

/** The first events up to the most deliveries, but at least one. */
function firstsOf<E extends { readonly list: readonly unknown[] }>(events: readonly E[]): readonly E[] {
  let deliveries = 0;
  const end = events.findIndex(({ list }, index) =>
    (deliveries += list.length) > MAX_DELIVERIES && index > 0
  );
  return end === -1 ? events : events.slice(0, end);
}

function keyColumns({ now, idempotency }: AcceptOptions) {
  return { now, scope: idempotency?.scope, key: idempotency?.key, body_hash: idempotency?.bodyHash };
}

/** A statement can add a key only once. */
function firstOfEachKey<C extends readonly [unknown, AcceptOptions]>(calls: readonly C[]): ReadonlySet<C> {
  const keys = new Set<string>();
  return new Set(calls.filter(([, { idempotency }]) => {
    if (idempotency === undefined) return true;
    const { scope, key } = idempotency;
    const id = keyOf({ scope: storedText(scope), key: storedText(key) });
    if (keys.has(id)) return false;
    keys.add(id);
    return true;
  }));
}

function keyOf({ scope, key }: { readonly scope: string; readonly key: string }): string {
  return JSON.stringify([scope, key]);
}
