import { assert, assertEquals } from "#assert";
import type { Endpoint } from "../../src/webhooks/model/records.ts";
import {
  ACKNOWLEDGED,
  assertNothingDue,
  audit,
  claim,
  DAY,
  EXHAUSTED,
  newId,
  NOW,
  retryAt,
  type StoreCases,
} from "./webhook_store_bed.ts";
import { listAudit } from "../../src/webhooks/store/operations/audit_log.ts";
import { releaseClaims, voidClaims } from "../../src/webhooks/store/operations/claims.ts";
import { findDelivery, resendDelivery } from "../../src/webhooks/store/operations/deliveries.ts";
import {
  dueEndpoints,
  finishAttempt,
  renewClaims,
} from "../../src/webhooks/store/operations/delivery_claims.ts";
import { editEndpoint } from "../../src/webhooks/store/operations/endpoints.ts";

/** Getting events to their endpoints. */
export const DELIVERY_CASES: StoreCases = {
  "a claim brings all that the request is made of, and no other claim gets it": async (store) => {
    const to = await store.addEndpoint();
    const added = await store.addEvent({ body: new Uint8Array([1, 0, 2]) });
    const before = await store.deliveryOf(added.id);
    assertEquals(await store.claim([to], { now: NOW - 1 }), []);
    const claimed = await store.claimOne(to);
    const { claimId } = claimed;
    const delivery = { ...before, claimId, leaseUntil: NOW + 60_000 };
    const attempt = { attempt: 1, startedAt: NOW, manual: false };
    assertEquals(claimed, { delivery, claimId, ...attempt, body: added.body, endpoint: to });
    assertEquals((await store.read(findDelivery, before.id))?.delivery, delivery);
    await store.assertNothingDue(to, NOW + DAY);
    await assertNothingDue(await store.another(), to, NOW + DAY);
  },

  "two that claim at the same time get each delivery once": async (store) => {
    const to = await store.addEndpoint();
    for (let index = 0; index < 50; index++) await store.addEvent();
    const other = await store.another();
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, index) => claim(index % 2 === 0 ? store : other, [to], { max: 4 })),
    );
    const ids = claims.flat().map(({ delivery }) => delivery.id);
    assertEquals([ids.length, new Set(ids).size], [50, 50]);
    assertEquals(claims.every((group) => group.length <= 4), true);
  },

  "those due longest come first, at most as many as requested, of endpoints that are named": async (
    store,
  ) => {
    const [one, two, three] = [
      await store.addEndpoint(),
      await store.addEndpoint(),
      await store.addEndpoint(),
    ];
    const events = [];
    for (const late of [30, 10, 20, 40]) events.push(await store.addEvent({}, NOW + late));
    const requests = [{ endpointId: two.id, max: 1 }, { endpointId: one.id, max: 3 }, {
      endpointId: newId(),
      max: 9,
    }];
    const claimed = await store.claimDeliveries({
      now: NOW + 50,
      leaseUntil: NOW + 60,
      newClaimId: newId,
      requests,
    });
    assertEquals(
      claimed.map(({ delivery }) => [delivery.endpointId, delivery.eventId]),
      [
        [one.id, events[1]?.id],
        [two.id, events[1]?.id],
        [one.id, events[2]?.id],
        [one.id, events[0]?.id],
      ],
    );
    assertEquals((await store.claim([three], { now: NOW + 25 })).length, 2);
  },

  "deliveries of an endpoint that is disabled wait": async (store) => {
    const to = await store.addEndpoint();
    await store.addEvent();
    assertEquals((await store.read(dueEndpoints, NOW)).map(({ id }) => id), [to.id]);
    await store.write(editEndpoint, to.id, { enabled: false }, { now: NOW, audit: audit() });
    assertEquals(await store.read(dueEndpoints, NOW), []);
    await store.assertNothingDue(to);
    await store.write(editEndpoint, to.id, { enabled: true }, { now: NOW, audit: audit() });
    await store.claimOne(to);
  },

  "endpoints with something due are in one order; those without are left out": async (store) => {
    const due = async (now: number) => await store.read(dueEndpoints, now);
    assertEquals(await due(NOW), []);
    const added: Endpoint[] = [];
    for (const kind of ["a.one", "a.two", "a.one", "a.none", "a.two"]) {
      added.push(await store.addEndpoint({ events: [kind], concurrency: added.length + 1 }));
    }
    const idsOf = (found: readonly { readonly id: string }[]) =>
      found.map(({ id }) => added.findIndex((one) => one.id === id));
    await store.addEvent({ kind: "a.one" }, NOW);
    await store.addEvent({ kind: "a.two" }, NOW + 10);
    assertEquals(idsOf(await due(NOW - 1)), []);
    assertEquals(idsOf(await due(NOW)), [0, 2]);
    const [{ id: _, ...first } = {}] = await due(NOW);
    assertEquals(first, { concurrency: 1, timeoutMs: 3_000 });
    assertEquals(idsOf(await due(NOW + 10)), [0, 1, 2, 4]);
    const [claimed, ...more] = await store.claim(added.slice(0, 1), { now: NOW + 10 });
    assertEquals([more.length, idsOf(await due(NOW + 10))], [0, [1, 2, 4]]);
    assert(claimed !== undefined);
    await store.finish(claimed, retryAt(NOW + 30_000));
    assertEquals([idsOf(await due(NOW + 29_999)), idsOf(await due(NOW + 30_000))], [[1, 2, 4], [0, 1, 2, 4]]);
    await store.write(resendDelivery, claimed.delivery.id, { now: NOW + 20, audit: audit() });
    assertEquals(idsOf(await due(NOW + 20)), [0, 1, 2, 4]);
  },

  "a claim writes the row of its attempt, which gets its end afterwards": async (store) => {
    const to = await store.addEndpoint();
    const added = await store.addEvent();
    const claimed = await store.claimOne(to, NOW + 1);
    assertEquals([claimed.attempt, claimed.startedAt], [1, NOW + 1]);
    const row = { number: 1, startedAt: NOW + 1, url: to.url, manual: false };
    const { id } = claimed.delivery;
    assertEquals((await store.read(findDelivery, id))?.attempts, [row]);

    const outcome = {
      result: "failed",
      finishedAt: NOW + 9,
      status: 503,
      errorKind: "status",
      headers: { "x-svc-timestamp": "1700000000", "x-svc-signature": "sha256=00" },
      response: "no",
    };
    const isHeld = await store.finish(claimed, retryAt(NOW + 30_000), { ...outcome, error: "e" } as never);
    assertEquals(isHeld, true);
    const attempts = [{ ...row, ...outcome, error: "e" }];
    const delivery = {
      ...await store.deliveryOf(added.id),
      state: "retrying",
      slot: 1,
      firstFailureAt: NOW,
      dueAt: NOW + 30_000,
    };
    assertEquals(await store.read(findDelivery, id), { delivery, attempts } as never);
    const { headers: _, response: __, ...listed } = outcome;
    const short = await store.read(findDelivery, id, { responses: false });
    assertEquals(short?.attempts, [{ ...row, ...listed, error: "e" }] as never);
    assertEquals(delivery.claimId, undefined);

    await store.assertNothingDue(to, NOW + 29_999);
    const next = await store.claimOne(to, NOW + 30_000);
    assertEquals([next.attempt, next.manual], [2, false]);
    await store.finish(next, ACKNOWLEDGED, {
      result: "acknowledged",
      finishedAt: NOW + 30_001,
      status: 204,
    });
    const after = await store.read(findDelivery, id);
    assertEquals(after?.attempts.map(({ number, result }) => [number, result]), [
      [1, "failed"],
      [2, "acknowledged"],
    ]);
    const { dueAt: ___, ...rest } = delivery;
    assertEquals(after?.delivery as unknown, {
      ...rest,
      state: "acknowledged",
      slot: 0,
      finishedAt: NOW + 5,
    });
    await store.assertNothingDue(to, NOW + DAY * 40);
  },

  "a failure for good is written with its entry of the audit log": async (store) => {
    const to = await store.addEndpoint();
    await store.addEvent();
    const claimed = await store.claimOne(to);
    const entry = audit({ action: "delivery.failed", object: "delivery:1", details: { a: [1, "ü"] } });
    await store.write(finishAttempt, {
      deliveryId: claimed.delivery.id,
      claimId: claimed.claimId,
      number: 1,
      outcome: { result: "failed", finishedAt: NOW, errorKind: "timeout" },
      change: EXHAUSTED,
      audit: [entry],
    });
    assertEquals((await store.read(listAudit, { limit: 1 })).items, [entry]);
    const { delivery } = await store.read(findDelivery, claimed.delivery.id) ?? {};
    assertEquals([delivery?.state, delivery?.reason, delivery?.dueAt], ["failed", "exhausted", undefined]);
  },

  "a worker that lost a claim changes nothing": async (store) => {
    const to = await store.addEndpoint();
    await store.addEvent();
    const stale = await store.claimOne(to);
    assertEquals(await store.write(voidClaims, { now: NOW, which: "all" }), 1);
    const taken = await store.claimOne(to);
    const before = await store.read(findDelivery, taken.delivery.id);
    assertEquals(await store.finish(stale, ACKNOWLEDGED), false);
    assertEquals(await store.write(renewClaims, [stale.claimId], NOW + DAY), []);
    await store.write(releaseClaims, [stale.claimId], NOW + 1);
    assertEquals(await store.read(findDelivery, taken.delivery.id), before);
    assertEquals(await store.auditLog(), []);
    assertEquals(await store.finish(taken, ACKNOWLEDGED), true);
    assertEquals(await store.finish(taken, ACKNOWLEDGED), false);
  },

  "a claim that was renewed outlives its first lease; one that was not is taken back": async (store) => {
    const [one, two] = [await store.addEndpoint(), await store.addEndpoint()];
    await store.addEvent();
    const [kept, lost] = [await store.claimOne(one), await store.claimOne(two)];
    const until = NOW + 120_000;
    assertEquals(await store.write(renewClaims, [kept.claimId, newId()], until), [kept.claimId]);
    assertEquals(await store.write(voidClaims, { now: NOW + 60_000, which: "expired" }), 0);
    assertEquals(await store.write(voidClaims, { now: NOW + 60_001, which: "expired" }), 1);
    assertEquals((await store.read(findDelivery, kept.delivery.id))?.delivery.leaseUntil, until);
    const freed = await store.read(findDelivery, lost.delivery.id);
    const { claimId: _, leaseUntil: __, ...unclaimed } = lost.delivery;
    assertEquals(freed?.delivery, unclaimed);
    const interrupted = {
      finishedAt: NOW + 60_001,
      result: "interrupted",
      errorKind: "interrupted",
    } as const;
    assertEquals(freed?.attempts, [{
      number: 1,
      startedAt: NOW,
      url: two.url,
      manual: false,
      ...interrupted,
    }]);
    assertEquals((await store.claimOne(two)).attempt, 2);
  },

  "claims that are given back are due immediately, with no slot used": async (store) => {
    const [one, two] = [await store.addEndpoint(), await store.addEndpoint()];
    await store.addEvent();
    const claimed = await store.claimOne(one);
    const other = await store.claimOne(two);
    await store.write(releaseClaims, [claimed.claimId], NOW + 3);
    const again = await store.claimOne(one, NOW + 3);
    const { state, slot, firstFailureAt } = again.delivery;
    assertEquals([again.attempt, state, slot, firstFailureAt], [2, "attempting", 0, undefined]);
    assertEquals((await store.read(findDelivery, claimed.delivery.id))?.attempts[0]?.result, "interrupted");
    assertEquals(await store.write(renewClaims, [other.claimId], NOW + DAY), [other.claimId]);
  },

  "an attempt by hand leaves the schedule as it is": async (store) => {
    const to = await store.addEndpoint();
    const added = await store.addEvent();
    const first = await store.claimOne(to);
    await store.finish(first, retryAt(NOW + 30_000));
    const before = await store.deliveryOf(added.id);
    assertEquals(await store.write(resendDelivery, before.id, { now: NOW + 10, audit: audit() }), "asked");
    assertEquals(await store.deliveryOf(added.id), { ...before, resendAt: NOW + 10 });
    const manual = await store.claimOne(to, NOW + 10);
    assertEquals([manual.manual, manual.attempt], [true, 2]);
    await store.finish(manual);
    assertEquals(await store.deliveryOf(added.id), before);
    assertEquals((await store.read(findDelivery, before.id))?.attempts[1]?.manual, true);
  },

  "an attempt by hand is made once, of an ended delivery too, and again if asked for meanwhile": async (
    store,
  ) => {
    const to = await store.addEndpoint();
    const added = await store.addEvent();
    const first = await store.claimOne(to);
    await store.finish(first, EXHAUSTED);
    const { id } = first.delivery;
    const ask = () => store.write(resendDelivery, id, { now: NOW + 10, audit: audit() });
    assertEquals([await ask(), await ask()], ["asked", "asked"]);
    const manual = await store.claimOne(to, NOW + 10);
    await ask();
    await store.finish(manual, ACKNOWLEDGED);
    const { state, reason } = await store.deliveryOf(added.id);
    assertEquals([state, reason], ["acknowledged", undefined]);
    const again = await store.claimOne(to, NOW + 20);
    assertEquals([again.manual, again.attempt], [true, 3]);
    await store.finish(again);
    await store.assertNothingDue(to, NOW + DAY);
    assertEquals((await store.deliveryOf(added.id)).state, "acknowledged");
  },

  "an attempt by hand that was interrupted is made again": async (store) => {
    const to = await store.addEndpoint();
    const added = await store.addEvent();
    const first = await store.claimOne(to);
    await store.finish(first, retryAt(NOW + 30_000));
    await store.write(resendDelivery, first.delivery.id, { now: NOW + 10, audit: audit() });
    await store.claimOne(to, NOW + 10);
    await store.write(voidClaims, { now: NOW + 20, which: "all" });
    const { dueAt, resendAt } = await store.deliveryOf(added.id);
    assertEquals([dueAt, resendAt], [NOW + 30_000, NOW + 10]);
    assertEquals((await store.claimOne(to, NOW + 20)).manual, true);
  },

  "an attempt that is due serves a wish for one by hand": async (store) => {
    const to = await store.addEndpoint();
    const added = await store.addEvent();
    const { id } = await store.deliveryOf(added.id);
    await store.write(resendDelivery, id, { now: NOW, audit: audit() });
    const claimed = await store.claimOne(to);
    assertEquals(claimed.manual, false);
    await store.finish(claimed, retryAt(NOW + 30_000));
    await store.assertNothingDue(to, NOW + 29_999);
  },
};
