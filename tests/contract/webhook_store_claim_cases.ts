import { assertEquals } from "@std/assert";
import {
  ACKNOWLEDGED,
  addEndpoint,
  addEvent,
  audit,
  begin,
  claim,
  claimOne,
  finish,
  NOW,
  retryAt,
  type StoreCases,
} from "./webhook_store_bed.ts";

/** What a claim brings, and what becomes of it. */
export const CLAIM_CASES: StoreCases = {
  "what a receiver has answered is written, whatever it holds": async ({ store }) => {
    const to = await addEndpoint(store);
    await addEvent(store);
    const claimed = await claimOne(store, to);
    await begin(store, claimed);
    const outcome = {
      result: "failed",
      finishedAt: NOW,
      status: 500,
      error: "\0e",
      response: "a\0b\ud800ü",
    } as const;
    const entry = audit({ details: { text: "a\0\n" } });
    const { delivery: { id: deliveryId }, claimId } = claimed;
    const change = retryAt(NOW);
    assertEquals(
      await store.finishAttempt({ deliveryId, claimId, number: 1, outcome, change, audit: [entry] }),
      true,
    );
    const [attempt] = (await store.findDelivery(deliveryId))?.attempts ?? [];
    assertEquals(attempt?.response?.startsWith("a"), true);
    assertEquals((await store.listAudit({ limit: 1 })).items, [entry]);
  },

  "each of many that are claimed at once has its own body, endpoint and claim": async ({ store }) => {
    const to = [await addEndpoint(store), await addEndpoint(store), await addEndpoint(store)];
    const events = [];
    for (const byte of [1, 2, 3, 4]) events.push(await addEvent(store, { body: new Uint8Array([byte, 0]) }));
    const claims = await claim(store, to);
    const expected = events.flatMap(({ id, body }) => to.map((endpoint) => ({ id, body, endpoint })));
    const seen = claims.map(({ delivery: { eventId: id }, body, endpoint }) => ({ id, body, endpoint }));
    const order = ({ id, endpoint }: { id: string; endpoint: { id: string } }) => `${id} ${endpoint.id}`;
    const sorted = (list: typeof seen) => list.toSorted((a, b) => order(a) < order(b) ? -1 : 1);
    assertEquals(sorted(seen), sorted(expected));
    assertEquals(new Set(claims.map(({ claimId }) => claimId)).size, 12);
    const ids = claims.map(({ claimId }) => claimId);
    assertEquals(await store.renewClaims(ids.toReversed(), NOW + 90_000), ids.toReversed());
    await store.releaseClaims(ids, NOW + 1);
    assertEquals((await store.figures(NOW)).dueNow, 12);
  },

  "what is asked for by hand stands among the others by its time": async ({ store }) => {
    const to = await addEndpoint(store);
    await addEvent(store);
    const first = await claimOne(store, to);
    await begin(store, first);
    await finish(store, first, ACKNOWLEDGED);
    const [early, late] = [await addEvent(store, {}, NOW + 10), await addEvent(store, {}, NOW + 30)];
    await store.resendDelivery(first.delivery.id, { now: NOW + 20, audit: audit() });
    const claims = [];
    for (let round = 0; round < 4; round++) {
      claims.push(...await claim(store, [to], { now: NOW + 30, max: 1 }));
    }
    assertEquals(claims.map(({ delivery, manual }) => [delivery.eventId, manual]), [
      [early.id, false],
      [first.delivery.eventId, true],
      [late.id, false],
    ]);
  },
};
