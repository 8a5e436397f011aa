import { assert, assertEquals } from "#assert";
import {
  ACKNOWLEDGED,
  audit,
  event,
  newId,
  NOW,
  retryAt,
  type StoreCases,
  type TestStore,
} from "./webhook_store_bed.ts";
import {
  backlogPosition,
  countBacklog,
  endpointsAmong,
  failOverBacklog,
} from "../../src/webhooks/store/operations/backlog.ts";
import {
  listDeliveries,
  recoverDeliveries,
  resendDelivery,
} from "../../src/webhooks/store/operations/deliveries.ts";

const MANY = 100;
const count = (store: TestStore, { id }: { readonly id: string }, max = MANY) =>
  store.read(countBacklog, id, max);

/** The operations that measure and keep the bounds of a store. */
export const BOUND_CASES: StoreCases = {
  "a backlog has the open deliveries of its endpoint, also of a disabled one": async (store) => {
    const [one, other] = [await store.addEndpoint(), await store.addEndpoint({ enabled: false })];
    for (const _ of [1, 2, 3]) await store.addEvent();
    assertEquals([await count(store, one), await count(store, other)], [3, 3]);
    assertEquals(await count(store, one, 2), 2);
    assertEquals(await count(store, { id: newId() }), 0);
    const [first, second, third] = await store.claim([one]);
    assert(first !== undefined && second !== undefined && third !== undefined);
    // Those in flight are bounded by the concurrency.
    assertEquals(await count(store, one), 0);
    await store.finish(first, ACKNOWLEDGED, { result: "acknowledged", finishedAt: NOW + 5 });
    await store.finish(second, retryAt(NOW + 60_000));
    assertEquals([await count(store, one), await count(store, other)], [1, 3]);
  },

  "the position counts deliveries as they are created, and names the endpoints": async (store) => {
    assertEquals(await store.read(backlogPosition), { latest: 0, endpointIds: [] });
    const endpoints = [await store.addEndpoint(), await store.addEndpoint({ events: ["a.*"] })];
    await store.addEvent({ kind: "a.b" });
    await store.addEvent({ kind: "b" });
    const { latest, endpointIds } = await store.read(backlogPosition);
    assertEquals(endpointIds, endpoints.map(({ id }) => id));
    assert(latest >= 3, `${latest}`);
  },

  "an event is refused for the endpoints that it would go to": async (store) => {
    const all = await store.addEndpoint();
    const some = await store.addEndpoint({ events: ["a.*"] });
    const among = (kind: string, ids: readonly string[]) =>
      store.read(endpointsAmong, event({ kind }), new Set(ids));
    assertEquals(await among("a.b", [some.id, all.id]), [all.id, some.id]);
    assertEquals(await among("a.b", [some.id]), [some.id]);
    assertEquals(await among("b", [some.id, newId()]), []);
    const filtered = await store.addEndpoint({ filter: '{"plan":["pro"]}' });
    const filteredFor = (plan: string) =>
      store.read(
        endpointsAmong,
        event({ body: new TextEncoder().encode(JSON.stringify({ event: "b", data: { plan } })) }),
        new Set([filtered.id]),
      );
    assertEquals([await filteredFor("free"), await filteredFor("pro")], [[], [filtered.id]]);
  },

  "new deliveries of events of the service fail over a full backlog, and are recovered": async (store) => {
    const [full, other] = [await store.addEndpoint(), await store.addEndpoint()];
    const kind = "workflow.execution.completed";
    const before = await store.addEvent({ kind });
    const { latest: after } = await store.read(backlogPosition);
    await store.addEvent({ kind: "order.created" });
    const lost = [await store.addEvent({ kind }), await store.addEvent({ kind })];
    const fail = (max?: number) =>
      store.write(failOverBacklog, { endpointId: full.id, after, now: NOW + 9, newId, max });
    assertEquals([await fail(1), await fail(), await fail()], [1, 1, 0]);

    const { items } = await store.read(listDeliveries, { limit: MANY, endpointId: full.id });
    const found = items.toReversed().map(({ event, state, reason }) => [event, state, reason]);
    assertEquals(found, [
      [kind, "attempting", undefined],
      ["order.created", "attempting", undefined],
      [kind, "failed", "backlog_full"],
      [kind, "failed", "backlog_full"],
    ]);
    assertEquals(items.at(-1)?.eventId, before.id);
    assertEquals([await count(store, full), await count(store, other)], [2, 4]);
    const failed = items.filter(({ state }) => state === "failed").map(({ id }) =>
      `delivery.failed delivery:${id}`
    );
    assertEquals((await store.auditLog()).toSorted(), failed.toSorted());

    const range = { since: NOW, until: NOW + 1, dryRun: false, max: MANY };
    const recovered = await store.write(recoverDeliveries, {
      endpointId: full.id,
      now: NOW + 10,
      audit: audit(),
      ...range,
    });
    assertEquals([recovered, await count(store, full)], [lost.length, 4]);
  },

  "over a full backlog one fails after its attempt too, but not in flight, resent or delivered": async (
    store,
  ) => {
    const endpoint = await store.addEndpoint();
    const kind = "workflow.execution.completed";
    const tried = await store.addEvent({ kind });
    await store.finish(await store.claimOne(endpoint), retryAt(NOW + 60_000));
    const delivered = await store.addEvent({ kind });
    await store.finish(await store.claimOne(endpoint), ACKNOWLEDGED);
    const inFlight = await store.addEvent({ kind });
    await store.claimOne(endpoint);
    const resent = await store.addEvent({ kind });
    const { id } = await store.deliveryOf(resent.id);
    await store.write(resendDelivery, id, { now: NOW, audit: audit() });
    const fail = { endpointId: endpoint.id, after: 0, now: NOW + 9, newId };
    assertEquals([await store.write(failOverBacklog, fail), await store.write(failOverBacklog, fail)], [
      1,
      0,
    ]);
    const states = [];
    for (const one of [tried, delivered, inFlight, resent]) {
      const { state, reason } = await store.deliveryOf(one.id);
      states.push([state, reason]);
    }
    assertEquals(states, [
      ["failed", "backlog_full"],
      ["acknowledged", undefined],
      ["attempting", undefined],
      ["attempting", undefined],
    ]);
  },

  "the size of a store grows with what it holds": async (store) => {
    const before = await store.usedBytes();
    assert(before > 0, `${before}`);
    await store.addEvent({ body: crypto.getRandomValues(new Uint8Array(60_000)) });
    // The last page is partly free.
    assert(await store.usedBytes() >= before + 50_000, `${before}, ${await store.usedBytes()}`);
  },
};
