import type { ReportedEvent } from "../../model/endpoint_events.ts";
import type { NewEvent } from "../../model/records.ts";
import { type AcceptOptions, addingKeys, KEY_COLUMNS, keyColumns, UNLESS_KNOWN } from "./accept_keys.ts";
import { CompoundStatement } from "../compound_statement.ts";
import { text } from "../rows.ts";
import { type NewDelivery, subscribedTo, SUBSCRIPTIONS } from "./subscriptions.ts";
import { tallyInSqlite } from "./tally.ts";
import { all, type Work } from "../work.ts";

const EVENT_COLUMNS = { id: "TEXT", kind: "TEXT", body: "BYTEA", ...KEY_COLUMNS } as const;
const EVENT_NAMES = Object.keys(EVENT_COLUMNS).join(", ");

const DELIVERABLE = "reached JOIN added ON added.id = reached.event_id";
const ADD_EVENTS = new CompoundStatement({
  given: {
    asked: { ...EVENT_COLUMNS, deliveries: "BIGINT" },
    subscribed: { rank: "BIGINT", id: "TEXT", delivery_id: "TEXT", event_id: "TEXT" },
  },
  parts: {
    // Waits for endpoints that are being removed, and omits them; a later removal finds the delivery.
    kept: {
      text: "SELECT id FROM endpoint WHERE id IN (SELECT id FROM subscribed) {}",
      from: "subscribed",
      order: "ORDER BY id FOR KEY SHARE",
      inSqlite: { as: undefined },
    },
    reached: {
      text: "SELECT subscribed.* FROM subscribed JOIN kept ON kept.id = subscribed.id",
      from: "subscribed JOIN kept ON kept.id = subscribed.id",
      inSqlite: { as: "subscribed" },
    },
    counted: {
      text: `
        SELECT ${EVENT_NAMES}, place,
          (SELECT count(*) FROM reached WHERE reached.place = asked.place) AS deliveries FROM asked`,
      from: "asked",
      inSqlite: { as: "asked" },
    },
    keyed: addingKeys("counted", { from: "counted", deliveries: "counted.deliveries" }),
    added: {
      text: `
        INSERT INTO event (id, kind, body, created_at)
        SELECT counted.id, counted.kind, counted.body, counted.created_at
        FROM counted LEFT JOIN keyed ON keyed.result_id = counted.id
        WHERE counted.key IS NULL OR keyed.result_id IS NOT NULL {}
        RETURNING id, kind, created_at`,
      from: "counted LEFT JOIN keyed ON keyed.result_id = counted.id",
      order: "ORDER BY counted.place",
      unless: UNLESS_KNOWN,
    },
    delivered: {
      text: `
        INSERT INTO delivery (id, endpoint_id, event_id, event, state, created_at, slot, due_at, attempts)
        SELECT reached.delivery_id, reached.id, added.id, added.kind, 'attempting', added.created_at, 0,
          added.created_at, 0
        FROM ${DELIVERABLE} {}`,
      from: DELIVERABLE,
      order: "ORDER BY reached.place, reached.rank",
    },
    tallied: {
      text: `
        INSERT INTO tally (name, count) SELECT 'delivery.attempting', count(*) FROM ${DELIVERABLE}
        HAVING count(*) > 0`,
      from: DELIVERABLE,
      inSqlite: { as: undefined },
    },
  },
  answers: ["added", "reached"],
  columns: "id",
});

/** Of one statement, to end long before its timeout. */
const MAX_DELIVERIES = 4_000;

/** An event to add, and when and under which key. */
export type EventCall = readonly [event: NewEvent, options: AcceptOptions];

/** An event with a delivery for each endpoint that it goes to. */
interface SubscribedEvent {
  readonly call: EventCall;
  readonly list: readonly NewDelivery[];
}

/**
 * Adds events with a delivery for each endpoint that they go to, as many of the first events as one statement may;
 * answers these endpoints of each added one.
 */
export function* addEvents(calls: readonly EventCall[]): Work<ReadonlyMap<EventCall, readonly string[]>> {
  const endpoints = yield* all(SUBSCRIPTIONS);
  return yield* addSubscribed(calls.map((call) => ({ call, list: subscribedTo(call[0], endpoints) })));
}

/** Adds all events of a list, of which none has a key. */
export function* addAllEvents(calls: readonly EventCall[]): Work<void> {
  if (calls.length === 0) return;
  const endpoints = yield* all(SUBSCRIPTIONS);
  yield* addPortions(calls.map((call) => ({ call, list: subscribedTo(call[0], endpoints) })));
}

/** Writes those operational events that an endpoint subscribes to, with their deliveries; returns these endpoints. */
export function* addOperationalEvents(
  events: readonly ReportedEvent[],
  now: number,
): Work<readonly string[]> {
  if (events.length === 0) return [];
  const endpoints = yield* all(SUBSCRIPTIONS);
  const subscribed = events.map((event): SubscribedEvent => ({
    call: [event, { now }],
    list: subscribedTo(event, endpoints).filter(({ endpointId }) => endpointId !== event.exceptEndpointId),
  }));
  return yield* addPortions(subscribed.filter(({ list }) => list.length > 0));
}

/** Adds events, in several statements where they have too many deliveries for one; returns the endpoints. */
function* addPortions(events: readonly SubscribedEvent[]): Work<readonly string[]> {
  const endpointIds = new Set<string>();
  for (let rest = events; rest.length > 0;) {
    const added = yield* addSubscribed(rest);
    for (const id of [...added.values()].flat()) endpointIds.add(id);
    rest = rest.filter(({ call }) => !added.has(call));
  }
  return [...endpointIds];
}

function* addSubscribed(
  events: readonly SubscribedEvent[],
): Work<ReadonlyMap<EventCall, readonly string[]>> {
  const firsts = firstsOf(events);
  const asked = firsts.map(({ call: [{ id, kind, body }, options], list }, place) => {
    return { ...keyColumns(options), place, id, kind, body, deliveries: list.length };
  });
  const subscribed = firsts.flatMap(({ call: [event], list }, place) =>
    list.map(({ id, endpointId }, rank) => {
      return { place, rank, id: endpointId, delivery_id: id, event_id: event.id };
    })
  );
  const rows = yield* ADD_EVENTS.run({ asked, subscribed });
  const known = new Set(rows.map((row) => text(row, "id")));
  const added = firsts.filter(({ call: [event] }) => known.has(event.id)).map(({ call, list }) => {
    return [call, list.map(({ endpointId }) => endpointId).filter((id) => known.has(id))] as const;
  });
  yield* tallyInSqlite("delivery.attempting", added.reduce((sum, [, { length }]) => sum + length, 0));
  return new Map(added);
}

/** The first events up to the most deliveries, but at least one. */
function firstsOf<E extends { readonly list: readonly unknown[] }>(events: readonly E[]): readonly E[] {
  let deliveries = 0;
  const end = events.findIndex(({ list }, index) =>
    (deliveries += list.length) > MAX_DELIVERIES && index > 0
  );
  return end === -1 ? events : events.slice(0, end);
}
