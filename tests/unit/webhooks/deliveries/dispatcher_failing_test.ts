import { assert, assertEquals } from "@std/assert";
import { DispatcherBed } from "../../../harness/dispatcher_fixture.ts";
import { eventually, until } from "../../../harness/until.ts";
import { listDeliveries } from "../../../../src/webhooks/store/deliveries.ts";

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

Deno.test("an endpoint that works again is attempted at once when an administrator asks", async () => {
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
