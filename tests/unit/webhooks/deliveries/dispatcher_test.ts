import { assert, assertEquals, assertMatch } from "#assert";
import { FakeClock } from "../../../harness/fake_clock.ts";
import { signature } from "../../../../src/webhooks/model/signature.ts";
import { eventually, until } from "../../../harness/until.ts";
import { DispatcherBed, NOT_FOUND, SECRET, SERVER_ERROR } from "../../../harness/dispatcher_fixture.ts";
import { deliverAll } from "../../../harness/dispatcher_loads.ts";
import { instead, storeWith } from "../../../harness/store_double.ts";
import { listAudit } from "../../../../src/webhooks/store/operations/audit_log.ts";
import { voidClaims } from "../../../../src/webhooks/store/operations/claims.ts";
import { listDeliveries, resendDelivery } from "../../../../src/webhooks/store/operations/deliveries.ts";
import { finishAttempt } from "../../../../src/webhooks/store/operations/delivery_claims.ts";
import { editEndpoint } from "../../../../src/webhooks/store/operations/endpoints.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

Deno.test("a delivery is attempted immediately, signed, and acknowledged by 2xx", async () => {
  await using bed = await DispatcherBed.open();
  const endpointId = await bed.endpoint();
  await bed.event();
  const dispatcher = bed.start();
  await bed.sent(1);
  const { delivery, attempts } = await bed.only();
  const [request] = bed.sender.sent;
  assert(request !== undefined);
  const seconds = Math.floor(bed.clock.now() / 1_000);
  assertEquals(request, {
    url: `https://receiver.example/${endpointId}`,
    headers: {
      "content-type": "application/json",
      "user-agent": "Weir/0.0.0",
      "x-svc-event": "agent.reply.completed",
      "x-svc-signature": await signature(SECRET, request.body),
      "x-svc-delivery": delivery.id,
      "x-svc-timestamp": `${seconds}`,
    },
    body: new TextEncoder().encode(`{"event":"agent.reply.completed","data":{"id":"${delivery.eventId}"}}`),
    timeoutMs: 15_000,
  });
  assertEquals([delivery.state, delivery.claimId, delivery.dueAt], ["acknowledged", undefined, undefined]);
  assertEquals(attempts.map(({ number, result, status, manual }) => [number, result, status, manual]), [
    [1, "acknowledged", 200, false],
  ]);
  assertEquals(dispatcher.metrics.attempts, { acknowledged: 1 });
});

Deno.test("the whole schedule: nine attempts in 24 hours, then failed and audited", async () => {
  await using bed = await DispatcherBed.withEvent();
  bed.random = 0;
  bed.sender.receiver = () => SERVER_ERROR;
  const begin = bed.clock.now();
  bed.start();
  await bed.sent(2);
  for (const at of [30_000, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 8 * HOUR, 24 * HOUR]) {
    const before = bed.reports.length;
    bed.clock.advance(begin + at - 1_000 - bed.clock.now());
    await bed.settled();
    assertEquals(bed.reports.length, before, `before ${at} ms`);
    bed.clock.advance(1_000);
    await bed.sent(before + 1);
  }
  const { delivery, attempts } = await bed.only();
  assertEquals(
    attempts.map(({ number, startedAt }) => [number, startedAt - begin]),
    [0, 0, 30_000, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 8 * HOUR, 24 * HOUR].map((
      at,
      index,
    ) => [index + 1, at]),
  );
  assertEquals([delivery.state, delivery.reason, delivery.finishedAt], [
    "failed",
    "exhausted",
    begin + 24 * HOUR,
  ]);
  const audit = await bed.store.read(listAudit, { limit: 10, event: "delivery.failed" });
  assertEquals(
    audit.items.map(({ object, actor, details }) => [object, actor, details["reason"], details["status"]]),
    [
      [`delivery:${delivery.id}`, "system", "exhausted", 500],
    ],
  );
  const { id, endpointId: endpoint, event } = delivery;
  const end = { reason: "exhausted", status: 500, error: "the receiver responded with 500" };
  const fields = { delivery: id, endpoint, event, attempts: 9, ...end };
  assertEquals(bed.log.lines, [{ level: "warning", message: "Delivery failed", fields }]);
  bed.clock.advance(48 * HOUR);
  await bed.settled();
  assertEquals(bed.reports.length, 9);
});

Deno.test("no more attempts run than an endpoint and the whole allow, and each endpoint has its turn", async () => {
  await using bed = await DispatcherBed.open();
  const [dead, healthy] = [await bed.endpoint({ concurrency: 3 }), await bed.endpoint({ concurrency: 2 })];
  const gate = Promise.withResolvers<void>();
  bed.sender.receiver = async ({ url }) => {
    if (url.endsWith(dead)) await gate.promise;
    return { status: 200 };
  };
  for (let count = 0; count < 20; count++) await bed.event();
  const dispatcher = bed.start({ maxInFlight: 4 });
  await until(
    "all of the healthy endpoint to be delivered",
    () => bed.reports.filter(({ endpointId }) => endpointId === healthy).length === 20,
  );
  assertEquals([dispatcher.inFlight(dead), dispatcher.running], [3, 3]);
  assertEquals(bed.sender.mostRunning <= 4, true);
  gate.resolve();
  await bed.sent(40);
  assertEquals(dispatcher.metrics.attempts, { acknowledged: 40 });
});

Deno.test("a stale worker that comes back changes nothing", async () => {
  await using bed = await DispatcherBed.withEvent();
  const gate = Promise.withResolvers<void>();
  bed.sender.receiver = async () => {
    bed.sender.receiver = () => new Promise(() => {});
    await gate.promise;
    return { status: 500, errorKind: "status", error: "too late" };
  };
  const stalled = bed.start();
  await until("the first to send", () => bed.sender.sent.length === 1);
  // What another process does when it takes the lock over.
  assertEquals(await bed.store.write(voidClaims, { now: bed.clock.now(), which: "all" }), 1);
  gate.resolve();
  await until("the next attempt to be out", () => bed.sender.sent.length === 2);
  const between = await bed.only();
  assertEquals(between.attempts.map(({ result }) => result), ["interrupted", undefined]);
  assertEquals([between.delivery.firstFailureAt, between.delivery.slot], [undefined, 0]);
  await eventually([1, {}], () => [stalled.metrics.lostClaims, stalled.metrics.attempts]);
});

Deno.test("stopping lets attempts end, gives back the others, and the next one makes them again", async () => {
  await using bed = await DispatcherBed.open();
  await bed.endpoint({ concurrency: 2 });
  await bed.event();
  await bed.event();
  let isFirst = true;
  const gate = Promise.withResolvers<void>();
  bed.sender.receiver = async () => {
    if (isFirst) {
      isFirst = false;
      await gate.promise;
      return { status: 200 };
    }
    return await new Promise(() => {});
  };
  const dispatcher = bed.start();
  await until("both to be sent", () => bed.sender.running === 2);
  const stopped = dispatcher.stop(10_000);
  gate.resolve();
  await bed.sent(1);
  await until("the grace to be waited for", () => bed.clock.waiting > 0);
  bed.clock.advance(10_000);
  await stopped;
  assertEquals([bed.clock.waiting, bed.sender.running], [0, 0]);
  const { items } = await bed.store.read(listDeliveries, { limit: 10 });
  assertEquals(items.map(({ state, claimId }) => [state, claimId]).sort(), [["acknowledged", undefined], [
    "attempting",
    undefined,
  ]]);
  bed.sender.receiver = () => ({ status: 200 });
  bed.start();
  await bed.sent(2);
  const deliveries = (await bed.store.read(listDeliveries, { limit: 10 })).items;
  assertEquals(deliveries.map(({ state }) => state), ["acknowledged", "acknowledged"]);
});

Deno.test("a claim that is held longer than its lease is renewed", async () => {
  await using bed = await DispatcherBed.withEvent({ timeoutMs: 300_000 });
  const answer = bed.sender.hold();
  bed.start();
  await until("the request to be sent", () => bed.sender.running === 1);
  const before = (await bed.only()).delivery.leaseUntil ?? 0;
  for (let second = 0; second < 600; second++) {
    bed.clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await bed.settled();
  assertEquals(((await bed.only()).delivery.leaseUntil ?? 0) > before, true);
  answer();
  await bed.sent(1);
  assertEquals((await bed.only()).delivery.state, "acknowledged");
});

Deno.test("a disabled endpoint pauses; after 24 hours what had failed is failed for good", async () => {
  await using bed = await DispatcherBed.open();
  const id = await bed.endpoint();
  await bed.event();
  bed.sender.receiver = () => NOT_FOUND;
  const dispatcher = bed.start();
  await bed.sent(1);
  await bed.settled();
  await bed.store.write(editEndpoint, id, { enabled: false }, {
    now: bed.clock.now(),
    audit: bed.entry("endpoint.edited"),
  });
  await bed.event();
  dispatcher.wake();
  bed.clock.advance(HOUR);
  await bed.settled();
  assertEquals(bed.reports.length, 1);
  bed.clock.advance(23 * HOUR + MINUTE);
  await bed.settled();
  const { items } = await bed.store.read(listDeliveries, { limit: 10 });
  assertEquals(items.map(({ state, reason }) => [state, reason]), [["attempting", undefined], [
    "failed",
    "endpoint_disabled",
  ]]);
});

Deno.test("an attempt by hand uses no slot; its success makes a failed delivery acknowledged, audited", async () => {
  await using bed = await DispatcherBed.withEvent();
  bed.sender.receiver = () => SERVER_ERROR;
  const dispatcher = bed.start();
  await bed.sent(2);
  bed.clock.advance(25 * HOUR);
  await bed.sent(3);
  await bed.settled();
  const { delivery } = await bed.only();
  assertEquals(delivery.state, "failed");
  const ask = () =>
    bed.store.write(resendDelivery, delivery.id, {
      now: bed.clock.now(),
      audit: bed.entry("delivery.resent"),
    });
  assertEquals(await ask(), "asked");
  dispatcher.wake();
  await bed.sent(4);
  await bed.settled();
  assertEquals((await bed.only()).delivery.state, "failed");
  bed.sender.receiver = () => ({ status: 204 });
  assertEquals(await ask(), "asked");
  dispatcher.wake();
  await bed.sent(5);
  await bed.settled();
  const after = await bed.only();
  assertEquals([after.delivery.state, after.attempts.map(({ manual }) => manual)], ["acknowledged", [
    ...[false, false, false],
    ...[true, true],
  ]]);
  const { items } = await bed.store.read(listAudit, { limit: 10, event: "delivery.acknowledged" });
  assertEquals(items.length, 1);
});

Deno.test("a secret that cannot be opened is a failed attempt and stalls no other", async () => {
  await using bed = await DispatcherBed.withEvent();
  const dispatcher = bed.start({
    secretBox: { unseal: () => Promise.reject(new Error("Cannot open: no such key")) },
  });
  await bed.sent(1);
  const { attempts } = await bed.only();
  assertEquals(attempts.map(({ errorKind, error }) => [errorKind, error]), [[
    "unsendable",
    "Cannot open: no such key",
  ]]);
  assertEquals([bed.sender.sent.length, dispatcher.metrics.attempts], [0, { unsendable: 1 }]);
});

Deno.test("a result is written again until the store takes it", async () => {
  await using bed = await DispatcherBed.withEvent();
  let failures = 3;
  const store = storeWith(bed.store, [
    instead(
      finishAttempt,
      (call) => failures-- > 0 ? Promise.reject(new Error("the disk is full")) : call(),
    ),
  ]);
  const dispatcher = bed.start({ store });
  await until("the request to be sent", () => bed.sender.sent.length === 1);
  for (let step = 0; step < 20 && bed.reports.length === 0; step++) {
    await bed.settled();
    bed.clock.advance(500);
  }
  await bed.sent(1);
  assertEquals([(await bed.only()).delivery.state, dispatcher.metrics.storeErrors], ["acknowledged", 3]);
  assertMatch(bed.log.lines.map(({ message }) => message).join(), /^Cannot use the store of deliveries/);
});

Deno.test("1,000 deliveries to 50 endpoints all end, none twice", () => deliverAll(20));

Deno.test("a wall clock that is set back holds up nothing that was never tried", async () => {
  await using bed = await DispatcherBed.open();
  await bed.endpoint();
  const clock = FakeClock.ofMachine({ of: bed.clock });
  bed.start({ clock });
  await bed.settled();
  // Another process takes it in just before the step.
  await bed.event();
  clock.aheadMs = -HOUR;
  bed.clock.advance(1_000);
  await bed.sent(1);
  await bed.settled();
  assertEquals((await bed.only()).delivery.state, "acknowledged");
  await bed.event();
  clock.aheadMs = -2 * HOUR;
  const next = bed.start({ clock });
  await bed.sent(2);
  assertEquals(next.running, 0);
});
