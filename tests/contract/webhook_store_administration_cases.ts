import { assertEquals } from "#assert";
import type { EndpointEdit, TriggerEdit } from "../../src/webhooks/model/records.ts";
import { MAX_ENDPOINT_SECRETS } from "../../src/webhooks/resources/endpoint.ts";
import {
  allPages,
  audit,
  DAY,
  endpoint,
  EXHAUSTED,
  key,
  newId,
  NOW,
  retryAt,
  secret,
  type StoreCases,
  trigger,
} from "./webhook_store_bed.ts";
import { releaseClaims } from "../../src/webhooks/store/operations/claims.ts";
import {
  findDelivery,
  listDeliveries,
  recoverDeliveries,
  resendDelivery,
} from "../../src/webhooks/store/operations/deliveries.ts";
import {
  addEndpointSecret,
  createEndpoint,
  deleteEndpoint,
  editEndpoint,
  findEndpoint,
  listEndpoints,
} from "../../src/webhooks/store/operations/endpoints.ts";
import { erasePayload } from "../../src/webhooks/store/operations/events.ts";
import {
  addTriggerKey,
  createTrigger,
  deleteTriggerKey,
  editTrigger,
  findTrigger,
  findTriggerByIdOrName,
  findTriggerKey,
  listTriggers,
  triggersOfWorkflows,
} from "../../src/webhooks/store/operations/triggers.ts";

/** Endpoints and triggers. */
export const RECORD_CASES: StoreCases = {
  "an endpoint is read as it was written": async (store) => {
    const full = endpoint({ secrets: [secret(), secret(), secret()], events: ["a.b", "c.*"] });
    const { headers: _, timeoutMs: __, rotationOverlapMs: ___, onGone: ____, ...bare } = endpoint({
      description: "",
      headerNames: [],
    });
    for (const added of [full, bare]) {
      const entry = audit({ action: "endpoint.created", object: `endpoint:${added.id}` });
      await store.write(createEndpoint, added, entry);
      assertEquals(await store.read(findEndpoint, added.id), added);
    }
    assertEquals(await store.read(findEndpoint, newId()), undefined);
    assertEquals(await store.read(listEndpoints, { limit: 10 }), { items: [bare, full] });
    assertEquals(await store.auditLog(), [
      `endpoint.created endpoint:${full.id}`,
      `endpoint.created endpoint:${bare.id}`,
    ]);
  },

  "an edit of an endpoint changes what it names": async (store) => {
    const added = await store.addEndpoint();
    const edited = async (edit: EndpointEdit, now: number) => {
      const answer = await store.write(editEndpoint, added.id, edit, {
        now,
        audit: audit({ action: "edited" }),
      });
      assertEquals(await store.read(findEndpoint, added.id), answer);
      return answer;
    };
    assertEquals(await edited({}, NOW + 1), { ...added, updatedAt: NOW + 1 });
    const plain = { url: "https://two.example/", events: ["a"], description: "d", enabled: false };
    const more = { concurrency: 9, standardWebhooks: false, timeoutMs: 1, rotationOverlapMs: 1 };
    const headers = { names: ["a", "b"], sealed: { keyId: "k2", bytes: new Uint8Array([9]) } };
    const disabled = { disabledAt: NOW + 2, disabledReason: "admin" } as const;
    const changed = {
      ...added,
      ...plain,
      ...more,
      ...disabled,
      headerNames: headers.names,
      headers: headers.sealed,
    };
    assertEquals(await edited({ ...plain, ...more, headers }, NOW + 2), { ...changed, updatedAt: NOW + 2 });
    const { headers: _, timeoutMs: __, rotationOverlapMs: ___, onGone: ____, ...less } = changed;
    const without = { ...less, headerNames: [], updatedAt: NOW + 3 };
    const cleared = { headers: null, timeoutMs: null, rotationOverlapMs: null, onGone: null };
    assertEquals(await edited(cleared, NOW + 3), without);
    assertEquals(await store.write(editEndpoint, newId(), {}, { now: NOW, audit: audit() }), undefined);
    assertEquals((await store.auditLog()).length, 3);
  },

  "a new secret stands first; those that sign no longer go when they are 24 hours old": async (store) => {
    const first = secret({ createdAt: NOW });
    const added = await store.addEndpoint({ secrets: [first], rotationOverlapMs: undefined });
    const add = async (createdAt: number, activeAt: number) => {
      const next = secret({ createdAt, activeAt });
      const after = await store.write(addEndpointSecret, added.id, next, audit());
      assertEquals(after, await store.read(findEndpoint, added.id));
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
    assertEquals(await store.write(addEndpointSecret, newId(), secret(), audit()), undefined);
  },

  "with an overlap the secret that signed before stays as long as it signs second": async (store) => {
    const first = secret({ createdAt: NOW });
    const added = await store.addEndpoint({ secrets: [first], rotationOverlapMs: 3 * DAY });
    const add = async (createdAt: number, activeAt: number) => {
      const next = secret({ createdAt, activeAt });
      await store.write(addEndpointSecret, added.id, next, audit());
      return next;
    };
    const kept = async () => (await store.read(findEndpoint, added.id))?.secrets;
    const second = await add(NOW + DAY * 2, NOW + DAY * 2);
    assertEquals(await kept(), [second, first], "it is older than 24 hours");
    const third = await add(NOW + DAY * 4, NOW + DAY * 9);
    assertEquals(await kept(), [third, second, first], "the first signs until the fifth day");
    const fourth = await add(NOW + DAY * 5, NOW + DAY * 9);
    assertEquals(await kept(), [fourth, third, second]);
    const fifth = await add(NOW + DAY * 10, NOW + DAY * 10);
    assertEquals(await kept(), [fifth, fourth], "the third never signed alone");
  },

  "of many secrets those that no longer sign go; one too many that sign later is refused": async (store) => {
    const oldest = secret();
    const added = await store.addEndpoint({ secrets: [oldest] });
    const pending = Array.from({ length: 7 }, () => secret({ activeAt: NOW + DAY }));
    for (const one of pending) await store.write(addEndpointSecret, added.id, one, audit());
    const full = await store.read(findEndpoint, added.id);
    assertEquals(full?.secrets, [...pending.toReversed(), oldest]);
    assertEquals(
      await store.write(addEndpointSecret, added.id, secret({ activeAt: NOW + DAY }), audit()),
      "too_many",
    );
    assertEquals(await store.read(findEndpoint, added.id), full);
    const next = secret();
    await store.write(addEndpointSecret, added.id, next, audit());
    const kept = [next, ...pending.toReversed()];
    assertEquals((await store.read(findEndpoint, added.id))?.secrets, kept);
    assertEquals(kept.length, MAX_ENDPOINT_SECRETS);
  },

  "an endpoint that is removed fails what is open for it": async (store) => {
    const [gone, other] = [await store.addEndpoint(), await store.addEndpoint()];
    const [failed, retrying, claimedEvent, fresh] = [
      await store.addEvent({}, NOW),
      await store.addEvent({}, NOW + 1),
      await store.addEvent({}, NOW + 2),
      await store.addEvent({}, NOW + 3),
    ];
    const [first, second, third] = await store.claim([gone], { now: NOW + 3, max: 3 });
    if (first) await store.finish(first, EXHAUSTED);
    if (first) await store.write(resendDelivery, first.delivery.id, { now: NOW + 4, audit: audit() });
    if (second) await store.finish(second, retryAt(NOW + 30_000));
    const entry = audit({ action: "endpoint.deleted", object: `endpoint:${gone.id}` });
    const remove = () => store.write(deleteEndpoint, gone.id, { now: NOW + 9, audit: entry, newId });
    assertEquals([await remove(), await remove()], [true, false]);

    assertEquals(await store.read(findEndpoint, gone.id), undefined);
    const { items } = await store.read(listDeliveries, { limit: 9, endpointId: gone.id });
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
    const [deleted, ...ends] = await store.auditLog();
    assertEquals(deleted, `endpoint.deleted endpoint:${gone.id}`);
    assertEquals(ends, [`delivery.failed endpoint:${gone.id}`]);
    if (third) assertEquals(await store.finish(third, retryAt(NOW + 30_000)), false);
    const lastAttempt = await store.read(findDelivery, third?.delivery.id ?? "");
    assertEquals(lastAttempt?.attempts[0]?.result, "interrupted");
    assertEquals(
      await store.write(resendDelivery, items[0]?.id ?? "", { now: NOW + 9, audit: audit() }),
      undefined,
      "there is nowhere to send it",
    );
    assertEquals((await store.claim([gone, other], { now: NOW + DAY })).length, 4);
  },

  "a trigger is read as it was written, and its name is taken": async (store) => {
    const limit = '{"domain":"edge","descriptors":[{"b":"{{ input.b }}","1":"1"}]}';
    const full = trigger({ limit, keys: [key(), key()], requireIdempotencyKey: true });
    const plain = trigger({ onBodyMismatch: "reject", onLimitError: "allow", enabled: false, keys: [] });
    for (const added of [full, plain]) {
      assertEquals(await store.write(createTrigger, added, audit({ action: "trigger.created" })), true);
      assertEquals(await store.read(findTrigger, added.id), added);
    }
    assertEquals(
      await store.write(createTrigger, trigger({ name: full.name }), audit({ action: "x" })),
      false,
    );
    assertEquals(await allPages((options) => store.read(listTriggers, options)), [plain, full]);
    assertEquals(await store.read(findTrigger, newId()), undefined);
    assertEquals((await store.auditLog()).length, 2);
  },

  "the triggers of workflows are counted, the first of each by name": async (store) => {
    const places = { c: "one", a: "one", b: "one", d: "two", e: "three" };
    const added = Object.entries(places).map(([name, workflow]) =>
      trigger({ name, workflow, enabled: name !== "a" })
    );
    for (const one of added) await store.write(createTrigger, one, audit({ action: "trigger.created" }));
    const shown = (name: string) => {
      const { id = "", enabled = false } = added.find((one) => one.name === name) ?? {};
      return { id, name, enabled };
    };
    assertEquals(
      await store.read(triggersOfWorkflows, ["one", "two", "none"], 2),
      new Map([
        ["one", { count: 3, first: [shown("a"), shown("b")] }],
        ["two", { count: 1, first: [shown("d")] }],
      ]),
    );
    assertEquals(await store.read(triggersOfWorkflows, [], 2), new Map());
  },

  "a trigger is found by its id before one with that name": async (store) => {
    const first = trigger();
    const second = trigger({ name: first.id });
    for (const added of [first, second]) {
      await store.write(createTrigger, added, audit({ action: "trigger.created" }));
    }
    for (
      const [idOrName, expected] of [[first.id, first], [first.name, first], [second.id, second]] as const
    ) {
      assertEquals(await store.read(findTriggerByIdOrName, idOrName), expected);
    }
    assertEquals(await store.read(findTriggerByIdOrName, newId()), undefined);
  },

  "an edit of a trigger changes what it names": async (store) => {
    const limit = '{"domain":"edge","descriptors":[]}';
    const added = trigger({ limit });
    await store.write(createTrigger, added, audit());
    const edit = (part: TriggerEdit, now: number) =>
      store.write(editTrigger, added.id, part, { now, audit: audit() });
    assertEquals(await edit({}, NOW + 1), { ...added, updatedAt: NOW + 1 });
    const part = {
      workflow: "other",
      enabled: false,
      requireIdempotencyKey: true,
      onBodyMismatch: "reject",
      limit: '{"domain":"two","descriptors":[{"a":"b"}]}',
      onLimitError: "allow",
    } as const;
    assertEquals(await edit(part, NOW + 2), { ...added, ...part, updatedAt: NOW + 2 });
    const { limit: _, ...less } = part;
    const { limit: __, ...rest } = added;
    assertEquals(await edit({ limit: null }, NOW + 3), { ...rest, ...less, updatedAt: NOW + 3 });
    assertEquals(await store.write(editTrigger, newId(), {}, { now: NOW, audit: audit() }), undefined);
  },

  "of three keys of a trigger the oldest goes": async (store) => {
    const [one, two, three] = [key(), key(), key()];
    const added = trigger({ keys: [one] });
    await store.write(createTrigger, added, audit());
    assertEquals((await store.write(addTriggerKey, added.id, two, audit()))?.keys, [two, one]);
    assertEquals((await store.write(addTriggerKey, added.id, three, audit()))?.keys, [three, two]);
    assertEquals(await store.read(findTriggerKey, one.hash), undefined);
    assertEquals(await store.write(addTriggerKey, newId(), key(), audit()), undefined);
    assertEquals(await store.write(deleteTriggerKey, newId(), two.id, audit()), false);
    assertEquals(await store.write(deleteTriggerKey, added.id, one.id, audit()), false);
    assertEquals((await store.read(findTrigger, added.id))?.keys, [three, two]);
  },

  "failed deliveries are opened again: counted first, the oldest first, bounded": async (store) => {
    const [to, other] = [await store.addEndpoint(), await store.addEndpoint()];
    const events = [];
    for (const at of [0, 10, 20, 30]) events.push(await store.addEvent({}, NOW + at));
    const erased = await store.addEvent({}, NOW + 10);
    for (const claimed of await store.claim([to, other], { now: NOW + 30 })) {
      await store.finish(claimed, EXHAUSTED);
    }
    await store.write(erasePayload, erased.id, { now: NOW + 40, audit: audit(), newId });
    const base = { endpointId: to.id, since: NOW, until: NOW + 30, max: 2, now: NOW + 50, dryRun: false };
    const recover = (part: Partial<typeof base>) =>
      store.write(recoverDeliveries, { ...base, ...part, audit: audit({ action: "recovered" }) });
    assertEquals(await recover({ dryRun: true }), 3);
    assertEquals(await recover({ endpointId: newId() }), undefined);
    assertEquals(await store.auditLog(), []);
    await store.assertNothingDue(to, NOW + 50);

    assertEquals(await recover({}), 2);
    const due = await store.claim([to, other], { now: NOW + 50 });
    assertEquals(due.map(({ delivery }) => delivery.eventId), [events[0]?.id, events[1]?.id]);
    const { id, eventId, createdAt } = due[0]?.delivery ?? { id: "", eventId: "", createdAt: 0 };
    await store.write(releaseClaims, due.map(({ claimId }) => claimId), NOW + 50);
    assertEquals((await store.read(findDelivery, id))?.delivery, {
      id,
      endpointId: to.id,
      eventId,
      event: "agent.reply.completed",
      createdAt,
      state: "attempting",
      slot: 0,
      dueAt: NOW + 50,
    });
    assertEquals([due[0]?.manual, due[0]?.attempt], [false, 2]);
    assertEquals(await recover({ dryRun: true }), 1);
    assertEquals((await store.auditLog()).length, 1);
    const { items } = await store.read(listDeliveries, { limit: 99, endpointId: other.id });
    assertEquals(items.filter(({ state }) => state !== "failed"), []);
  },
};
