import { assert, assertEquals } from "#assert";
import {
  ACKNOWLEDGED,
  audit,
  DAY,
  event,
  newId,
  NOW,
  retryAt,
  type StoreCases,
  trigger,
} from "./webhook_store_bed.ts";
import {
  acceptEvent,
  acceptExecution,
  findIdempotency,
  saveWorkflowVersion,
} from "../../src/webhooks/store/operations/accept.ts";
import {
  findDelivery,
  listDeliveries,
  resendDelivery,
} from "../../src/webhooks/store/operations/deliveries.ts";
import { listAudit } from "../../src/webhooks/store/operations/audit_log.ts";
import { dueEndpoints } from "../../src/webhooks/store/operations/delivery_claims.ts";
import { deleteEndpoint, findEndpoint } from "../../src/webhooks/store/operations/endpoints.ts";
import { erasePayload, findEvent } from "../../src/webhooks/store/operations/events.ts";
import { findExecution } from "../../src/webhooks/store/operations/executions.ts";
import type { WebhookStore } from "../../src/webhooks/store/store.ts";
import { createTrigger, deleteTrigger, findTrigger } from "../../src/webhooks/store/operations/triggers.ts";

/** The rows that are removed together with a record. */
export const REMOVAL_CASES: StoreCases = {
  "a trigger that is removed takes its idempotency keys along, and frees its name": async (store) => {
    const [gone, other] = [trigger(), trigger()];
    for (const added of [gone, other]) await store.write(createTrigger, added, audit());
    await store.write(saveWorkflowVersion, { id: "v1", workflow: "w", text: "t" });
    for (const { id } of [gone, other]) {
      await store.write(acceptExecution, {
        id: `of ${id}`,
        workflow: "w",
        versionId: "v1",
        triggerId: id,
        input: "{}",
      }, { now: NOW, idempotency: { scope: `trigger:${id}`, key: "k", bodyHash: "h" } });
    }
    assertEquals(await store.write(deleteTrigger, gone.id, audit()), true);
    assertEquals(await store.write(deleteTrigger, gone.id, audit()), false);
    assertEquals(await store.read(findIdempotency, `trigger:${gone.id}`, "k", NOW), undefined);
    assertEquals(
      (await store.read(findIdempotency, `trigger:${other.id}`, "k", NOW))?.resultId,
      `of ${other.id}`,
    );
    assertEquals((await store.read(findExecution, `of ${gone.id}`))?.execution.triggerId, gone.id);
    assertEquals(await store.write(createTrigger, trigger({ name: gone.name }), audit()), true);
  },

  "a payload that is erased is gone, and what is open fails": async (store) => {
    const [one, two] = [await store.addEndpoint(), await store.addEndpoint()];
    const added = await store.addEvent();
    const claimed = await store.claimOne(one);
    const entry = audit({ action: "payload.erased", object: `event:${added.id}` });
    const erase = (id: string) => store.write(erasePayload, id, { now: NOW + 9, audit: entry, newId });
    assertEquals([await erase(newId()), await erase(added.id), await erase(added.id)], [false, true, true]);
    assertEquals(await store.read(findEvent, added.id), { id: added.id, kind: added.kind, createdAt: NOW });
    const { items } = await store.read(listDeliveries, { limit: 9, event: added.kind });
    assertEquals(items.map(({ state, reason }) => [state, reason]), [
      ["failed", "payload_erased"],
      ["failed", "payload_erased"],
    ]);
    assertEquals(await store.auditLog(), [
      `payload.erased event:${added.id}`,
      ...items.toReversed().map(({ id }) => `delivery.failed delivery:${id}`),
    ]);
    assertEquals(await store.finish(claimed, retryAt(NOW)), false);
    const { id } = claimed.delivery;
    assertEquals(await store.write(resendDelivery, id, { now: NOW, audit: audit() }), "erased");
    assertEquals(await store.write(resendDelivery, newId(), { now: NOW, audit: audit() }), undefined);
    await store.assertNothingDue(two, NOW + DAY);
  },

  "what receivers answered goes with an erased payload": async (store) => {
    const endpoint = await store.addEndpoint();
    const added = await store.addEvent();
    const claimed = await store.claimOne(endpoint);
    const echo = {
      result: "acknowledged",
      finishedAt: NOW + 5,
      status: 200,
      response: "the payload",
    } as const;
    await store.finish(claimed, ACKNOWLEDGED, echo);
    const responses = async () =>
      (await store.read(findDelivery, claimed.delivery.id))?.attempts.map((
        { response, status },
      ) => [response, status]);
    assertEquals(await responses(), [["the payload", 200]]);
    await store.write(erasePayload, added.id, { now: NOW + 9, audit: audit(), newId });
    assertEquals(await responses(), [[undefined, 200]]);
  },

  "what a removal leaves of many is gone on with in portions, by anybody": async (store) => {
    const [gone, other] = [await store.addEndpoint(), await store.addEndpoint({ events: ["agent.*"] })];
    const events = await Promise.all(Array.from({ length: 600 }, () => store.addEvent({ kind: "b.one" })));
    const agent = await store.addEvent();
    const [taken] = await store.claim([gone], { max: 1 });
    assert(taken !== undefined);
    const clear = async (from: WebhookStore, max?: number) =>
      await from.clearRemoved({ now: NOW + 9, newId, max });
    assertEquals(await clear(store), false);
    assertEquals(await store.write(deleteEndpoint, gone.id, { now: NOW + 5, audit: audit(), newId }), true);
    const counts = async () => (await store.metrics(NOW)).deliveries;
    // The attempt under way, and 500 more.
    assertEquals(await counts(), { attempting: 101, retrying: 0, acknowledged: 0, failed: 501 });
    assertEquals([await store.read(findEndpoint, gone.id), await store.read(dueEndpoints, NOW)], [undefined, [
      { id: other.id, concurrency: 1_000, timeoutMs: 3_000 },
    ]]);
    await store.assertNothingDue(gone);
    assertEquals(await store.finish(taken, retryAt(NOW + 30_000)), false);
    assertEquals((await store.write(acceptEvent, event({ kind: "b.one" }), { now: NOW })).kind, "new");
    await store.close();

    // The process that left it is gone.
    const later = await store.another();
    const entries = async () =>
      (await later.read(listAudit, { limit: 9, event: "delivery.failed" })).items.map((
        { object, details },
      ) => ({
        object,
        details,
      }));
    assertEquals([await clear(later, 60), await entries()], [true, []]);
    assertEquals([await clear(later, 60), await clear(later)], [false, false]);
    assertEquals(await entries(), [
      { object: `endpoint:${gone.id}`, details: { reason: "endpoint_deleted", count: 601 } },
    ]);
    const { items } = await later.read(listDeliveries, { limit: 200, endpointId: gone.id, state: "failed" });
    assertEquals(
      new Set(items.map(({ reason, dueAt }) => [reason, dueAt].join())),
      new Set(["endpoint_deleted,"]),
    );
    const found = await later.read(findEvent, events[0]?.id ?? "");
    assertEquals([found?.id, (await later.metrics(NOW)).deliveries.attempting], [events[0]?.id, 1]);
    assertEquals(
      (await later.read(listDeliveries, { limit: 9, endpointId: other.id })).items[0]?.eventId,
      agent.id,
    );
  },

  "a payload with many deliveries is erased in one call, and they fail in portions": async (store) => {
    const to = await Promise.all(Array.from({ length: 501 }, () => store.addEndpoint()));
    const [added, kept] = [await store.addEvent(), await store.addEvent()];
    assertEquals(await store.write(erasePayload, added.id, { now: NOW + 5, audit: audit(), newId }), true);
    assertEquals(await store.read(findEvent, added.id), { id: added.id, kind: added.kind, createdAt: NOW });
    assertEquals((await store.metrics(NOW)).deliveries.failed, 500);
    // One that a claim finds before it has its turn fails then.
    const claimed = await store.claim(to, { max: 9 });
    assertEquals(new Set(claimed.map(({ delivery }) => delivery.eventId)), new Set([kept.id]));
    assertEquals([claimed.length, (await store.metrics(NOW)).deliveries.failed], [501, 501]);
    assertEquals(await store.clearRemoved({ now: NOW + 9, newId }), false);
    assertEquals((await store.metrics(NOW)).deliveries, {
      attempting: 501,
      retrying: 0,
      acknowledged: 0,
      failed: 501,
    });
    assertEquals((await store.auditLog()).length, 501);
  },

  "a trigger with many idempotency keys goes in one call, and they in portions": async (store) => {
    const gone = trigger();
    await store.write(createTrigger, gone, audit());
    await store.write(saveWorkflowVersion, { id: "v1", workflow: "w", text: "t" });
    const scope = `trigger:${gone.id}`;
    await Promise.all(
      Array.from({ length: 501 }, (_, index) =>
        store.write(acceptExecution, {
          id: newId(),
          workflow: "w",
          versionId: "v1",
          triggerId: gone.id,
          input: "{}",
        }, { now: NOW, idempotency: { scope, key: `k${index}`, bodyHash: "h" } })),
    );
    const kept = async () => {
      const found = await Promise.all(
        Array.from({ length: 501 }, (_, index) => store.read(findIdempotency, scope, `k${index}`, NOW)),
      );
      return found.filter((row) => row !== undefined).length;
    };
    assertEquals([await store.write(deleteTrigger, gone.id, audit()), await kept()], [true, 1]);
    assertEquals(await store.clearRemoved({ now: NOW, newId }), false);
    assertEquals([await store.read(findTrigger, gone.id), await kept()], [undefined, 0]);
  },
};
