import { assertEquals } from "#assert";
import { FakeClock } from "../../../harness/fake_clock.ts";
import { until } from "../../../harness/until.ts";
import { storeWith } from "../../../harness/store_double.ts";
import { DispatcherBed, NOT_FOUND } from "../../../harness/dispatcher_fixture.ts";
import { listDeliveries } from "../../../../src/webhooks/store/operations/deliveries.ts";
import { StoreError, type WebhookStore } from "../../../../src/webhooks/store/store.ts";

type Claim = WebhookStore["claimDeliveries"];

/** A store that has its machines attempt so many deliveries of an endpoint at the same time, over all of them. */
function fleetStore(bed: DispatcherBed, concurrency: number) {
  const fleet = { claims: 0, store: bed.store };
  let before: Promise<unknown> = Promise.resolve();
  const claimDeliveries: Claim = (options) => {
    fleet.claims++;
    const claimed = before.then(() => claim(options));
    before = claimed;
    return claimed;
  };
  const claim: Claim = async (options) => {
    const { items } = await bed.store.read(listDeliveries, { limit: 500 });
    const claimed = items.filter(({ claimId }) => claimId !== undefined).length;
    const requests = options.requests.map((want) => ({
      ...want,
      max: Math.min(want.max, Math.max(0, concurrency - claimed)),
    }));
    return await bed.store.claimDeliveries({ ...options, requests: requests.filter(({ max }) => max > 0) });
  };
  fleet.store = storeWith(bed.store, [], { claimDeliveries });
  return fleet;
}

Deno.test("an endpoint that other machines keep busy is asked for once a second and not again and again", async () => {
  await using bed = await DispatcherBed.open();
  await bed.endpoint({ concurrency: 4 });
  for (let count = 0; count < 20; count++) await bed.event();
  bed.sender.receiver = () => new Promise(() => {});
  const fleet = fleetStore(bed, 4);
  const first = bed.start({ store: fleet.store });
  await until("the first to have what there is", () => bed.sender.running === 4);
  await bed.settled();
  fleet.claims = 0;
  const second = bed.start({ store: fleet.store });
  for (let passed = 0; passed < 10; passed++) {
    await bed.settled();
    bed.clock.advance(1_000);
  }
  await bed.settled();
  assertEquals([first.running, second.running, bed.sender.mostRunning], [4, 0, 4]);
  assertEquals(fleet.claims >= 5 && fleet.claims <= 24, true, `${fleet.claims} claims in ten seconds`);
});

Deno.test("several dispatchers share what is due; none is made twice, and places that are free are used", async () => {
  await using bed = await DispatcherBed.open();
  await bed.endpoint({ concurrency: 3 });
  for (let count = 0; count < 60; count++) await bed.event();
  const fleet = fleetStore(bed, 3);
  const gates: (() => void)[] = [];
  bed.sender.receiver = () => new Promise((resolve) => void gates.push(() => resolve({ status: 200 })));
  for (let count = 0; count < 2; count++) bed.start({ store: fleet.store });
  for (let sent = 3; sent < 60; sent++) {
    await until("all places to be used", () => bed.sender.running === 3);
    gates.shift()?.();
    await until("the next to be sent", () => {
      bed.clock.advance(100);
      return bed.sender.sent.length === sent + 1;
    });
  }
  for (const open of gates) open();
  await bed.sent(60);
  const ids = new Set(bed.sender.sent.map(({ headers }) => headers["x-svc-delivery"]));
  assertEquals([ids.size, bed.sender.sent.length, bed.sender.mostRunning], [60, 60, 3]);
});

/** The store of a bed, behind a line that may be down. */
function line(bed: DispatcherBed) {
  const state = { isDown: false, store: bed.store };
  state.store = new Proxy(bed.store, {
    get(target, name) {
      const operation = Reflect.get(target, name);
      if (typeof operation !== "function") return operation;
      return (...given: unknown[]) =>
        state.isDown
          ? Promise.reject(new StoreError("busy", "Cannot use the store: it is unavailable"))
          : Reflect.apply(operation, target, given);
    },
  });
  return state;
}

Deno.test("after the store was unavailable for longer than a lease no worker loses what another one has made of it", async () => {
  await using bed = await DispatcherBed.open();
  await bed.endpoint({ concurrency: 2 });
  await bed.event();
  await bed.event();
  const seconds = async (count: number) => {
    for (let passed = 0; passed < count; passed++) {
      bed.clock.advance(1_000);
      await bed.settled();
    }
  };
  const [ownerLine, otherLine] = [line(bed), line(bed)];
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  bed.sender.receiver = async () => {
    await gates[bed.sender.sent.length - 1]?.promise;
    return { status: 200 };
  };
  const owner = bed.start({ store: ownerLine.store, maxInFlight: 3 });
  await until("both to be sent", () => bed.sender.running === 2);
  // What no place is left for waits.
  await bed.event();
  ownerLine.isDown = otherLine.isDown = true;
  const other = bed.start({ store: otherLine.store });
  // One comes to its end while the store is unavailable, the other one is still under way when it is back.
  gates[0]?.resolve();
  await seconds(122);
  assertEquals([bed.sender.sent.length, bed.reports.length, owner.running, other.running], [2, 0, 2, 0]);
  otherLine.isDown = false;
  await seconds(4);
  ownerLine.isDown = false;
  await seconds(20);
  gates[1]?.resolve();
  await bed.sent(3);
  const lost = [owner, other].map(({ metrics }) => [metrics.lostClaims, metrics.expiredClaims]);
  assertEquals(lost, [[0, 0], [0, 0]]);
  const ids = bed.sender.sent.map(({ headers }) => headers["x-svc-delivery"]);
  assertEquals([ids.length, new Set(ids).size], [3, 3], "none was made again");
});

Deno.test("a receiver gets the time of the machine; all that is stored has the time of the store", async () => {
  await using bed = await DispatcherBed.withEvent({ standardWebhooks: true });
  const hour = 3_600_000;
  const wallClock = FakeClock.ofMachine({ of: bed.clock, aheadMs: hour });
  bed.sender.receiver = () => NOT_FOUND;
  bed.start({ wallClock });
  await bed.sent(1);
  await bed.settled();
  wallClock.aheadMs = -hour;
  await bed.advanceTo(2, 60_000);
  const { delivery, attempts } = await bed.only();
  const seconds = bed.sender.sent.map(({ headers }) => [
    Number(headers["x-svc-timestamp"]) * 1_000,
    Number(headers["webhook-timestamp"]) * 1_000,
  ]);
  const [first = 0, second = 0] = attempts.map(({ startedAt }) => startedAt);
  assertEquals(seconds, [[first + hour, first + hour], [second - hour, second - hour]]);
  assertEquals([delivery.firstFailureAt, attempts[1]?.finishedAt], [first, bed.clock.now()]);
});

Deno.test("when the clock of the store is set forward, who learns of it first takes nothing from the others", async () => {
  await using bed = await DispatcherBed.withEvent();
  const answer = bed.sender.hold();
  const [ownersClock, othersClock] = [
    FakeClock.ofMachine({ of: bed.clock }),
    FakeClock.ofMachine({ of: bed.clock }),
  ];
  const owner = bed.start({ clock: ownersClock });
  await until("it to be sent", () => bed.sender.running === 1);
  const other = bed.start({ clock: othersClock });
  for (let second = 0; second < 40; second++) {
    if (second === 8) othersClock.aheadMs = 600_000;
    if (second === 13) ownersClock.aheadMs = 600_000;
    bed.clock.advance(1_000);
    await bed.settled();
  }
  answer();
  await bed.sent(1);
  const lost = [owner, other].map(({ metrics }) => [metrics.lostClaims, metrics.expiredClaims]);
  assertEquals(lost, [[0, 0], [0, 0]]);
  assertEquals([bed.sender.sent.length, (await bed.only()).attempts.length], [1, 1]);
});

Deno.test("what was held up past its lease before it was sent is not sent, but given back", async () => {
  await using bed = await DispatcherBed.withEvent();
  const clock = FakeClock.ofMachine({ of: bed.clock });
  let claims = 0;
  const dispatcher = bed.start({
    clock,
    atAttempt: (when, step) => {
      // The process was stopped meanwhile, and its timers did not run.
      if (when === "before" && step === "send" && ++claims === 1) clock.aheadMs = 60_000;
    },
  });
  await bed.sent(1);
  const { delivery, attempts } = await bed.only();
  assertEquals([bed.sender.sent.length, delivery.state, dispatcher.metrics.lostClaims], [
    1,
    "acknowledged",
    1,
  ]);
  assertEquals(attempts.map(({ result }) => result), ["interrupted", "acknowledged"]);
});
