import { assert, assertEquals, assertRejects } from "#assert";
import type { Delivery, Execution } from "../../src/webhooks/model/records.ts";
import {
  ACKNOWLEDGED,
  allPages,
  audit,
  DAY,
  event,
  execution,
  EXHAUSTED,
  newId,
  NOW,
  retryAt,
  type StoreCases,
  type TestStore,
} from "./webhook_store_bed.ts";
import { acceptEvent, acceptExecution, findIdempotency } from "../../src/webhooks/store/operations/accept.ts";
import { addAudit, listAudit } from "../../src/webhooks/store/operations/audit_log.ts";
import { voidClaims } from "../../src/webhooks/store/operations/claims.ts";
import {
  findDelivery,
  listDeliveries,
  resendDelivery,
} from "../../src/webhooks/store/operations/deliveries.ts";
import { listEndpoints } from "../../src/webhooks/store/operations/endpoints.ts";
import { findEvent, listEventKeys, listEvents } from "../../src/webhooks/store/operations/events.ts";
import { commitExecution, listExecutions } from "../../src/webhooks/store/operations/executions.ts";
import { removeFinished } from "../../src/webhooks/store/operations/retention.ts";
import type { ListOptions, Page } from "../../src/webhooks/store/store.ts";
import { listTriggers } from "../../src/webhooks/store/operations/triggers.ts";

/** Lists, metrics, and what is removed. */
export const LIST_CASES: StoreCases = {
  "a page ends where the next begins, while rows arrive and go": async (store) => {
    const ids: string[] = [];
    for (let index = 0; index < 5; index++) ids.unshift((await store.addEvent()).id);
    const first = await store.read(listEvents, { limit: 2 });
    assertEquals(first.items.map(({ id }) => id), ids.slice(0, 2));
    await store.addEvent({}, NOW - 5);
    const second = await store.read(listEvents, { limit: 2, cursor: first.nextCursor });
    assertEquals(second.items.map(({ id }) => id), ids.slice(2, 4));
    await store.addEvent();
    const third = await store.read(listEvents, { limit: 2, cursor: second.nextCursor });
    assertEquals([third.items.map(({ id }) => id), third.nextCursor], [ids.slice(4), undefined]);
    const whole = await store.read(listEvents, { limit: 5, cursor: first.nextCursor });
    assertEquals(whole.items.map(({ id }) => id), ids.slice(2));
    assertEquals((await store.read(listEvents, { limit: 7 })).nextCursor, undefined);
  },

  "a cursor that is none, or of another list, is refused": async (store) => {
    for (let index = 0; index < 2; index++) await store.addEvent();
    const { nextCursor = "" } = await store.read(listEvents, { limit: 1 });
    const lists: readonly ((options: ListOptions) => Promise<Page<unknown>>)[] = [
      (options) => store.read(listEndpoints, options),
      (options) => store.read(listTriggers, options),
      (options) => store.read(listEventKeys, options),
      (options) => store.read(listDeliveries, options),
      (options) => store.read(listExecutions, options),
      (options) => store.read(listAudit, options),
    ];
    for (const list of lists) await refused(list({ limit: 1, cursor: nextCursor }));
    for (const cursor of ["", "1", "%", `${nextCursor}=`, `${nextCursor}A`, ` ${nextCursor}`]) {
      await refused(store.read(listEvents, { limit: 1, cursor }));
    }
  },

  "deliveries are listed by endpoint, state, kind and time, in any combination": async (store) => {
    await variedDeliveries(store);
    const all = await allPages((options) => store.read(listDeliveries, options));
    assertEquals(all.length, 16);
    const endpointIds = [undefined, ...new Set(all.map(({ endpointId }) => endpointId)), newId()];
    for (const endpointId of endpointIds) {
      for (const state of [undefined, "attempting", "retrying", "acknowledged", "failed"]) {
        for (const kind of [undefined, "a.one", "a.two"]) {
          for (const [since, until] of [[], [NOW + 10, undefined], [undefined, NOW + 10], [NOW, NOW + 20]]) {
            const options = { endpointId, state, event: kind, since, until };
            const items = await allPages((page) => store.read(listDeliveries, page), options);
            assertEquals(items, all.filter((item) => matches(item, options)), JSON.stringify(options));
          }
        }
      }
    }
  },

  "deliveries are listed by event, with the other filters and page by page": async (store) => {
    await variedDeliveries(store);
    const all = await allPages((options) => store.read(listDeliveries, options));
    for (const eventId of [...new Set(all.map((item) => item.eventId)), newId()]) {
      for (
        const filter of [{}, { endpointId: all[0]?.endpointId }, { state: "attempting" }, { since: NOW + 10 }]
      ) {
        const options = { eventId, ...filter };
        const items = await allPages((page) => store.read(listDeliveries, page), options);
        assertEquals(items, all.filter((item) => matches(item, options)), JSON.stringify(options));
      }
    }
    const options = { eventId: all[0]?.eventId, limit: 1 };
    const first = await store.read(listDeliveries, options);
    const second = await store.read(listDeliveries, { ...options, cursor: first.nextCursor });
    assertEquals([...first.items, ...second.items], all.slice(0, 2));
    assertEquals(second.nextCursor, undefined);
  },

  "events, executions and the audit log are listed by their filters": async (store) => {
    await store.saveVersion();
    for (const at of [0, 20, 10]) {
      for (const kind of ["a.one", "a.two"]) await store.addEvent({ kind }, NOW + at);
      await store.write(acceptExecution, execution(), { now: NOW + at });
      await store.write(addAudit, audit({ at: NOW + at, action: `at.${at}`, details: { at } }));
    }
    const window = { since: NOW + 10, until: NOW + 20 };
    const events = await allPages((options) => store.read(listEvents, options), {
      ...window,
      event: "a.one",
    });
    assertEquals(events.map(({ kind, createdAt }) => [kind, createdAt]), [["a.one", NOW + 10]]);
    const executions = await allPages((options) => store.read(listExecutions, options), { since: NOW + 10 });
    assertEquals(executions.map(({ createdAt }) => createdAt), [NOW + 10, NOW + 20]);
    const [first] = await store.claimRuns({ max: 1 });
    const change = { status: "cancelled", stepAttempts: 0, finishedAt: NOW } as const;
    await store.write(commitExecution, {
      executionId: first?.execution.id ?? "",
      claimId: first?.claimId ?? "",
      now: NOW,
      change,
      keepClaim: false,
    });
    const counts = async (state: Execution["status"]) =>
      (await allPages((options) => store.read(listExecutions, options), { state })).length;
    assertEquals([await counts("queued"), await counts("running"), await counts("cancelled")], [2, 0, 1]);
    const entries = await allPages((options) => store.read(listAudit, options), { event: "at.20" });
    assertEquals(entries.map(({ at, details }) => [at, details]), [[NOW + 20, { at: 20 }]]);
    assertEquals((await store.read(listAudit, { limit: 9, until: NOW })).items, []);
  },

  "the metrics count what is due and what there is": async (store) => {
    const none = { attempting: 0, retrying: 0, acknowledged: 0, failed: 0 };
    const idle = { queued: 0, running: 0, succeeded: 0, failed: 0, cancelled: 0 };
    const endpoints = { healthy: 0, failing: 0, disabled_by_admin: 0, disabled_by_weir: 0 };
    const { bytes, ...empty } = await store.metrics(NOW);
    assertEquals([empty, bytes > 0], [{
      dueNow: 0,
      deliveries: none,
      executions: idle,
      endpoints,
      replays: 0,
      rateLimited: 0,
    }, true]);
    await variedDeliveries(store);
    await store.saveVersion();
    await store.write(acceptExecution, execution(), { now: NOW });
    const { bytes: _, ...metrics } = await store.metrics(NOW + 20);
    assertEquals(metrics, {
      dueNow: 2,
      oldestDueAt: NOW,
      deliveries: { attempting: 12, retrying: 1, acknowledged: 1, failed: 2 },
      executions: { ...idle, queued: 1 },
      endpoints: { ...endpoints, healthy: 1, disabled_by_admin: 1 },
      replays: 0,
      rateLimited: 0,
    });
    assertEquals((await store.metrics(NOW + DAY)).dueNow, 5, "those of the disabled endpoint wait");
  },

  "what is over goes when it is old, in portions; open work stays": async (store) => {
    const to = await store.addEndpoint();
    for (const at of [0, 1, 2, 3]) await store.addEvent({}, NOW + at);
    await store.addEvent({}, NOW + DAY);
    const [old, open, asked, late] = await store.claim([to], { now: NOW + 9, max: 4 });
    if (old) await store.finish(old, ACKNOWLEDGED);
    if (open) await store.finish(open, retryAt(NOW));
    if (asked) await store.finish(asked, EXHAUSTED);
    if (asked) await store.write(resendDelivery, asked.delivery.id, { now: NOW, audit: audit() });
    if (late) await store.finish(late, { ...ACKNOWLEDGED, finishedAt: NOW + DAY });
    const idempotency = { scope: "admin", key: "k", bodyHash: "h" };
    await store.write(acceptEvent, event(), { now: NOW + DAY, idempotency });
    const remove = (now: number, max: number) => store.write(removeFinished, { before: NOW + DAY, now, max });
    const young = NOW + DAY * 2 - 1;
    // A delivery, its event, and the three entries of the audit log that the cases themselves have written.
    assertEquals([await remove(young, 2), await remove(young, 99), await remove(young, 99)], [2, 2, 0]);
    assertEquals(await store.read(findDelivery, old?.delivery.id ?? ""), undefined);
    assertEquals(await store.read(findEvent, old?.delivery.eventId ?? ""), undefined);
    for (const kept of [open, asked, late]) {
      assertEquals((await store.read(findDelivery, kept?.delivery.id ?? ""))?.attempts.length, 1);
      assertEquals((await store.read(findEvent, kept?.delivery.eventId ?? ""))?.id, kept?.delivery.eventId);
    }
    assertEquals((await store.read(findIdempotency, "admin", "k", young))?.key, "k");
    assertEquals([await remove(young + 1, 9), await remove(young + 1, 9)], [1, 0]);
    assertEquals((await store.metrics(NOW)).deliveries.acknowledged, 1);
  },

  "events go with the last of their deliveries, those without any by themselves": async (store) => {
    const to = await store.addEndpoint({ events: ["a.one"] });
    const [open, none, done] = [
      await store.addEvent({ kind: "a.one" }, NOW + 1),
      await store.addEvent({ kind: "a.two" }, NOW + 2),
      await store.addEvent({ kind: "a.one" }, NOW + 3),
    ];
    const young = await store.addEvent({ kind: "a.two" }, NOW + DAY);
    const claims = await store.claim([to], { now: NOW + 9 });
    const [first, last] = claims;
    if (last) await store.finish(last, ACKNOWLEDGED);
    const left = async () => {
      const events = await Promise.all([open, none, done, young].map(({ id }) => store.read(findEvent, id)));
      return events.map((found) => found !== undefined);
    };
    const remove = (before: number) => store.write(removeFinished, { before, now: NOW + DAY, max: 100 });
    while (await remove(NOW + DAY) > 0);
    assertEquals(await left(), [true, false, false, true]);
    if (first) await store.finish(first, ACKNOWLEDGED);
    assertEquals([await remove(NOW + DAY), await left()], [2, [false, false, false, true]]);
    // A clock that was set back: what came before the place that was reached is found as well.
    const early = await store.addEvent({ kind: "a.two" }, NOW + 1);
    assertEquals([await remove(NOW + DAY - 1), (await store.read(findEvent, early.id))?.id], [0, early.id]);
    assertEquals([await remove(NOW + 2), await store.read(findEvent, early.id)], [1, undefined]);
  },

  "a text of a workflow goes with the last execution that began with it": async (store) => {
    await store.saveVersion();
    const [one, two] = [execution(), execution()];
    for (const added of [one, two]) await store.write(acceptExecution, added, { now: NOW });
    const remove = () => store.write(removeFinished, { before: NOW + DAY, now: NOW, max: 100 });
    const end = async () => {
      const [claimed] = await store.claimRuns({ max: 1 });
      assert(claimed !== undefined);
      await store.write(commitExecution, {
        executionId: claimed.execution.id,
        claimId: claimed.claimId,
        now: NOW,
        change: { status: "succeeded", stepAttempts: 0, finishedAt: NOW },
        keepClaim: false,
      });
      return claimed.version.text;
    };
    assertEquals(await end(), "workflow: order-intake\n");
    assertEquals(await remove(), 1);
    // The other one still needs it.
    assertEquals(await end(), "workflow: order-intake\n");
    assertEquals(await remove(), 1);
    const missing = await store.write(acceptExecution, execution(), { now: NOW }).catch((error: unknown) =>
      error
    );
    assert(missing instanceof Error, "Expected the text to be gone");
    await store.saveVersion();
    assertEquals((await store.write(acceptExecution, execution(), { now: NOW })).kind, "new");
  },

  "attempts are read without what was answered to them where that is not requested": async (store) => {
    const to = await store.addEndpoint();
    await store.addEvent();
    const claimed = await store.claimOne(to);
    await store.finish(claimed, retryAt(NOW), {
      result: "failed",
      finishedAt: NOW,
      status: 500,
      response: "no",
    });
    const responses = async (wanted?: boolean) =>
      (await store.read(findDelivery, claimed.delivery.id, { responses: wanted }))?.attempts
        .map(({ status, response }) => [status, response]);
    assertEquals([await responses(), await responses(true), await responses(false)], [
      [[500, "no"]],
      [[500, "no"]],
      [[500, undefined]],
    ]);
  },

  "a store that was closed refuses everything": async (store) => {
    const other = await store.another();
    await other.close();
    await other.close();
    const closed = async (call: Promise<unknown>) => {
      const error = await call.catch((thrown: unknown) => thrown);
      assertEquals([(error as Error).name, (error as { code?: string }).code], ["StoreError", "closed"]);
    };
    await closed(other.metrics(NOW));
    await closed(other.write(addAudit, audit()));
  },

  "what was asked for before a store is closed is done": async (store) => {
    const other = await store.another();
    const entry = audit({ action: "last" });
    const written = other.write(addAudit, entry);
    await other.close();
    await written;
    assertEquals((await store.read(listAudit, { limit: 1 })).items, [entry]);
  },
};

/** Two endpoints, one of them disabled, with events of two kinds at four times, in every state. */
async function variedDeliveries(store: TestStore): Promise<void> {
  const [one] = [await store.addEndpoint(), await store.addEndpoint({ enabled: false })];
  for (const at of [0, 20, 10, 30]) {
    for (const kind of ["a.one", "a.two"]) await store.addEvent({ kind }, NOW + at);
  }
  const claimed = await store.claim([one], { now: NOW + 20 });
  const changes = [EXHAUSTED, undefined, ACKNOWLEDGED, EXHAUSTED, retryAt(NOW + 30_000), undefined];
  for (const [index, change] of changes.entries()) {
    const item = claimed[index];
    if (item === undefined || change === undefined) continue;
    await store.finish(item, change);
  }
  await store.write(voidClaims, { now: NOW + 20, which: "all" });
}

function matches(item: Delivery, options: Partial<ListOptions>): boolean {
  const { endpointId, eventId, state, event, since, until } = options;
  return (endpointId === undefined || item.endpointId === endpointId) &&
    (eventId === undefined || item.eventId === eventId) &&
    (state === undefined || item.state === state) && (event === undefined || item.event === event) &&
    (since === undefined || item.createdAt >= since) && (until === undefined || item.createdAt < until);
}

async function refused(page: Promise<unknown>): Promise<void> {
  const error = await assertRejects(() => page);
  assertEquals(error instanceof RangeError, true);
}
