import { assertEquals } from "@std/assert";
import {
  addEndpoint,
  addEvent,
  audit,
  auditLog,
  claim,
  claimOne,
  deliveryOf,
  finish,
  NOW,
  type StoreCases,
} from "./webhook_store_bed.ts";
import { pauseDeliveries, resendDelivery, resumeDeliveries } from "../../src/webhooks/store/deliveries.ts";
import { dueEndpoints } from "../../src/webhooks/store/delivery_claims.ts";
import { findPause } from "../../src/webhooks/store/pause.ts";
import type { WebhookStore } from "../../src/webhooks/store/store.ts";

const PAUSE = { at: NOW, actor: "admin" };

async function due(store: WebhookStore): Promise<readonly string[]> {
  return (await store.read(dueEndpoints, NOW)).map(({ id }) => id);
}

/** The pause of all deliveries. */
export const PAUSE_CASES: StoreCases = {
  "while deliveries are paused, nothing is claimed through any store object": async ({ store, another }) => {
    const to = await addEndpoint(store);
    await addEvent(store);
    const other = await another();
    assertEquals(await store.write(pauseDeliveries, audit()), PAUSE);
    for (const one of [store, other]) {
      assertEquals([await one.read(findPause), await due(one), await claim(one, [to])], [PAUSE, [], []]);
      assertEquals((await one.metrics(NOW)).pause, PAUSE);
    }
    assertEquals((await store.metrics(NOW)).dueNow, 1);
    await other.write(resumeDeliveries, audit());
    assertEquals([await store.read(findPause), await due(store)], [undefined, [to.id]]);
    assertEquals((await store.metrics(NOW)).pause, undefined);
    assertEquals((await claim(store, [to])).length, 1);
    await other.close();
  },

  "an attempt in flight ends during a pause, and a resent delivery waits": async ({ store }) => {
    const to = await addEndpoint(store);
    await addEvent(store);
    const claimed = await claimOne(store, to);
    await store.write(pauseDeliveries, audit());
    assertEquals(await finish(store, claimed), true);
    const { id, eventId } = claimed.delivery;
    await store.write(resendDelivery, id, { now: NOW, audit: audit() });
    assertEquals(await claim(store, [to]), []);
    assertEquals((await deliveryOf(store, eventId)).resendAt, NOW);
    await store.write(resumeDeliveries, audit());
    assertEquals((await claim(store, [to])).map(({ delivery }) => delivery.id), [id]);
  },

  "only a pause and a resume that change something have an audit entry": async ({ store }) => {
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
    assertEquals(await auditLog(store), ["p1 test:1", "r1 test:1"]);
  },
};
