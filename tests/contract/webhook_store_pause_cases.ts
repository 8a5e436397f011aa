import { assertEquals } from "#assert";
import { audit, NOW, type StoreCases, type TestStore } from "./webhook_store_bed.ts";
import {
  pauseDeliveries,
  resendDelivery,
  resumeDeliveries,
} from "../../src/webhooks/store/operations/deliveries.ts";
import { dueEndpoints } from "../../src/webhooks/store/operations/delivery_claims.ts";
import { findPause } from "../../src/webhooks/store/pause.ts";

const PAUSE = { at: NOW, actor: "admin" };

async function due(store: TestStore): Promise<readonly string[]> {
  return (await store.read(dueEndpoints, NOW)).map(({ id }) => id);
}

/** The pause of all deliveries. */
export const PAUSE_CASES: StoreCases = {
  "while deliveries are paused, nothing is claimed through any store object": async (store) => {
    const to = await store.addEndpoint();
    await store.addEvent();
    const other = await store.another();
    assertEquals(await store.write(pauseDeliveries, audit()), PAUSE);
    for (const one of [store, other]) {
      assertEquals([await one.read(findPause), await due(one), await one.claim([to])], [PAUSE, [], []]);
      assertEquals((await one.metrics(NOW)).pause, PAUSE);
    }
    assertEquals((await store.metrics(NOW)).dueNow, 1);
    await other.write(resumeDeliveries, audit());
    assertEquals([await store.read(findPause), await due(store)], [undefined, [to.id]]);
    assertEquals((await store.metrics(NOW)).pause, undefined);
    assertEquals((await store.claim([to])).length, 1);
    await other.close();
  },

  "an attempt in flight ends during a pause, and a resent delivery waits": async (store) => {
    const to = await store.addEndpoint();
    await store.addEvent();
    const claimed = await store.claimOne(to);
    await store.write(pauseDeliveries, audit());
    assertEquals(await store.finish(claimed), true);
    const { id, eventId } = claimed.delivery;
    await store.write(resendDelivery, id, { now: NOW, audit: audit() });
    assertEquals(await store.claim([to]), []);
    assertEquals((await store.deliveryOf(eventId)).resendAt, NOW);
    await store.write(resumeDeliveries, audit());
    assertEquals((await store.claim([to])).map(({ delivery }) => delivery.id), [id]);
  },

  "only a pause and a resume that change something have an audit entry": async (store) => {
    const entries = [
      audit({ action: "p1" }),
      audit({ action: "p2", at: NOW + 1, actor: "other" }),
      audit({ action: "r1" }),
      audit({ action: "r2" }),
    ] as const;
    assertEquals(await store.write(pauseDeliveries, entries[0]), PAUSE);
    assertEquals(await store.write(pauseDeliveries, entries[1]), PAUSE);
    await store.write(resumeDeliveries, entries[2]);
    await store.write(resumeDeliveries, entries[3]);
    assertEquals(await store.auditLog(), ["p1 test:1", "r1 test:1"]);
  },
};
