import { assert, assertEquals } from "#assert";
import {
  ACKNOWLEDGED,
  audit,
  DAY,
  execution,
  newId,
  NOW,
  retryAt,
  type StoreCases,
} from "./webhook_store_bed.ts";
import { listAudit } from "../../src/webhooks/store/operations/audit_log.ts";
import { clockSetBack, releaseClaims } from "../../src/webhooks/store/operations/claims.ts";
import {
  findDelivery,
  listDeliveries,
  resendDelivery,
} from "../../src/webhooks/store/operations/deliveries.ts";
import {
  failPaused,
  finishAttempt,
  renewClaims,
} from "../../src/webhooks/store/operations/delivery_claims.ts";
import { acceptExecution } from "../../src/webhooks/store/operations/accept.ts";
import { editEndpoint } from "../../src/webhooks/store/operations/endpoints.ts";
import { findExecution } from "../../src/webhooks/store/operations/executions.ts";

/** The content of a claim, and its end. */
export const CLAIM_CASES: StoreCases = {
  "what a receiver has answered is written, whatever it holds": async (store) => {
    const to = await store.addEndpoint();
    await store.addEvent();
    const claimed = await store.claimOne(to);
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
      await store.write(finishAttempt, { deliveryId, claimId, number: 1, outcome, change, audit: [entry] }),
      true,
    );
    const [attempt] = (await store.read(findDelivery, deliveryId))?.attempts ?? [];
    assertEquals(attempt?.response?.startsWith("a"), true);
    assertEquals((await store.read(listAudit, { limit: 1 })).items, [entry]);
  },

  "each of many that are claimed together has its own body, endpoint and claim": async (store) => {
    const to = [await store.addEndpoint(), await store.addEndpoint(), await store.addEndpoint()];
    const events = [];
    for (const byte of [1, 2, 3, 4]) events.push(await store.addEvent({ body: new Uint8Array([byte, 0]) }));
    const claims = await store.claim(to);
    const expected = events.flatMap(({ id, body }) => to.map((endpoint) => ({ id, body, endpoint })));
    const seen = claims.map(({ delivery: { eventId: id }, body, endpoint }) => ({ id, body, endpoint }));
    const order = ({ id, endpoint }: { id: string; endpoint: { id: string } }) => `${id} ${endpoint.id}`;
    const sorted = (list: typeof seen) => list.toSorted((a, b) => order(a) < order(b) ? -1 : 1);
    assertEquals(sorted(seen), sorted(expected));
    assertEquals(new Set(claims.map(({ claimId }) => claimId)).size, 12);
    const ids = claims.map(({ claimId }) => claimId);
    assertEquals(await store.write(renewClaims, ids.toReversed(), NOW + 90_000), ids.toReversed());
    await store.write(releaseClaims, ids, NOW + 1);
    assertEquals((await store.metrics(NOW)).dueNow, 12);
  },

  "what is asked for by hand stands among the others by its time": async (store) => {
    const to = await store.addEndpoint();
    await store.addEvent();
    const first = await store.claimOne(to);
    await store.finish(first, ACKNOWLEDGED);
    const [early, late] = [await store.addEvent({}, NOW + 10), await store.addEvent({}, NOW + 30)];
    await store.write(resendDelivery, first.delivery.id, { now: NOW + 20, audit: audit() });
    const claims = [];
    for (let round = 0; round < 4; round++) {
      claims.push(...await store.claim([to], { now: NOW + 30, max: 1 }));
    }
    assertEquals(claims.map(({ delivery, manual }) => [delivery.eventId, manual]), [
      [early.id, false],
      [first.delivery.eventId, true],
      [late.id, false],
    ]);
  },

  "deliveries of disabled endpoints fail when their first failure is 24 hours back": async (store) => {
    const [paused, served] = [await store.addEndpoint(), await store.addEndpoint()];
    await store.addEvent();
    for (const claimed of await store.claim([paused, served])) {
      await store.finish(claimed, retryAt(NOW + 30_000));
    }
    await store.addEvent();
    const [taken] = await store.claim([paused]);
    await store.write(editEndpoint, paused.id, { enabled: false }, { now: NOW, audit: audit() });
    const fail = (now: number) => store.write(failPaused, { now, newId });
    assertEquals([await fail(NOW + DAY - 1), await fail(NOW + DAY), await fail(NOW + DAY * 9)], [0, 1, 0]);
    const { items } = await store.read(listDeliveries, { limit: 10, endpointId: paused.id });
    assertEquals(
      items.map(({ state, reason, finishedAt, dueAt }) => ({ state, reason, finishedAt, dueAt })),
      [
        { state: "attempting", reason: undefined, finishedAt: undefined, dueAt: NOW },
        { state: "failed", reason: "endpoint_disabled", finishedAt: NOW + DAY, dueAt: undefined },
      ],
    );
    assertEquals(await store.auditLog(), [`delivery.failed delivery:${items[1]?.id}`]);
    assert(taken !== undefined);
    assertEquals((await store.write(renewClaims, [taken.claimId], NOW)).length, 1);
  },

  "a clock that was set back holds nothing up, and shortens no pause": async (store) => {
    const to = await store.addEndpoint();
    await store.saveVersion();
    const later = NOW + DAY;
    await store.addEvent({}, NOW);
    const [failed, taken] = [await store.addEvent({}, later), await store.addEvent({}, later)];
    const [before, first, second] = await store.claim([to], { now: later });
    assert(before !== undefined && first !== undefined && second !== undefined);
    await store.finish(before, retryAt(NOW + 90_000));
    await store.finish(first, retryAt(later + 130_000, later + 100_000));
    const [fresh, queued] = [await store.addEvent({}, later), execution()];
    await store.write(acceptExecution, queued, { now: later });
    assertEquals([
      await store.write(clockSetBack, later + 100_000),
      await store.write(clockSetBack, NOW + 60_000),
    ], [0, 3]);
    assertEquals(await store.write(clockSetBack, NOW + 60_000), 0);
    const due = async ({ id }: { readonly id: string }) => (await store.deliveryOf(id)).dueAt;
    assertEquals(
      [
        (await store.read(findDelivery, before.delivery.id))?.delivery.dueAt,
        await due(failed),
        await due(fresh),
        await due(taken),
      ],
      [NOW + 90_000, NOW + 90_000, NOW + 60_000, later],
    );
    assertEquals((await store.deliveryOf(failed.id)).firstFailureAt, NOW + 60_000);
    assertEquals((await store.read(findExecution, queued.id))?.execution.dueAt, NOW + 60_000);
  },

  "of many deliveries of a disabled endpoint no more than 500 fail in one call": async (store) => {
    const to = await store.addEndpoint();
    await Promise.all(Array.from({ length: 501 }, () => store.addEvent()));
    for (const claimed of await store.claim([to], { max: 501 })) {
      await store.finish(claimed, retryAt(NOW + 30_000));
    }
    await store.write(editEndpoint, to.id, { enabled: false }, { now: NOW, audit: audit() });
    const fail = () => store.write(failPaused, { now: NOW + DAY, newId });
    assertEquals([await fail(), await fail(), await fail()], [500, 1, 0]);
    assertEquals((await store.metrics(NOW)).deliveries, {
      attempting: 0,
      retrying: 0,
      acknowledged: 0,
      failed: 501,
    });
  },
};
