import { assert, assertEquals } from "#assert";
import type { NewEvent, Replay } from "../../src/webhooks/model/records.ts";
import { listDeliveries } from "../../src/webhooks/store/operations/deliveries.ts";
import { deleteEndpoint } from "../../src/webhooks/store/operations/endpoints.ts";
import { erasePayload } from "../../src/webhooks/store/operations/events.ts";
import { countMatches } from "../../src/webhooks/store/operations/replay_search.ts";
import {
  cancelReplay,
  continueReplay,
  findReplay,
  isReplayDue,
  listReplays,
  type ReplayStep,
  startReplay,
} from "../../src/webhooks/store/operations/replays.ts";
import { removeFinished } from "../../src/webhooks/store/operations/retention.ts";
import {
  ACKNOWLEDGED,
  allPages,
  audit,
  DAY,
  EXHAUSTED,
  newId,
  NOW,
  retryAt,
  type StoreCases,
  type TestStore,
} from "./webhook_store_bed.ts";

const HOUR = 3_600_000;
/** When the replays start. */
const LATER = NOW + HOUR;

function replay(part: Partial<Replay> = {}): Replay {
  return {
    id: newId(),
    source: "events",
    state: "running",
    done: 0,
    until: LATER,
    createdAt: LATER,
    ...part,
  };
}

async function started(store: TestStore, part: Partial<Replay> = {}): Promise<Replay> {
  const one = replay(part);
  assertEquals(await store.write(startReplay, one, audit()), "started");
  return one;
}

/** Continues replays until they wait; returns the steps. */
async function steps(store: TestStore, now = LATER, maxOpen = 10_000): Promise<readonly ReplayStep[]> {
  const all: ReplayStep[] = [];
  for (;;) {
    const step = await store.write(continueReplay, { now, newId, maxOpen });
    if (step === undefined) return all;
    all.push(step);
  }
}

async function counted(store: TestStore, scope: Replay): Promise<number> {
  let count = 0;
  let position: Parameters<typeof countMatches>[1];
  do {
    const portion = await store.read(countMatches, scope, position);
    count += portion.count;
    position = portion.next;
  } while (position !== undefined);
  return count;
}

async function progress(store: TestStore, { id }: Replay) {
  const { state, done, reason, finishedAt } = await store.read(findReplay, id) ?? {};
  return [
    state,
    done,
    ...reason === undefined ? [] : [reason],
    ...finishedAt === undefined ? [] : [finishedAt],
  ];
}

function deliveriesOf(store: TestStore, replayId: string) {
  return allPages((options) => store.read(listDeliveries, options), { limit: 200, replayId });
}

const body = (data: unknown) => new TextEncoder().encode(JSON.stringify({ event: "order.created", data }));

function order(data: unknown = {}): Partial<NewEvent> {
  return { kind: "order.created", body: body(data) };
}

async function addEvents(store: TestStore, count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index++) ids.push((await store.addEvent(order(), NOW + index)).id);
  return ids;
}

/** Replays, and retries of deliveries. */
export const REPLAY_CASES: StoreCases = {
  "a replay creates one delivery of each event that matches, for an endpoint that is newer": async (
    store,
  ) => {
    const before = await store.addEvent(order({ plan: "pro" }), NOW - 1);
    const first = await store.addEvent(order({ plan: "pro", total: 7 }), NOW);
    const small = await store.addEvent(order({ plan: "pro", total: 1 }), NOW + 1);
    const other = await store.addEvent({ ...order({ plan: "pro", total: 9 }), kind: "order.paid" }, NOW + 2);
    const unseen = await store.addEvent({ ...order({ total: 9 }), kind: "order.created" }, NOW + 3);
    const foreign = await store.addEvent(
      { ...order({ plan: "pro", total: 9 }), kind: "agent.done" },
      NOW + 4,
    );
    const erased = await store.addEvent(order({ plan: "pro", total: 9 }), NOW + 5);
    await store.write(erasePayload, erased.id, { now: NOW + 6, newId, audit: audit() });
    const last = await store.addEvent(order({ plan: "pro", total: 8 }), NOW + 7);
    await store.addEvent(order({ plan: "pro", total: 8 }), LATER);
    const to = await store.addEndpoint({ events: ["order.*"], filter: '{"plan":["pro"]}' });
    const scope = { endpointId: to.id, since: NOW, filter: '{"total":{"greater":5}}' };
    for (
      const [events, matches] of [[undefined, [first, other, last]], [["order.created"], [
        first,
        last,
      ]]] as const
    ) {
      const one = await started(store, { ...scope, events });
      assertEquals(await counted(store, one), matches.length);
      assert(await store.read(isReplayDue, LATER));
      assertEquals(await steps(store), [{ endpointId: to.id, count: matches.length }]);
      assertEquals(await store.read(isReplayDue, LATER), false);
      assertEquals(await progress(store, one), ["finished", matches.length, LATER]);
      const created = await deliveriesOf(store, one.id);
      assertEquals(created.map(({ eventId }) => eventId).reverse(), matches.map(({ id }) => id));
      assertEquals(
        created.map(({ state, createdAt, dueAt, replayId }) => [state, createdAt, dueAt, replayId]),
        matches.map(() => ["attempting", LATER, LATER, one.id]),
      );
      assertEquals((await store.metrics(LATER)).replays, 0);
    }
    assertEquals((await store.metrics(LATER)).deliveries.attempting, 5);
    const all = new Set(
      (await store.read(listDeliveries, { limit: 200 })).items.map(({ eventId }) => eventId),
    );
    for (const { id } of [before, small, unseen, foreign, erased]) assertEquals(all.has(id), false);
  },

  "each event has one delivery although processes continue a replay at the same time": async (store) => {
    const to = await store.addEndpoint();
    const ids = await addEvents(store, 640);
    const live = await store.claim([to], { now: LATER, max: 1_000 });
    await Promise.all(live.map((one) => store.finish(one, ACKNOWLEDGED)));
    const one = await started(store, { endpointId: to.id, since: NOW });
    const processes = [store, await store.another(), await store.another()];
    let now = LATER;
    for (let round = 0; (await store.read(findReplay, one.id))?.state === "running"; round++) {
      assert(round < 20, "the replay ends");
      await Promise.all(processes.map((process) => steps(process, now)));
      const claimed = await store.claim([to], { now, max: 1_000 });
      assert(claimed.length <= 200, `${claimed.length} are due`);
      await Promise.all(claimed.map((claim) => store.finish(claim, ACKNOWLEDGED)));
      now += 1_000;
    }
    assertEquals((await progress(store, one)).slice(0, 2), ["finished", 640]);
    const created = await deliveriesOf(store, one.id);
    assertEquals(created.map(({ eventId }) => eventId).toSorted(), ids.toSorted());
    assertEquals((await store.metrics(now)).deliveries, {
      attempting: 0,
      retrying: 0,
      acknowledged: 1_280,
      failed: 0,
    });
  },

  "a replay waits for room among the due and the open deliveries of its endpoint": async (store) => {
    await addEvents(store, 210);
    const to = await store.addEndpoint();
    const one = await started(store, { endpointId: to.id, since: NOW });
    const counts = async (now: number, maxOpen?: number) =>
      (await steps(store, now, maxOpen)).map(({ count }) => count);
    assertEquals(await counts(LATER, 50), [50]);
    assertEquals(await counts(LATER + 100, 50), [0]);
    assertEquals(await counts(LATER + 100), [], "it waits for half a second");
    assertEquals(await counts(LATER + 600), [150]);
    assertEquals(await counts(LATER + 1_200), [0]);
    const claimed = await store.claim([to], { now: LATER, max: 4 });
    for (const claim of claimed) await store.finish(claim, ACKNOWLEDGED);
    assertEquals(await counts(LATER + 1_800), [4]);
    await Promise.all(
      (await store.claim([to], { now: LATER + 1_800, max: 500 })).map((claim) =>
        store.finish(claim, ACKNOWLEDGED)
      ),
    );
    assertEquals(await counts(LATER - DAY), [6], "also after the clock was set back");
    assertEquals((await progress(store, one)).slice(0, 2), ["finished", 210]);
  },

  "deliveries of a replay are claimed only where no others are due": async (store) => {
    await addEvents(store, 8);
    const to = await store.addEndpoint({ rateLimit: { unit: "hour", requestsPerUnit: 6 } });
    const other = await store.addEndpoint();
    const one = await started(store, { endpointId: to.id, since: NOW });
    await steps(store);
    const live = [await store.addEvent(order(), LATER + 1), await store.addEvent(order(), LATER + 2)];
    const claimed = await store.claim([to, other], { now: LATER + 3, max: 3 });
    const found = claimed.filter(({ endpoint }) => endpoint.id === to.id).map(({ delivery }) => delivery);
    assertEquals(found.map(({ replayId }) => replayId), [undefined, undefined, one.id]);
    assertEquals(found.slice(0, 2).map(({ eventId }) => eventId), live.map(({ id }) => id));
    assertEquals(claimed.filter(({ endpoint }) => endpoint.id === other.id).length, 2);
    assertEquals(
      (await store.claim([to], { now: LATER + 4, max: 10 })).length,
      3,
      "as many as the rate allows",
    );
  },

  "a replayed delivery has the time of its event where its body has a time": async (store) => {
    const { id } = await store.addEvent(order(), NOW);
    const to = await store.addEndpoint({ format: "cloudevents" });
    await started(store, { endpointId: to.id, since: NOW });
    await steps(store);
    const { body } = await store.claimOne(to, LATER);
    const sent = JSON.parse(new TextDecoder().decode(body));
    assertEquals([sent.id, sent.time], [id, new Date(NOW).toISOString()]);
  },

  "a cancelled replay goes no further, and one that has ended cannot be cancelled": async (store) => {
    await addEvents(store, 250);
    const to = await store.addEndpoint();
    const one = await started(store, { endpointId: to.id, since: NOW });
    await steps(store);
    const cancel = (id: string) =>
      store.write(cancelReplay, id, { now: LATER + 5, audit: audit({ action: "replay.cancelled" }) });
    assertEquals([await cancel(one.id), await cancel(one.id), await cancel(newId())], [
      true,
      false,
      undefined,
    ]);
    assertEquals(await steps(store, LATER + HOUR), []);
    assertEquals(await progress(store, one), ["cancelled", 200, LATER + 5]);
    assertEquals((await store.auditLog()).filter((entry) => entry.startsWith("replay.")).length, 1);
    assertEquals((await deliveriesOf(store, one.id)).length, 200);
  },

  "a replay fails with its endpoint, and a retry over all endpoints goes on": async (store) => {
    const [gone, kept] = [await store.addEndpoint(), await store.addEndpoint()];
    await addEvents(store, 3);
    for (const claim of await store.claim([gone, kept], { now: LATER })) await store.finish(claim, EXHAUSTED);
    const one = await started(store, { endpointId: gone.id, since: NOW });
    const retry = await started(store, { source: "deliveries", deliveryState: "failed" });
    assertEquals(await counted(store, retry), 6);
    await store.write(deleteEndpoint, gone.id, { now: LATER, newId, audit: audit() });
    await steps(store);
    assertEquals(await progress(store, one), ["failed", 0, "endpoint_deleted", LATER]);
    assertEquals(await progress(store, retry), ["finished", 3, LATER]);
    const unknown = replay({ endpointId: newId(), since: NOW });
    assertEquals(await store.write(startReplay, unknown, audit()), undefined);
    assertEquals(await store.read(findReplay, unknown.id), undefined);
  },

  "a retry opens the failed deliveries that match again, once": async (store) => {
    const [one, two] = [await store.addEndpoint(), await store.addEndpoint()];
    const [first = "", second = "", erased = ""] = await addEvents(store, 3);
    const { id: paid } = await store.addEvent({ ...order(), kind: "order.paid" }, NOW + 3);
    for (const claim of await store.claim([one, two], { now: LATER })) await store.finish(claim, EXHAUSTED);
    await store.write(erasePayload, erased, { now: LATER, newId, audit: audit() });
    const retry = { source: "deliveries", deliveryState: "failed" } as const;
    const cases: readonly (readonly [Partial<Replay>, readonly string[]])[] = [
      [{ endpointId: one.id, since: NOW + 1, until: NOW + 2 }, [second]],
      [{ eventId: first }, [first, first]],
      [{ events: ["order.paid"], endpointId: two.id }, [paid]],
      [{}, [second, paid]],
      [{}, []],
    ];
    for (const [scope, eventIds] of cases) {
      const retried = await started(store, { ...retry, ...scope });
      assertEquals(await counted(store, retried), eventIds.length, JSON.stringify(scope));
      await steps(store);
      assertEquals((await progress(store, retried)).slice(0, 2), ["finished", eventIds.length]);
      const reopened = await deliveriesOf(store, retried.id);
      assertEquals(reopened.map(({ eventId }) => eventId).toSorted(), eventIds.toSorted());
      for (const { state, slot, dueAt, finishedAt } of reopened) {
        assertEquals([state, slot, dueAt, finishedAt], ["attempting", 0, LATER, undefined]);
      }
    }
    assertEquals((await store.metrics(LATER)).deliveries, {
      attempting: 6,
      retrying: 0,
      acknowledged: 0,
      failed: 2,
    });
  },

  "a retry of deliveries that wait for a retry makes one attempt of each": async (store) => {
    const to = await store.addEndpoint();
    await addEvents(store, 3);
    for (const claim of await store.claim([to], { now: LATER })) {
      await store.finish(claim, retryAt(LATER + DAY));
    }
    const retry = await started(store, {
      source: "deliveries",
      deliveryState: "retrying",
      endpointId: to.id,
    });
    await steps(store);
    assertEquals((await progress(store, retry)).slice(0, 2), ["finished", 3]);
    const claimed = await store.claim([to], { now: LATER });
    assertEquals(
      claimed.map(({ manual, delivery }) => [manual, delivery.dueAt]),
      Array(3).fill([true, LATER + DAY]),
    );
    for (const claim of claimed) await store.finish(claim, undefined);
    await store.assertNothingDue(to, LATER);
  },

  "so many replays run at most, over all processes": async (store) => {
    const to = await store.addEndpoint();
    const processes = [store, await store.another()];
    const outcomes = await Promise.all(
      Array.from({ length: 14 }, (_, index) => {
        const one = replay({ endpointId: to.id, since: NOW });
        return processes[index % 2]?.write(startReplay, one, audit({ action: "replay.started" }));
      }),
    );
    assertEquals(outcomes.filter((outcome) => outcome === "started").length, 10);
    assertEquals(outcomes.filter((outcome) => outcome === "too_many").length, 4);
    assertEquals((await store.metrics(LATER)).replays, 10);
    assertEquals((await store.auditLog()).filter((entry) => entry.startsWith("replay.")).length, 10);
    await steps(store);
    assertEquals(
      await store.write(startReplay, replay({ endpointId: to.id, since: NOW }), audit()),
      "started",
    );
  },

  "replays are listed by their endpoint and state, and removed when they are old": async (store) => {
    const [one, two] = [await store.addEndpoint(), await store.addEndpoint()];
    const full = await started(store, {
      endpointId: one.id,
      events: ["order.*"],
      filter: '{"n":[12345678901234567890]}',
      since: NOW,
      count: 7,
    });
    assertEquals(await store.read(findReplay, full.id), full);
    const second = await started(store, {
      source: "deliveries",
      endpointId: two.id,
      deliveryState: "failed",
    });
    const pages = (options = {}) => allPages((page) => store.read(listReplays, page), options);
    assertEquals((await pages()).map(({ id }) => id), [second.id, full.id]);
    assertEquals((await pages({ endpointId: one.id })).map(({ id }) => id), [full.id]);
    await store.write(cancelReplay, full.id, { now: LATER, audit: audit() });
    assertEquals((await pages({ state: "running" })).map(({ id }) => id), [second.id]);
    const remove = (before: number) => store.write(removeFinished, { before, now: LATER, max: 9 });
    await remove(LATER);
    assertEquals((await pages()).length, 2);
    await remove(LATER + 1);
    assertEquals((await pages()).map(({ id }) => id), [second.id], "one that runs stays");
  },
};
