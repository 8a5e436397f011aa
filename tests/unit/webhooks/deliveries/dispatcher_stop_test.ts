import { assertEquals } from "@std/assert";
import { listDeliveries } from "../../../../src/webhooks/store/deliveries.ts";
import { finishAttempt } from "../../../../src/webhooks/store/delivery_claims.ts";
import { DispatcherBed } from "../../../harness/dispatcher_fixture.ts";
import { instead, storeWith } from "../../../harness/store_double.ts";
import { until } from "../../../harness/until.ts";

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
