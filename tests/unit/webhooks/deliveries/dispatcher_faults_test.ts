import { assertEquals } from "#assert";
import { until } from "../../../harness/until.ts";
import { instead, storeWith } from "../../../harness/store_double.ts";
import { DispatcherBed } from "../../../harness/dispatcher_fixture.ts";
import { releaseClaims, voidClaims } from "../../../../src/webhooks/store/operations/claims.ts";
import { findDelivery } from "../../../../src/webhooks/store/operations/deliveries.ts";
import {
  dueEndpoints,
  failPaused,
  finishAttempt,
  renewClaims,
} from "../../../../src/webhooks/store/operations/delivery_claims.ts";
import { StoreError } from "../../../../src/webhooks/store/store.ts";

Deno.test("one look finds what is due, also of more endpoints than there are places", async () => {
  await using bed = await DispatcherBed.open();
  await Promise.all(
    Array.from({ length: 40 }, (_, index) => bed.endpoint({ events: [`kind.number_${index}`] })),
  );
  const dispatcher = bed.start({ maxInFlight: 3 });
  await bed.settled();
  for (const [sent, index] of [39, 0, 20, 7].entries()) {
    await bed.event(`kind.number_${index}`);
    dispatcher.wake();
    await bed.sent(sent + 1);
  }
  assertEquals(bed.reports.map(({ event }) => event), [39, 0, 20, 7].map((index) => `kind.number_${index}`));
});

Deno.test("with all places taken each endpoint has its turn", async () => {
  await using bed = await DispatcherBed.open();
  const ids = await Promise.all(Array.from({ length: 6 }, () => bed.endpoint()));
  for (let count = 0; count < 5; count++) await bed.event();
  bed.start({ maxInFlight: 1 });
  await bed.sent(30);
  for (let round = 0; round < 5; round++) {
    const served = bed.reports.slice(round * 6, round * 6 + 6).map(({ endpointId }) => endpointId);
    assertEquals(new Set(served), new Set(ids), `round ${round}`);
  }
});

Deno.test("an endpoint that another process made is served with the next look", async () => {
  await using bed = await DispatcherBed.open();
  await bed.endpoint();
  bed.start();
  await bed.settled();
  await bed.endpoint();
  await bed.event();
  bed.clock.advance(1_000);
  await bed.sent(2);
  assertEquals(bed.reports.length, 2);
});

Deno.test("what cannot be written down is not claimed again and again", async () => {
  await using bed = await DispatcherBed.withEvent();
  let isFull = true;
  let asked = 0;
  const store = storeWith(bed.store, [], {
    claimDeliveries(options) {
      asked++;
      if (isFull) return Promise.reject(new StoreError("full", "Cannot use the store: the disk is full"));
      return bed.store.claimDeliveries(options);
    },
  });
  bed.start({ store });
  for (let second = 0; second < 10; second++) {
    await bed.settled();
    await bed.settled();
    bed.clock.advance(1_000);
  }
  assertEquals(asked <= 11, true, `asked ${asked} times in ten seconds`);
  isFull = false;
  bed.clock.advance(1_000);
  await bed.sent(1);
  const { delivery, attempts } = await bed.only();
  assertEquals([delivery.state, attempts.map(({ result }) => result)], ["acknowledged", ["acknowledged"]]);
  assertEquals(bed.log.lines.length <= 11, true);
});

Deno.test("a step that throws before the claim ends nothing", async () => {
  await using bed = await DispatcherBed.withEvent();
  let isFirst = true;
  const dispatcher = bed.start({
    atAttempt(when, step) {
      if (when !== "before" || step !== "claim" || !isFirst) return;
      isFirst = false;
      throw new Error("a fault");
    },
  });
  await until("the fault", () => !isFirst);
  await bed.settled();
  bed.clock.advance(1_000);
  await bed.sent(1);
  assertEquals(dispatcher.metrics.storeErrors, 1);
});

Deno.test("claims that ended are taken back only after the other claims of the process were renewed", async () => {
  await using bed = await DispatcherBed.open();
  const calls: string[] = [];
  let isKept = false;
  const store = storeWith(bed.store, [instead(voidClaims, (call) => {
    calls.push("taken back");
    return call();
  })]);
  bed.start({
    store,
    keepOtherClaims: () => {
      calls.push("renewed");
      return Promise.resolve(isKept);
    },
  });
  await bed.settled();
  assertEquals(calls, ["renewed"]);
  isKept = true;
  bed.clock.advance(5_000);
  await bed.settled();
  assertEquals(calls, ["renewed", "renewed", "taken back"]);
});

Deno.test("an attempt that is given up before its request leaves sends nothing", async () => {
  await using bed = await DispatcherBed.withEvent();
  const atSend = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const dispatcher = bed.start({
    async atAttempt(when, step) {
      if (when !== "before" || step !== "send") return;
      atSend.resolve();
      await gate.promise;
    },
  });
  await atSend.promise;
  const stopped = dispatcher.stop(0);
  await bed.settled();
  gate.resolve();
  await stopped;
  const { delivery, attempts } = await bed.only();
  assertEquals([bed.sender.sent.length, delivery.state, delivery.claimId], [0, "attempting", undefined]);
  assertEquals(attempts.map(({ result }) => result), ["interrupted"]);
});

Deno.test("a process that sleeps between prolonging its claims and taking others back keeps its own", async () => {
  await using bed = await DispatcherBed.withEvent();
  const answer = bed.sender.hold();
  let isAsleep = false;
  const store = storeWith(bed.store, [instead(renewClaims, async (call) => {
    const held = await call();
    if (!isAsleep) bed.clock.advance(3_600_000);
    isAsleep = true;
    return held;
  })]);
  const dispatcher = bed.start({ store });
  await until("the request to be sent", () => bed.sender.running === 1);
  bed.clock.advance(5_000);
  await bed.settled();
  answer();
  await bed.sent(1);
  assertEquals([isAsleep, dispatcher.metrics.expiredClaims, bed.sender.sent.length], [true, 0, 1]);
});

Deno.test("a sender that throws is a failed attempt, with the pauses of the schedule", async () => {
  await using bed = await DispatcherBed.withEvent();
  bed.sender.receiver = () => {
    throw new Error("a fault that names https://user:password@receiver.example");
  };
  bed.start();
  await bed.sent(1);
  await bed.settled();
  const { delivery, attempts } = await bed.only();
  assertEquals([delivery.state, bed.sender.sent.length], ["retrying", 1]);
  assertEquals(attempts.map(({ errorKind, error }) => [errorKind, error]), [
    ["unsendable", "an internal error; see the log"],
  ]);
});

Deno.test("a result that cannot be written holds up no other delivery", async () => {
  await using bed = await DispatcherBed.open();
  const [stuck, other] = [await bed.endpoint(), await bed.endpoint()];
  await bed.event();
  const store = storeWith(bed.store, [instead(finishAttempt, async (call, options) => {
    const found = await bed.store.read(findDelivery, options.deliveryId);
    if (found?.delivery.endpointId === stuck) throw new StoreError("failed", "Cannot use the store: no");
    return await call();
  })]);
  const dispatcher = bed.start({ store });
  await bed.sent(1);
  await until("the failed write", () => dispatcher.metrics.storeErrors > 0);
  await bed.event();
  dispatcher.wake();
  await bed.sent(2);
  assertEquals(bed.reports.map(({ endpointId }) => endpointId), [other, other]);
});

Deno.test("the claims of one look are bounded, whatever is due and free", async () => {
  await using bed = await DispatcherBed.open();
  for (let count = 0; count < 5; count++) await bed.endpoint({ concurrency: 100 });
  await Promise.all(Array.from({ length: 100 }, () => bed.event()));
  let most = 0;
  const store = storeWith(bed.store, [], {
    async claimDeliveries(options) {
      const claimed = await bed.store.claimDeliveries(options);
      most = Math.max(most, claimed.length);
      return claimed;
    },
  });
  bed.start({ store });
  await bed.sent(500);
  assertEquals(most, 200);
});

Deno.test("what a store fails in portions is gone through without a pause", async () => {
  await using bed = await DispatcherBed.open();
  const portions = [500, 500, 3, 0];
  const store = storeWith(bed.store, [
    instead(failPaused, () => Promise.resolve(portions.shift() ?? -1)),
  ]);
  bed.start({ store });
  await until("all portions", () => portions.length === 0);
  await bed.settled();
  assertEquals(portions, []);
});

Deno.test("an attempt that does not end when it is asked to does not keep the dispatcher from ending", async () => {
  await using bed = await DispatcherBed.withEvent();
  const gate = Promise.withResolvers<void>();
  const sender = {
    isAsked: false,
    async send() {
      sender.isAsked = true;
      await gate.promise;
      return { status: 200 };
    },
  };
  const dispatcher = bed.start({ sender });
  await until("the request to be sent", () => sender.isAsked);
  let isStopped = false;
  const stopped = dispatcher.stop(0).then(() => void (isStopped = true));
  await until("the end", () => {
    bed.clock.advance(1_000);
    return isStopped;
  });
  gate.resolve();
  await stopped;
  await bed.settled();
  const { delivery, attempts } = await bed.only();
  assertEquals([delivery.state, delivery.claimId, attempts.map(({ result }) => result)], [
    "attempting",
    undefined,
    ["interrupted"],
  ]);
});

Deno.test("a look claims only for endpoints with something due, an event only for those that it goes to", async () => {
  await using bed = await DispatcherBed.open();
  const ids = await Promise.all(
    Array.from({ length: 30 }, (_, index) => bed.endpoint({ events: [`kind.number_${index}`] })),
  );
  const wanted: string[][] = [];
  let looks = 0;
  const look = instead(dueEndpoints, (call) => {
    looks++;
    return call();
  });
  const store = storeWith(bed.store, [look], {
    claimDeliveries(options) {
      wanted.push(options.requests.map(({ endpointId, max }) => `${endpointId} ${max}`));
      return bed.store.claimDeliveries(options);
    },
  });
  const dispatcher = bed.start({ store });
  await bed.settled();
  for (let second = 0; second < 3; second++) {
    bed.clock.advance(1_000);
    await bed.settled();
  }
  assertEquals([looks, wanted], [4, []], "nothing is due");
  await bed.event("kind.number_7");
  dispatcher.wake([ids[7] ?? ""]);
  await bed.sent(1);
  await bed.settled();
  // Of one that is not known yet a first delivery, then as many as it takes.
  assertEquals([looks, wanted[0]], [4, [`${ids[7]} 1`]]);
  assertEquals(new Set(wanted.flat().map((want) => want.split(" ")[0])), new Set([ids[7]]));
  await bed.event("kind.number_8");
  wanted.length = 0;
  bed.clock.advance(1_000);
  await bed.sent(2);
  assertEquals([looks, wanted[0]], [5, [`${ids[8]} 4`]]);
});

Deno.test("a look that is asked for too soon after a slow one comes a little later", async () => {
  await using bed = await DispatcherBed.open();
  await bed.endpoint();
  let looks = 0;
  const store = storeWith(bed.store, [instead(dueEndpoints, async (call) => {
    const due = await call();
    if (looks++ === 0) bed.clock.advance(10);
    return due;
  })]);
  const dispatcher = bed.start({ store });
  await bed.settled();
  await bed.event();
  dispatcher.wake();
  dispatcher.wake();
  await bed.settled();
  assertEquals([looks, bed.sender.sent.length], [1, 0]);
  bed.clock.advance(200);
  await bed.sent(1);
  assertEquals(looks, 2);
});

Deno.test("the lease of an endpoint that was not known is renewed to its own time", async () => {
  await using bed = await DispatcherBed.open();
  const dispatcher = bed.start();
  await bed.settled();
  const id = await bed.endpoint({ timeoutMs: 60_000 });
  const answer = bed.sender.hold();
  await bed.event();
  dispatcher.wake([id]);
  await until("the request", () => bed.sender.running === 1);
  await until("its lease", async () => (await bed.only()).delivery.leaseUntil === bed.clock.now() + 75_000);
  answer();
  await bed.sent(1);
});

Deno.test("an event whose claim was carried out and not answered is delivered as soon as the store is back", async () => {
  await using bed = await DispatcherBed.withEvent();
  let isAway = true;
  const released = instead(releaseClaims, (call) => {
    return isAway ? Promise.reject(new StoreError("busy", "the store is locked")) : call();
  });
  const store = storeWith(bed.store, [released], {
    async claimDeliveries(options) {
      const claimed = await bed.store.claimDeliveries(options);
      if (isAway) throw new StoreError("busy", "the answer to the commit is lost");
      return claimed;
    },
  });
  bed.start({ store });
  for (let second = 0; second < 10; second++) {
    await bed.settled();
    bed.clock.advance(1_000);
  }
  await bed.settled();
  assertEquals(bed.sender.sent.length, 0);
  isAway = false;
  bed.clock.advance(250);
  await bed.sent(1);
  const { delivery, attempts } = await bed.only();
  const results = attempts.map(({ result }) => result);
  assertEquals([delivery.state, results], ["acknowledged", ["interrupted", "acknowledged"]]);
});
