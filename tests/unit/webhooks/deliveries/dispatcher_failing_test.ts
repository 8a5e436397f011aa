import { assert, assertEquals } from "#assert";
import { deliverThroughFaults } from "../../../harness/dispatcher_faults.ts";
import { DispatcherBed } from "../../../harness/dispatcher_fixture.ts";
import { instead, storeWith } from "../../../harness/store_double.ts";
import { eventually, until } from "../../../harness/until.ts";
import { listDeliveries } from "../../../../src/webhooks/store/operations/deliveries.ts";
import { dueEndpoints, finishAttempt } from "../../../../src/webhooks/store/operations/delivery_claims.ts";
import { StoreError } from "../../../../src/webhooks/store/store.ts";

const REFUSED = { errorKind: "connect", error: "connection refused" } as const;
const HOUR = 3_600_000;

/** An endpoint that refuses connections, with a backlog, and a dispatcher; time has begun to pass. */
async function failingBed(events: number) {
  const bed = await DispatcherBed.open();
  const id = await bed.endpoint();
  bed.sender.receiver = () => REFUSED;
  for (let n = 0; n < events; n++) await bed.event();
  const dispatcher = bed.start();
  const pass = async (seconds: number) => {
    for (let n = 0; n < seconds; n++) {
      bed.clock.advance(1_000);
      await bed.settled();
    }
  };
  await bed.sent(20);
  await bed.settled();
  return { bed, id, dispatcher, pass };
}

Deno.test("a failing endpoint gets one attempt at a time with pauses, and all when one succeeds", async () => {
  const { bed, pass } = await failingBed(500);
  await using _ = bed;
  const early = bed.sender.sent.length;
  assert(early >= 20 && early <= 24, `${early} attempts before the pauses`);
  await pass(100);
  const between = bed.sender.sent.length - early;
  assert(between >= 5 && between <= 9, `${between} attempts in 100 s of pauses`);
  bed.sender.mostRunning = 0;
  await pass(300);
  assertEquals(bed.sender.mostRunning, 1);
  const probes = bed.sender.sent.length - early - between;
  assert(probes >= 8 && probes <= 10, `${probes} attempts in 300 s, each 30 s after the last`);
  bed.sender.receiver = () => ({ status: 200 });
  await pass(40);
  await until("all of them to be acknowledged", async () => {
    return (await bed.store.metrics(bed.clock.now())).deliveries.acknowledged === 500;
  });
});

Deno.test("an endpoint that works again is attempted immediately when an administrator asks", async () => {
  const { bed, id, dispatcher, pass } = await failingBed(100);
  await using _ = bed;
  await pass(100);
  const before = bed.sender.sent.length;
  dispatcher.wake([id]);
  dispatcher.wake();
  await bed.settled();
  assertEquals(bed.sender.sent.length, before, "events wait for the pause");
  bed.sender.receiver = () => ({ status: 200 });
  dispatcher.retryNow(id);
  await bed.sent(before + 100);
  assertEquals(bed.reports.filter(({ result }) => result === "acknowledged").length, 100);
});

Deno.test("24 hours after its first failure each delivery is attempted once more and fails, without pauses", async () => {
  const { bed } = await failingBed(100);
  await using _ = bed;
  // Some of them get no attempt of their schedule in between.
  for (let n = 0; n < 120; n++) {
    bed.clock.advance(60_000);
    await bed.settled();
  }
  const { items } = await bed.store.read(listDeliveries, { limit: 200 });
  assertEquals(items.every(({ state }) => state === "retrying"), true, "each had its first attempt");
  const before = bed.sender.sent.length;
  bed.clock.advance(24 * HOUR);
  await bed.settled();
  // The look that finds them.
  bed.clock.advance(1_000);
  // One attempt for each.
  await eventually([100, 100], async () => {
    const { failed } = (await bed.store.metrics(bed.clock.now())).deliveries;
    return [failed, bed.sender.sent.length - before];
  });
});

for (const seed of [1, 2]) {
  Deno.test(`a store that fails at random loses no delivery and repeats none unrecorded (seed ${seed})`, () =>
    deliverThroughFaults(seed));
}

Deno.test("a claim that has to rest comes right after the rest, although another timer ends before", async () => {
  await using bed = await DispatcherBed.open();
  const id = await bed.endpoint();
  let claims = 0;
  const looks = instead(dueEndpoints, async (call) => {
    const due = await call();
    // Puts off the next look for 200 ms.
    if (claims === 0) bed.clock.advance(10);
    return due;
  });
  const store = storeWith(bed.store, [looks], {
    async claimDeliveries(options) {
      if (claims++ === 0) throw new StoreError("busy", "the store is locked");
      return await bed.store.claimDeliveries(options);
    },
  });
  const dispatcher = bed.start({ store });
  await bed.settled();
  await bed.event();
  dispatcher.wake();
  await bed.settled();
  // Its claim fails, and nothing is claimed for 250 ms.
  dispatcher.wake([id]);
  await bed.settled();
  bed.clock.advance(200);
  await bed.settled();
  assertEquals(bed.sender.sent.length, 0);
  bed.clock.advance(50);
  await bed.sent(1);
});

Deno.test("a stop releases the other claims soon, although a result is being written for long", async () => {
  await using bed = await DispatcherBed.open();
  const slow = await bed.endpoint();
  await bed.endpoint();
  await bed.event();
  const answered = Promise.withResolvers<void>();
  const written = Promise.withResolvers<void>();
  const finish = instead(finishAttempt, async (call) => {
    answered.resolve();
    await written.promise;
    return await call();
  });
  bed.sender.receiver = ({ url }) => url.endsWith(slow) ? { status: 200 } : new Promise(() => {});
  const dispatcher = bed.start({ store: storeWith(bed.store, [finish]) });
  await until("both attempts", () => bed.sender.sent.length === 2);
  await answered.promise;
  const stopped = dispatcher.stop(0);
  await bed.settled();
  bed.clock.advance(2_500);
  await bed.settled();
  const { items } = await bed.store.read(listDeliveries, { limit: 5 });
  const claimed = items.filter(({ claimId }) => claimId !== undefined).length;
  written.resolve();
  bed.clock.advance(3_000);
  await stopped;
  assertEquals(claimed, 0);
});
