import { assert, assertEquals } from "@std/assert";
import { MAX_ENDPOINT_SECRETS } from "../../src/webhooks/model/records.ts";
import type { WebhookStore } from "../../src/webhooks/store/store.ts";
import {
  ACKNOWLEDGED,
  addEndpoint,
  addEvent,
  allPages,
  assertNothingDue,
  audit,
  begin,
  claim,
  claimOne,
  DAY,
  endpoint,
  event,
  EXHAUSTED,
  finish,
  key,
  newId,
  NOW,
  retryAt,
  secret,
  type StoreCases,
  trail,
  trigger,
} from "./webhook_store_bed.ts";

/** Endpoints and triggers. */
export const RECORD_CASES: StoreCases = {
  "an endpoint is read as it was written": async ({ store }) => {
    const full = endpoint({ secrets: [secret(), secret(), secret()], events: ["a.b", "c.*"] });
    const { headers: _, timeoutMs: __, ...bare } = endpoint({ description: "", headerNames: [] });
    for (const added of [full, bare]) {
      const entry = audit({ action: "endpoint.created", object: `endpoint:${added.id}` });
      await store.createEndpoint(added, entry);
      assertEquals(await store.findEndpoint(added.id), added);
    }
    assertEquals(await store.findEndpoint(newId()), undefined);
    assertEquals(await store.listEndpoints({ limit: 10 }), { items: [bare, full] });
    assertEquals(await trail(store), [
      `endpoint.created endpoint:${full.id}`,
      `endpoint.created endpoint:${bare.id}`,
    ]);
  },

  "an edit of an endpoint changes what it names": async ({ store }) => {
    const added = await addEndpoint(store);
    const edited = async (edit: Parameters<typeof store.editEndpoint>[1], now: number) => {
      const answer = await store.editEndpoint(added.id, edit, { now, audit: audit({ action: "edited" }) });
      assertEquals(await store.findEndpoint(added.id), answer);
      return answer;
    };
    assertEquals(await edited({}, NOW + 1), { ...added, updatedAt: NOW + 1 });
    const plain = { url: "https://two.example/", events: ["a"], description: "d", enabled: false };
    const more = { concurrency: 9, standardWebhooks: false, timeoutMs: 1 };
    const headers = { names: ["a", "b"], sealed: { keyId: "k2", bytes: new Uint8Array([9]) } };
    const changed = { ...added, ...plain, ...more, headerNames: headers.names, headers: headers.sealed };
    assertEquals(await edited({ ...plain, ...more, headers }, NOW + 2), { ...changed, updatedAt: NOW + 2 });
    const { headers: _, timeoutMs: __, ...less } = changed;
    const without = { ...less, headerNames: [], updatedAt: NOW + 3 };
    assertEquals(await edited({ headers: null, timeoutMs: null }, NOW + 3), without);
    assertEquals(await store.editEndpoint(newId(), {}, { now: NOW, audit: audit() }), undefined);
    assertEquals((await trail(store)).length, 3);
  },

  "a new secret stands first; those that sign no longer go when they are 24 hours old": async ({ store }) => {
    const first = secret({ createdAt: NOW });
    const added = await addEndpoint(store, { secrets: [first] });
    const add = async (createdAt: number, activeAt: number) => {
      const next = secret({ createdAt, activeAt });
      const after = await store.addEndpointSecret(added.id, next, audit());
      assertEquals(after, await store.findEndpoint(added.id));
      return { next, after: after === "too_many" ? undefined : after?.secrets };
    };
    const second = await add(NOW + DAY * 2, NOW + DAY * 3);
    assertEquals(second.after, [second.next, first], "the first signs until the second is active");
    const third = await add(NOW + DAY * 3, NOW + DAY * 4);
    assertEquals(third.after, [third.next, second.next], "the second signs now");
    const fourth = await add(NOW + DAY * 3 + 5, NOW + DAY * 3 + 5);
    assertEquals(
      fourth.after,
      [fourth.next, third.next],
      "of those before it one is not 24 hours old",
    );
    assertEquals(await store.addEndpointSecret(newId(), secret(), audit()), undefined);
  },

  "of many secrets those that no longer sign go; one too many that sign later is refused": async (
    { store },
  ) => {
    const oldest = secret();
    const added = await addEndpoint(store, { secrets: [oldest] });
    const pending = Array.from({ length: 7 }, () => secret({ activeAt: NOW + DAY }));
    for (const one of pending) await store.addEndpointSecret(added.id, one, audit());
    const full = await store.findEndpoint(added.id);
    assertEquals(full?.secrets, [...pending.toReversed(), oldest]);
    assertEquals(
      await store.addEndpointSecret(added.id, secret({ activeAt: NOW + DAY }), audit()),
      "too_many",
    );
    assertEquals(await store.findEndpoint(added.id), full);
    const next = secret();
    await store.addEndpointSecret(added.id, next, audit());
    const kept = [next, ...pending.toReversed()];
    assertEquals((await store.findEndpoint(added.id))?.secrets, kept);
    assertEquals(kept.length, MAX_ENDPOINT_SECRETS);
  },

  "an endpoint that is removed fails what is open for it": async ({ store }) => {
    const [gone, other] = [await addEndpoint(store), await addEndpoint(store)];
    const [failed, retrying, claimedEvent, fresh] = [
      await addEvent(store, {}, NOW),
      await addEvent(store, {}, NOW + 1),
      await addEvent(store, {}, NOW + 2),
      await addEvent(store, {}, NOW + 3),
    ];
    const [first, second, third] = await claim(store, [gone], { now: NOW + 3, max: 3 });
    for (const claimed of [first, second, third]) claimed && await begin(store, claimed);
    if (first) await finish(store, first, EXHAUSTED);
    if (first) await store.resendDelivery(first.delivery.id, { now: NOW + 4, audit: audit() });
    if (second) await finish(store, second, retryAt(NOW + 30_000));
    const entry = audit({ action: "endpoint.deleted", object: `endpoint:${gone.id}` });
    const remove = () => store.deleteEndpoint(gone.id, { now: NOW + 9, audit: entry, newId });
    assertEquals([await remove(), await remove()], [true, false]);

    assertEquals(await store.findEndpoint(gone.id), undefined);
    const { items } = await store.listDeliveries({ limit: 9, endpointId: gone.id });
    const ended = { state: "failed", reason: "endpoint_deleted", finishedAt: NOW + 9 };
    assertEquals(
      items.map(({ eventId, state, reason, finishedAt }) => ({ eventId, state, reason, finishedAt })),
      [
        { eventId: fresh.id, ...ended },
        { eventId: claimedEvent.id, ...ended },
        { eventId: retrying.id, ...ended },
        { eventId: failed.id, state: "failed", reason: "exhausted", finishedAt: NOW + 5 },
      ] as never,
    );
    assertEquals(items.filter((item) => item.dueAt ?? item.resendAt ?? item.claimId), []);
    const [deleted, ...ends] = await trail(store);
    assertEquals(deleted, `endpoint.deleted endpoint:${gone.id}`);
    assertEquals(ends.sort(), items.slice(0, 3).map(({ id }) => `delivery.failed delivery:${id}`).sort());
    if (third) assertEquals(await finish(store, third, retryAt(NOW + 30_000)), false);
    const lastAttempt = await store.findDelivery(third?.delivery.id ?? "");
    assertEquals(lastAttempt?.attempts[0]?.result, "interrupted");
    assertEquals(
      await store.resendDelivery(items[0]?.id ?? "", { now: NOW + 9, audit: audit() }),
      undefined,
      "there is nowhere to send it",
    );
    assertEquals((await claim(store, [gone, other], { now: NOW + DAY })).length, 4);
  },

  "a trigger is read as it was written, by its id and by its name, which is taken": async ({ store }) => {
    const limit = { domain: "edge", descriptors: [{ b: "{{ input.b }}", a: "1" }] };
    const full = trigger({ limit, keys: [key(), key()], requireIdempotencyKey: true });
    const plain = trigger({ onBodyMismatch: "reject", onLimitError: "allow", enabled: false, keys: [] });
    for (const added of [full, plain]) {
      assertEquals(await store.createTrigger(added, audit({ action: "trigger.created" })), true);
      assertEquals(await store.findTrigger(added.id), added);
      assertEquals(await store.findTriggerByName(added.name), added);
    }
    assertEquals(Object.keys((await store.findTrigger(full.id))?.limit?.descriptors[0] ?? {}), ["b", "a"]);
    assertEquals(await store.createTrigger(trigger({ name: full.name }), audit({ action: "x" })), false);
    assertEquals(await allPages((options) => store.listTriggers(options)), [plain, full]);
    assertEquals([await store.findTrigger(newId()), await store.findTriggerByName("no")], [
      undefined,
      undefined,
    ]);
    assertEquals((await trail(store)).length, 2);
  },

  "an edit of a trigger changes what it names": async ({ store }) => {
    const limit = { domain: "edge", descriptors: [] };
    const added = trigger({ limit });
    await store.createTrigger(added, audit());
    const edit = (part: Parameters<typeof store.editTrigger>[1], now: number) =>
      store.editTrigger(added.id, part, { now, audit: audit() });
    assertEquals(await edit({}, NOW + 1), { ...added, updatedAt: NOW + 1 });
    const part = {
      workflow: "other",
      enabled: false,
      requireIdempotencyKey: true,
      onBodyMismatch: "reject",
      limit: { domain: "two", descriptors: [{ a: "b" }] },
      onLimitError: "allow",
    } as const;
    assertEquals(await edit(part, NOW + 2), { ...added, ...part, updatedAt: NOW + 2 });
    const { limit: _, ...less } = part;
    const { limit: __, ...rest } = added;
    assertEquals(await edit({ limit: null }, NOW + 3), { ...rest, ...less, updatedAt: NOW + 3 });
    assertEquals(await store.editTrigger(newId(), {}, { now: NOW, audit: audit() }), undefined);
  },

  "of three keys of a trigger the oldest goes": async ({ store }) => {
    const [one, two, three] = [key(), key(), key()];
    const added = trigger({ keys: [one] });
    await store.createTrigger(added, audit());
    assertEquals((await store.addTriggerKey(added.id, two, audit()))?.keys, [two, one]);
    assertEquals((await store.addTriggerKey(added.id, three, audit()))?.keys, [three, two]);
    assertEquals(await store.findTriggerKey(one.hash), undefined);
    assertEquals(await store.addTriggerKey(newId(), key(), audit()), undefined);
    assertEquals(await store.deleteTriggerKey(newId(), two.id, audit()), false);
    assertEquals(await store.deleteTriggerKey(added.id, one.id, audit()), false);
    assertEquals((await store.findTrigger(added.id))?.keys, [three, two]);
  },

  "a trigger that is removed takes its idempotency keys along, and frees its name": async ({ store }) => {
    const [gone, other] = [trigger(), trigger()];
    for (const added of [gone, other]) await store.createTrigger(added, audit());
    await store.saveWorkflowVersion({ id: "v1", workflow: "w", text: "t" });
    for (const { id } of [gone, other]) {
      await store.acceptExecution(
        { id: `of ${id}`, workflow: "w", versionId: "v1", triggerId: id, input: "{}" },
        { now: NOW, idempotency: { scope: `trigger:${id}`, key: "k", bodyHash: "h" } },
      );
    }
    assertEquals(await store.deleteTrigger(gone.id, audit()), true);
    assertEquals(await store.deleteTrigger(gone.id, audit()), false);
    assertEquals(await store.findIdempotency(`trigger:${gone.id}`, "k", NOW), undefined);
    assertEquals((await store.findIdempotency(`trigger:${other.id}`, "k", NOW))?.resultId, `of ${other.id}`);
    assertEquals((await store.findExecution(`of ${gone.id}`))?.execution.triggerId, gone.id);
    assertEquals(await store.createTrigger(trigger({ name: gone.name }), audit()), true);
  },

  "a payload that is erased is gone, and what is open fails": async ({ store }) => {
    const [one, two] = [await addEndpoint(store), await addEndpoint(store)];
    const added = await addEvent(store);
    const claimed = await claimOne(store, one);
    await begin(store, claimed);
    const entry = audit({ action: "payload.erased", object: `event:${added.id}` });
    const erase = (id: string) => store.erasePayload(id, { now: NOW + 9, audit: entry, newId });
    assertEquals([await erase(newId()), await erase(added.id), await erase(added.id)], [false, true, true]);
    assertEquals(await store.findEvent(added.id), { id: added.id, kind: added.kind, createdAt: NOW });
    const { items } = await store.listDeliveries({ limit: 9, event: added.kind });
    assertEquals(items.map(({ state, reason }) => [state, reason]), [
      ["failed", "payload_erased"],
      ["failed", "payload_erased"],
    ]);
    assertEquals(await trail(store), [
      `payload.erased event:${added.id}`,
      ...items.toReversed().map(({ id }) => `delivery.failed delivery:${id}`),
    ]);
    assertEquals(await finish(store, claimed, retryAt(NOW)), false);
    const { id } = claimed.delivery;
    assertEquals(await store.resendDelivery(id, { now: NOW, audit: audit() }), "erased");
    assertEquals(await store.resendDelivery(newId(), { now: NOW, audit: audit() }), undefined);
    await assertNothingDue(store, two, NOW + DAY);
  },

  "what receivers answered goes with an erased payload": async ({ store }) => {
    const endpoint = await addEndpoint(store);
    const added = await addEvent(store);
    const claimed = await claimOne(store, endpoint);
    await begin(store, claimed);
    const echo = {
      result: "acknowledged",
      finishedAt: NOW + 5,
      status: 200,
      response: "the payload",
    } as const;
    await finish(store, claimed, ACKNOWLEDGED, echo);
    const responses = async () =>
      (await store.findDelivery(claimed.delivery.id))?.attempts.map((
        { response, status },
      ) => [response, status]);
    assertEquals(await responses(), [["the payload", 200]]);
    await store.erasePayload(added.id, { now: NOW + 9, audit: audit(), newId });
    assertEquals(await responses(), [[undefined, 200]]);
  },

  "what a removal leaves of many is gone on with in portions, by anybody": async ({ store, another }) => {
    const [gone, other] = [await addEndpoint(store), await addEndpoint(store, { events: ["agent.*"] })];
    const events = await Promise.all(Array.from({ length: 600 }, () => addEvent(store, { kind: "b.one" })));
    const agent = await addEvent(store);
    const [taken] = await claim(store, [gone], { max: 1 });
    assert(taken !== undefined);
    await begin(store, taken);
    const clear = async (from: WebhookStore, max?: number) =>
      await from.clearRemoved({ now: NOW + 9, newId, max });
    assertEquals(await clear(store), false);
    assertEquals(await store.deleteEndpoint(gone.id, { now: NOW + 5, audit: audit(), newId }), true);
    const counts = async () => (await store.figures(NOW)).deliveries;
    // The attempt under way, and 500 more.
    assertEquals(await counts(), { attempting: 101, retrying: 0, acknowledged: 0, failed: 501 });
    assertEquals([await store.findEndpoint(gone.id), await store.dueEndpoints(NOW)], [undefined, [
      { id: other.id, concurrency: 1_000, timeoutMs: 3_000 },
    ]]);
    await assertNothingDue(store, gone);
    assertEquals(await finish(store, taken, retryAt(NOW + 30_000)), false);
    assertEquals((await store.acceptEvent(event({ kind: "b.one" }), { now: NOW })).kind, "new");
    await store.close();

    // Whoever left it is gone.
    const later = await another();
    assertEquals([await clear(later, 60), await clear(later, 60), await clear(later)], [true, false, false]);
    const { items } = await later.listDeliveries({ limit: 200, endpointId: gone.id, state: "failed" });
    assertEquals(
      new Set(items.map(({ reason, dueAt }) => [reason, dueAt].join())),
      new Set(["endpoint_deleted,"]),
    );
    const found = await later.findEvent(events[0]?.id ?? "");
    assertEquals([found?.id, (await later.figures(NOW)).deliveries.attempting], [events[0]?.id, 1]);
    assertEquals(
      (await later.listDeliveries({ limit: 9, endpointId: other.id })).items[0]?.eventId,
      agent.id,
    );
  },

  "a payload with many deliveries is erased at once, and they fail in portions": async ({ store }) => {
    const to = await Promise.all(Array.from({ length: 501 }, () => addEndpoint(store)));
    const [added, kept] = [await addEvent(store), await addEvent(store)];
    assertEquals(await store.erasePayload(added.id, { now: NOW + 5, audit: audit(), newId }), true);
    assertEquals(await store.findEvent(added.id), { id: added.id, kind: added.kind, createdAt: NOW });
    assertEquals((await store.figures(NOW)).deliveries.failed, 500);
    // One that a claim finds before it has its turn fails then.
    const claimed = await claim(store, to, { max: 9 });
    assertEquals(new Set(claimed.map(({ delivery }) => delivery.eventId)), new Set([kept.id]));
    assertEquals([claimed.length, (await store.figures(NOW)).deliveries.failed], [501, 501]);
    assertEquals(await store.clearRemoved({ now: NOW + 9, newId }), false);
    assertEquals((await store.figures(NOW)).deliveries, {
      ...{ attempting: 501, retrying: 0, acknowledged: 0, failed: 501 },
    });
    assertEquals((await trail(store)).length, 501);
  },

  "a trigger with many idempotency keys goes at once, and they in portions": async ({ store }) => {
    const gone = trigger();
    await store.createTrigger(gone, audit());
    await store.saveWorkflowVersion({ id: "v1", workflow: "w", text: "t" });
    const scope = `trigger:${gone.id}`;
    await Promise.all(Array.from({ length: 501 }, (_, index) =>
      store.acceptExecution(
        { id: newId(), workflow: "w", versionId: "v1", triggerId: gone.id, input: "{}" },
        { now: NOW, idempotency: { scope, key: `k${index}`, bodyHash: "h" } },
      )));
    const kept = async () => {
      const found = await Promise.all(
        Array.from({ length: 501 }, (_, index) => store.findIdempotency(scope, `k${index}`, NOW)),
      );
      return found.filter((row) => row !== undefined).length;
    };
    assertEquals([await store.deleteTrigger(gone.id, audit()), await kept()], [true, 1]);
    assertEquals(await store.clearRemoved({ now: NOW, newId }), false);
    assertEquals([await store.findTrigger(gone.id), await kept()], [undefined, 0]);
  },

  "failed deliveries are opened again: counted first, the oldest first, bounded": async ({ store }) => {
    const [to, other] = [await addEndpoint(store), await addEndpoint(store)];
    const events = [];
    for (const at of [0, 10, 20, 30]) events.push(await addEvent(store, {}, NOW + at));
    const erased = await addEvent(store, {}, NOW + 10);
    for (const claimed of await claim(store, [to, other], { now: NOW + 30 })) {
      await begin(store, claimed);
      await finish(store, claimed, EXHAUSTED);
    }
    await store.erasePayload(erased.id, { now: NOW + 40, audit: audit(), newId });
    const base = { endpointId: to.id, since: NOW, until: NOW + 30, max: 2, now: NOW + 50, dryRun: false };
    const recover = (part: Partial<typeof base>) =>
      store.recoverDeliveries({ ...base, ...part, audit: audit({ action: "recovered" }) });
    assertEquals(await recover({ dryRun: true }), 3);
    assertEquals(await recover({ endpointId: newId() }), undefined);
    assertEquals(await trail(store), []);
    await assertNothingDue(store, to, NOW + 50);

    assertEquals(await recover({}), 2);
    const due = await claim(store, [to, other], { now: NOW + 50 });
    assertEquals(due.map(({ delivery }) => delivery.eventId), [events[0]?.id, events[1]?.id]);
    const { id, eventId, createdAt } = due[0]?.delivery ?? { id: "", eventId: "", createdAt: 0 };
    await store.releaseClaims(due.map(({ claimId }) => claimId), NOW + 50);
    assertEquals((await store.findDelivery(id))?.delivery, {
      ...{ id, endpointId: to.id, eventId, event: "agent.reply.completed", createdAt },
      ...{ state: "attempting", slot: 0, dueAt: NOW + 50 },
    });
    assertEquals([due[0]?.manual, due[0]?.attempt], [false, 2]);
    assertEquals(await recover({ dryRun: true }), 1);
    assertEquals((await trail(store)).length, 1);
    const { items } = await store.listDeliveries({ limit: 99, endpointId: other.id });
    assertEquals(items.filter(({ state }) => state !== "failed"), []);
  },
};
