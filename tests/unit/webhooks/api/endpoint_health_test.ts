import { assertEquals } from "#assert";
import { WebhookBed, type WebhookBedOptions } from "../../../harness/webhook_service_fixture.ts";
import { instead, storeWith } from "../../../harness/store_double.ts";
import { until } from "../../../harness/until.ts";
import type { SendResult } from "../../../../src/webhooks/deliveries/sender.ts";
import { recordAttempts } from "../../../../src/webhooks/store/operations/endpoint_health.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOON = "2026-01-01T12:00:00.000Z";

/** A service that works, with a receiver that answers as the test says. */
async function workingBed(options: Pick<WebhookBedOptions, "store"> = {}) {
  const receiver = { answer: { status: 200 } as SendResult, sent: 0 };
  const send = () => {
    receiver.sent++;
    return Promise.resolve(receiver.answer);
  };
  const lock = { isSole: true, keep: () => true, release: () => {} };
  const bed = await WebhookBed.open({ ...options, parts: { sender: { send }, takeLock: () => lock } });
  bed.service.start();
  await until("the work to begin", () => bed.service.isWorking);
  /** Lets time pass in seconds until something is the case. */
  const pass = (what: string, isSo: () => Promise<boolean>) =>
    until(what, () => {
      bed.clock.advance(1_000);
      return isSo();
    });
  const add = async (fields: object = {}) =>
    (await bed.call("POST", "/endpoints", { url: "https://example.com/", ...fields })).body.id;
  const show = async (id: string) => (await bed.call("GET", `/endpoints/${id}`)).body;
  return { bed, receiver, pass, add, show };
}

Deno.test("health of endpoints: an endpoint shows its failures, and its rate and time of an hour and a day", async () => {
  const { bed, receiver, pass, add, show } = await workingBed();
  await using _ = bed;
  const id = await add();
  assertEquals([(await show(id))["attempts"], (await show(id))["consecutiveFailures"]], [
    undefined,
    undefined,
  ]);
  await bed.post({ event: "a", data: {} });
  await pass("the success", async () => (await show(id))["attempts"] !== undefined && receiver.sent === 1);
  receiver.answer = { status: 503, errorKind: "status", error: "the endpoint returned 503" };
  await bed.post({ event: "a", data: {} });
  await pass("two failures", async () => Number((await show(id))["consecutiveFailures"]) >= 2);
  const { attempts, failingSince, consecutiveFailures, enabled } = await show(id);
  assertEquals([enabled, consecutiveFailures, String(failingSince) > NOON], [true, 2, true]);
  const sums = { attempts: 3, failures: 2, successRate: 0.3333 };
  // The time passes in seconds while an attempt runs.
  const periods = (attempts as Record<string, number>[]).map(({ meanMs = -1, maxMs = -1, ...rest }) => {
    return { ...rest, areTimes: meanMs >= 0 && maxMs >= meanMs };
  });
  assertEquals(periods as object[], [
    { period: "1h", ...sums, areTimes: true },
    { period: "24h", ...sums, areTimes: true },
  ]);
  const { items } = (await bed.call("GET", "/endpoints")).body;
  assertEquals(items, [await show(id)]);
  const hours = await bed.call("GET", `/endpoints/${id}/attempts`);
  assertEquals(hours.body.items as object[], [{ at: NOON, succeeded: 1, failed: 2 }]);
  assertEquals((await bed.call("GET", `/endpoints/${crypto.randomUUID()}/attempts`)).status, 404);
});

Deno.test("health of endpoints: a delivery of a failing one says so", async () => {
  const { bed, receiver, pass, add, show } = await workingBed();
  await using _ = bed;
  const id = await add();
  receiver.answer = { errorKind: "connect", error: "connection refused" };
  for (let n = 0; n < 30; n++) await bed.post({ event: "a", data: {} });
  await pass("the failures", async () => Number((await show(id))["consecutiveFailures"]) >= 20);
  const { body: { items } } = await bed.call("GET", `/deliveries?endpointId=${id}&limit=200`);
  const held = items.map((one) => String(one["why"])).filter((why) =>
    why.includes("with pauses of up to 30 seconds")
  );
  assertEquals(held.length > 0, true);
});

Deno.test("health of endpoints: one that is enabled again answers what it has missed", async () => {
  const { bed, receiver, pass, add, show } = await workingBed();
  await using _ = bed;
  const id = await add();
  receiver.answer = { status: 410, errorKind: "status", error: "the endpoint returned 410" };
  const createdAt = new Date(bed.clock.now()).toISOString();
  await bed.post({ event: "a", data: {} });
  await pass("the first failure", async () => (await show(id))["consecutiveFailures"] === 1);
  bed.clock.advance(DAY + HOUR);
  const failed = async () => (await bed.call("GET", "/deliveries?state=failed")).body.items.length;
  await pass("the last failure", async () => await failed() === 1);
  await pass("the health", async () => (await show(id))["consecutiveFailures"] === 2);
  // The store decides, however the failures came about.
  const now = bed.clock.now();
  const failures = { count: 1, firstAt: now, lastAt: now, areReportable: true };
  const summary = { succeeded: 0, failed: 1, answered: 0, totalMs: 0, maxMs: 0, failures };
  const options = { now, newId: () => crypto.randomUUID(), disableAfterMs: 1_000 };
  await bed.store.write(recordAttempts, [{ endpointId: id, summary }], options);
  const disabled = await show(id);
  assertEquals([disabled["enabled"], disabled["disabledReason"], disabled["disabledAt"]], [
    false,
    "failing",
    new Date(now).toISOString(),
  ]);
  const unchanged = (await bed.call("PATCH", `/endpoints/${id}`, { description: "moved" })).body;
  assertEquals([unchanged["missed"], unchanged["enabled"]], [undefined, false]);
  receiver.answer = { status: 200 };
  const enabled = await bed.call("PATCH", `/endpoints/${id}`, { enabled: true });
  const { missed, missedSince, disabledReason, failingSince, consecutiveFailures } = enabled.body;
  assertEquals([enabled.status, missed, missedSince, disabledReason, failingSince, consecutiveFailures], [
    ...[200, 1, createdAt, undefined, undefined, undefined],
  ]);
  const range = { since: missedSince, until: "0s" };
  const counted = await bed.call("POST", `/endpoints/${id}/recover`, { ...range, dryRun: true });
  assertEquals(counted.body["count"], 1);
  await bed.call("POST", `/endpoints/${id}/recover`, range);
  await pass(
    "the delivery",
    async () => await failed() === 0 && (await show(id))["consecutiveFailures"] === undefined,
  );
  assertEquals((await bed.call("PATCH", `/endpoints/${id}`, { enabled: true })).body["missed"], undefined);
  const off = (await bed.call("PATCH", `/endpoints/${id}`, { enabled: false })).body;
  assertEquals(off["disabledReason"], "admin");
  const on = (await bed.call("PATCH", `/endpoints/${id}`, { enabled: true })).body;
  assertEquals([on["missed"], on["missedSince"]], [0, undefined]);
});

Deno.test("health of endpoints: status 410 disables an endpoint with onGone, with the reason", async () => {
  const { bed, receiver, pass, add, show } = await workingBed();
  await using _ = bed;
  receiver.answer = { status: 410, errorKind: "status", error: "the endpoint returned 410" };
  const plain = await add();
  const id = await add({ onGone: "disable" });
  await bed.post({ event: "a", data: {} });
  await pass("the disabling", async () => (await show(id))["enabled"] === false);
  const { disabledReason, onGone, consecutiveFailures } = await show(id);
  assertEquals([disabledReason, onGone, consecutiveFailures], ["gone", "disable", 1]);
  await pass("the failure of the other one", async () => (await show(plain))["consecutiveFailures"] === 1);
  assertEquals((await show(plain))["enabled"], true);
  const { items } = (await bed.call("GET", `/deliveries?endpointId=${id}`)).body;
  const states = items.map((one) => [one["state"], String(one["why"]).split("; ")[0]]);
  assertEquals(states, [["retrying", "its endpoint is disabled"]]);
  receiver.answer = { status: 200 };
  await bed.call("PATCH", `/endpoints/${id}`, { enabled: true, onGone: null });
  await pass("the success", async () => (await show(id))["consecutiveFailures"] === undefined);
  assertEquals((await show(id))["onGone"], undefined);
});

Deno.test("health of endpoints: an attempt that cannot be made is no failure of its endpoint", async () => {
  const { bed, receiver, pass, add, show } = await workingBed();
  await using _ = bed;
  const id = await add();
  receiver.answer = { errorKind: "unsendable", error: "no key" };
  await bed.post({ event: "a", data: {} });
  await pass("the attempt", () => Promise.resolve(receiver.sent === 1));
  receiver.answer = { status: 200 };
  await bed.post({ event: "a", data: {} });
  await pass("the statistics", async () => (await show(id))["attempts"] !== undefined);
  const [hour] = (await show(id))["attempts"] as Record<string, unknown>[];
  assertEquals(hour?.["failures"], 0);
});

Deno.test("health of endpoints: attempts that a failing store did not take are recorded later", async () => {
  let failures = 3;
  const failing = instead(recordAttempts, (call) => {
    return failures-- > 0 ? Promise.reject(new Error("no store")) : call();
  });
  const { bed, receiver, pass, add, show } = await workingBed({
    store: (store) => storeWith(store, [failing]),
  });
  await using _ = bed;
  const id = await add();
  for (let n = 1; n <= 2; n++) {
    await bed.post({ event: "a", data: {} });
    await pass("the attempt", () => Promise.resolve(receiver.sent === n));
  }
  await pass("the statistics", async () => {
    const attempts = (await show(id))["attempts"] as { attempts: number }[] | undefined;
    return attempts?.[0]?.attempts === 2;
  });
  assertEquals(failures < 0, true);
  assertEquals(bed.log.filter((line) => line.includes("Cannot record the health of endpoints")).length, 1);
});
