import { assert, assertEquals } from "#assert";
import {
  audit,
  DAY,
  endpoint,
  event,
  newId,
  NOW,
  retryAt,
  type StoreCases,
  type TestStore,
} from "./webhook_store_bed.ts";
import type { Endpoint, EndpointEdit } from "../../src/webhooks/model/records.ts";
import { clockSetBack } from "../../src/webhooks/store/operations/claims.ts";
import {
  findDelivery,
  recoverDeliveries,
  resendDelivery,
} from "../../src/webhooks/store/operations/deliveries.ts";
import { dueEndpoints } from "../../src/webhooks/store/operations/delivery_claims.ts";
import { editEndpoint, findEndpoint } from "../../src/webhooks/store/operations/endpoints.ts";
import type { ClaimedDelivery } from "../../src/webhooks/store/store.ts";

const HOUR = 3_600_000;
const PER_HOUR = { unit: "hour", requestsPerUnit: 2 } as const;

/** Claims for endpoints; returns the numbers of claims, and how long each endpoint waits. */
async function claims(store: TestStore, to: readonly Endpoint[], now = NOW, max = 10) {
  const waits = new Map<string, number>();
  const claimed = await store.claimDeliveries({
    now,
    leaseUntil: now + 60_000,
    newClaimId: newId,
    requests: to.map(({ id }) => ({ endpointId: id, max })),
    onRateLimited: (id, waitMs) => waits.set(id, rounded(waitMs)),
  });
  return to.map(({ id }) => [claimed.filter((one) => one.endpoint.id === id).length, waits.get(id)]);
}

/** In whole seconds: a bucket is refilled late, by less than a millionth of the unit. */
function rounded(ms: number): number {
  return Math.round(ms / 1_000) * 1_000;
}

function seconds({ delivery: { waitedMs = 0 } }: ClaimedDelivery): number {
  return rounded(waitedMs) / 1_000;
}

async function addEvents(store: TestStore, count: number, now = NOW): Promise<void> {
  for (let index = 0; index < count; index++) await store.addEvent(event(), now + index);
}

function edit(store: TestStore, { id }: Endpoint, change: EndpointEdit) {
  return store.write(editEndpoint, id, change, { now: NOW, audit: audit() });
}

/** The rates of endpoints. */
export const RATE_CASES: StoreCases = {
  "an endpoint with a rate gets no more claims than it allows, and others wait for nothing": async (
    store,
  ) => {
    const slow = await store.addEndpoint({ rateLimit: PER_HOUR });
    const free = await store.addEndpoint();
    const day = await store.addEndpoint({ rateLimit: { unit: "day", requestsPerUnit: 5 } });
    assertEquals((await store.read(findEndpoint, slow.id))?.rateLimit, PER_HOUR);
    await addEvents(store, 4);
    const later = NOW + 10;
    assertEquals(await claims(store, [slow, free, day], later, 3), [[2, HOUR / 2], [3, undefined], [
      3,
      undefined,
    ]]);
    const { rateNextAt = 0 } = await store.read(findEndpoint, slow.id) ?? {};
    assertEquals(rounded(rateNextAt - later), HOUR / 2);
    const due = async (now: number) => (await store.read(dueEndpoints, now)).map(({ id }) => id);
    assertEquals(await due(later), [free.id, day.id]);
    const { dueNow, rateLimited } = await store.metrics(later + 1);
    assertEquals([dueNow, rateLimited], [2, 1]);
    assertEquals((await store.metrics(rateNextAt)).rateLimited, 0);
    assertEquals(await claims(store, [slow, free, day], later + 1), [[0, HOUR / 2], [1, undefined], [
      1,
      undefined,
    ]]);
    assertEquals(await due(rateNextAt), [slow.id]);
    assertEquals(await claims(store, [slow], rateNextAt), [[1, HOUR / 2]]);
  },

  "the rate of an endpoint holds over all processes": async (store) => {
    const to = await store.addEndpoint({ rateLimit: { unit: "minute", requestsPerUnit: 7 } });
    await addEvents(store, 30);
    const stores = [store, await store.another(), await store.another()];
    let sum = 0;
    for (let round = 0; round < 4; round++) {
      const counts = await Promise.all(stores.map((one) => claims(one, [to], NOW + 60_001, 2)));
      sum += counts.flat().reduce((total, [count = 0]) => total + count, 0);
    }
    assertEquals(sum, 7);
  },

  "another rate begins full, the same one keeps its state, and none limits nothing": async (store) => {
    const to = await store.addEndpoint({ rateLimit: PER_HOUR });
    await addEvents(store, 9);
    assertEquals(await claims(store, [to], NOW + 10), [[2, HOUR / 2]]);
    await edit(store, to, { rateLimit: { ...PER_HOUR } });
    await edit(store, to, { description: "changed" });
    assertEquals(await claims(store, [to], NOW + 10), [[0, HOUR / 2]]);
    await edit(store, to, { rateLimit: { unit: "hour", requestsPerUnit: 3 } });
    assertEquals((await store.read(findEndpoint, to.id))?.rateNextAt, undefined);
    assertEquals(await claims(store, [to], NOW + 10), [[3, HOUR / 3]]);
    await edit(store, to, { rateLimit: null });
    assertEquals((await store.read(findEndpoint, to.id))?.rateLimit, undefined);
    assertEquals(await claims(store, [to], NOW + 10), [[4, undefined]]);
  },

  "retries remember how long they waited for the rate, first and manual attempts do not": async (store) => {
    const to = await store.addEndpoint({ rateLimit: { unit: "hour", requestsPerUnit: 1 } });
    const { id: eventId } = await store.addEvent();
    const first = await store.claimOne(to);
    assert(await store.finish(first, retryAt(NOW + 60_000)));
    assertEquals(await claims(store, [to], NOW + 60_000), [[0, HOUR - 60_000]]);
    const retry = await store.claimOne(to, NOW + HOUR + 10);
    assertEquals(seconds(retry), 3_540);
    assert(await store.finish(retry, retryAt(NOW + HOUR + 60_000)));
    assertEquals((await store.deliveryOf(eventId)).waitedMs, retry.delivery.waitedMs);
    const again = await store.claimOne(to, NOW + 2 * HOUR + 20);
    assertEquals(seconds(again), 7_080);
    const failed = {
      state: "failed",
      slot: 8,
      firstFailureAt: NOW,
      finishedAt: NOW + DAY,
      reason: "rate_limited",
    };
    assert(await store.finish(again, failed as Parameters<typeof store.finish>[1]));
    const deliveryId = first.delivery.id;
    await store.write(resendDelivery, deliveryId, { now: NOW + 2 * HOUR + 70_000, audit: audit() });
    const manual = await store.claimOne(to, NOW + 4 * HOUR);
    assertEquals([manual.manual, seconds(manual)], [true, 7_080]);
    assert(await store.finish(manual));
    const range = { endpointId: to.id, since: 0, until: NOW + DAY, max: 9, now: NOW + DAY, dryRun: false };
    assertEquals(await store.write(recoverDeliveries, { ...range, audit: audit() }), 1);
    const recovered = await store.read(findDelivery, deliveryId);
    assertEquals([recovered?.delivery.state, recovered?.delivery.waitedMs], ["attempting", undefined]);
  },

  "a retry that waited for a token between two milliseconds is claimed, and others with it": async (
    store,
  ) => {
    const to = await store.addEndpoint({ rateLimit: PER_HOUR });
    const other = await store.addEndpoint();
    await addEvents(store, 1);
    assert(await store.finish(await store.claimOne(to), retryAt(NOW + 60_000)));
    await addEvents(store, 1);
    assertEquals(await claims(store, [to], NOW + 10), [[1, HOUR / 2]]);
    assertEquals(await claims(store, [to], NOW + 60_000), [[0, HOUR / 2 - 60_000]]);
    const later = NOW + HOUR / 2 + 60_000;
    assertEquals(await claims(store, [to, other], later), [[1, HOUR / 2 - 60_000], [2, undefined]]);
  },

  "after the clock was set back an endpoint waits for its rate by the new time": async (store) => {
    const to = await store.addEndpoint({ rateLimit: { unit: "minute", requestsPerUnit: 1 } });
    await addEvents(store, 2, NOW - DAY);
    assertEquals(await claims(store, [to]), [[1, 60_000]]);
    const before = NOW - DAY + 10;
    assertEquals((await store.read(dueEndpoints, before)).length, 0);
    await store.write(clockSetBack, before);
    assertEquals((await store.read(dueEndpoints, before)).map(({ id }) => id), [to.id]);
    assertEquals(await claims(store, [to], before), [[0, 60_000]]);
    assertEquals(await claims(store, [to], before + 60_001), [[1, 60_000]]);
  },

  "a rate is read as it was written": async (store) => {
    const added = endpoint({ rateLimit: { unit: "day", requestsPerUnit: 1_000_000 } });
    assertEquals(await store.addEndpoint(added).then(({ id }) => store.read(findEndpoint, id)), added);
  },
};
