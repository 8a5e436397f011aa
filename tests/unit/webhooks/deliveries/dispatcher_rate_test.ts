import { assert, assertEquals } from "#assert";
import { DispatcherBed, NOT_FOUND } from "../../../harness/dispatcher_fixture.ts";
import { storeWith } from "../../../harness/store_double.ts";
import { listDeliveries, resendDelivery } from "../../../../src/webhooks/store/operations/deliveries.ts";
import { dueEndpoints } from "../../../../src/webhooks/store/operations/delivery_claims.ts";
import { editEndpoint } from "../../../../src/webhooks/store/operations/endpoints.ts";
import type { EndpointEdit } from "../../../../src/webhooks/model/records.ts";
import type { WebhookStore } from "../../../../src/webhooks/store/store.ts";

const HOUR = 3_600_000;
const PER_SECOND = { unit: "second", requestsPerUnit: 10 } as const;
const PER_HOUR = { unit: "hour", requestsPerUnit: 1 } as const;
const PER_DAY = { unit: "day", requestsPerUnit: 1 } as const;

/** Moves time on in steps, as it passes. */
async function pass(bed: DispatcherBed, ms: number, stepMs: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    bed.clock.advance(stepMs);
    await bed.settled();
  }
}

async function edit(bed: DispatcherBed, id: string, change: EndpointEdit): Promise<void> {
  await bed.store.write(editEndpoint, id, change, {
    now: bed.clock.now(),
    audit: bed.entry("endpoint.changed"),
  });
}

/** Requests by the end of their URL. */
function sentTo(bed: DispatcherBed, id: string): number {
  return bed.sender.sent.filter(({ url }) => url.endsWith(id)).length;
}

Deno.test("an endpoint with a rate gets a burst and then its rate, and others are not held up", async () => {
  await using bed = await DispatcherBed.open();
  const slow = await bed.endpoint({ rateLimit: PER_SECOND });
  const other = await bed.endpoint();
  for (let count = 0; count < 60; count++) await bed.event();
  bed.start({ maxInFlight: 4 });
  await bed.sent(70);
  assertEquals([sentTo(bed, slow), sentTo(bed, other)], [10, 60]);
  const counts: number[] = [];
  for (let second = 1; second <= 5; second++) {
    await pass(bed, 1_000, 50);
    counts.push(sentTo(bed, slow));
  }
  assertEquals(counts, [20, 30, 40, 50, 60]);
  assertEquals(bed.reports.every(({ number, result }) => number === 1 && result === "acknowledged"), true);
});

Deno.test("a rate holds over several dispatchers, a restart and deliveries that are sent by hand", async () => {
  await using bed = await DispatcherBed.open();
  const id = await bed.endpoint({ rateLimit: PER_SECOND });
  for (let count = 0; count < 200; count++) await bed.event();
  const first = bed.start();
  bed.start();
  await bed.settled();
  assertEquals(sentTo(bed, id), 10);
  await pass(bed, 2_000, 50);
  assertEquals(sentTo(bed, id), 30);
  await first.stop(0);
  const next = bed.start();
  const [done] = (await bed.store.read(listDeliveries, { limit: 1, state: "acknowledged" })).items;
  await bed.store.write(resendDelivery, done?.id ?? "", { now: bed.clock.now(), audit: bed.entry("asked") });
  next.retryNow(id);
  await bed.settled();
  assertEquals(sentTo(bed, id), 30);
  await pass(bed, 1_000, 50);
  assertEquals(sentTo(bed, id), 40);
});

Deno.test("another rate, and none, hold from the next look on in every process", async () => {
  await using bed = await DispatcherBed.open();
  const id = await bed.endpoint({ rateLimit: PER_DAY });
  for (let count = 0; count < 30; count++) await bed.event();
  bed.start();
  await bed.settled();
  await pass(bed, 5_000, 1_000);
  assertEquals(sentTo(bed, id), 1);
  await edit(bed, id, { rateLimit: { unit: "day", requestsPerUnit: 4 } });
  await pass(bed, 2_000, 1_000);
  assertEquals(sentTo(bed, id), 5);
  await edit(bed, id, { rateLimit: null });
  await pass(bed, 2_000, 1_000);
  assertEquals(sentTo(bed, id), 30);
});

Deno.test("endpoints that wait for their rates take neither places nor claims, whatever becomes due", async () => {
  await using bed = await DispatcherBed.open();
  const ids = await Promise.all(Array.from({ length: 40 }, () => bed.endpoint({ rateLimit: PER_DAY })));
  await bed.event();
  await bed.event();
  const counts = { claims: 0, requests: 0, looks: 0 };
  const claimDeliveries: WebhookStore["claimDeliveries"] = (options) => {
    counts.claims++;
    counts.requests += options.requests.length;
    return bed.store.claimDeliveries(options);
  };
  const dispatcher = bed.start({ store: storeWith(bed.store, [], { claimDeliveries }), maxInFlight: 8 });
  await pass(bed, 20_000, 1_000);
  assertEquals(bed.sender.sent.length, 40);
  assertEquals((await bed.store.read(dueEndpoints, bed.clock.now())).length, 0);
  Object.assign(counts, { claims: 0, requests: 0 });
  for (let second = 0; second < 20; second++) {
    await bed.event();
    dispatcher.wake(ids);
    await pass(bed, 1_000, 1_000);
  }
  assertEquals([bed.sender.sent.length, dispatcher.running], [40, 0]);
  // One for each endpoint in ten seconds, as events arrive for it.
  assert(counts.requests <= 80 && counts.claims <= 12, JSON.stringify(counts));
  Object.assign(counts, { claims: 0, requests: 0 });
  await pass(bed, 60_000, 1_000);
  assertEquals(counts, { claims: 0, requests: 0, looks: 0 });
});

Deno.test("a delivery that waits for the rate keeps all its attempts, the last one too", async () => {
  await using bed = await DispatcherBed.withEvent({ rateLimit: PER_HOUR });
  bed.sender.receiver = () => NOT_FOUND;
  bed.random = 0;
  const begin = bed.clock.now();
  bed.start();
  await pass(bed, 6 * HOUR, 5_000);
  await pass(bed, 20 * HOUR, 60_000);
  const { delivery, attempts } = await bed.only();
  const minutes = attempts.map(({ startedAt }) => Math.round((startedAt - begin) / 60_000));
  // Without the rate: 0, 0.5, 1, 5, 30, 120, 480 and 1440 minutes.
  assertEquals(minutes.length, 8);
  assertEquals(minutes.slice(0, 5).map((minute) => Math.round(minute / 60)), [0, 1, 2, 3, 4]);
  assertEquals(Math.round((minutes[7] ?? 0) / 60), 24);
  assertEquals([delivery.state, delivery.reason], ["failed", "exhausted"]);
});

Deno.test("a delivery whose retries the rate has delayed by a day has its last attempt, and its reason says so", async () => {
  await using bed = await DispatcherBed.open();
  await bed.endpoint({ rateLimit: PER_DAY });
  bed.sender.receiver = () => NOT_FOUND;
  await bed.event();
  await bed.event();
  bed.start();
  await bed.settled();
  const states = async () => {
    const { items } = await bed.store.read(listDeliveries, { limit: 9 });
    return items.map(({ state, reason }) => `${state} ${reason ?? ""}`).reverse();
  };
  await pass(bed, 24 * HOUR - 60_000, 60_000);
  assertEquals(await states(), ["retrying ", "attempting "]);
  await pass(bed, 2 * HOUR, 60_000);
  assertEquals(await states(), ["retrying ", "retrying "], "the other one had waited longer");
  await pass(bed, 24 * HOUR, 60_000);
  assertEquals(await states(), ["failed rate_limited", "retrying "]);
  bed.sender.receiver = () => ({ status: 200 });
  await pass(bed, 24 * HOUR, 60_000);
  assertEquals(
    await states(),
    ["failed rate_limited", "acknowledged "],
    "its last attempt came two days late",
  );
  assertEquals(bed.sender.sent.length, 4);
});
