import { assertEquals } from "@std/assert";
import { deliverThroughFaults } from "../../../harness/dispatcher_faults.ts";
import { DispatcherBed } from "../../../harness/dispatcher_fixture.ts";
import { dueEndpoints } from "../../../../src/webhooks/store/delivery_claims.ts";
import { instead, storeWith } from "../../../harness/store_double.ts";
import { StoreError } from "../../../../src/webhooks/store/store.ts";

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
