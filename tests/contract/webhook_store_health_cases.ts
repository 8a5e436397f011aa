import { assertEquals } from "#assert";
import type { AttemptSummary } from "../../src/webhooks/model/endpoint_health.ts";
import { deliveryFailedEvent } from "../../src/webhooks/model/endpoint_events.ts";
import { listAudit } from "../../src/webhooks/store/operations/audit_log.ts";
import {
  listDeliveries,
  missedDeliveries,
  recoverDeliveries,
} from "../../src/webhooks/store/operations/deliveries.ts";
import {
  dueEndpoints,
  failPaused,
  finishAttempt,
} from "../../src/webhooks/store/operations/delivery_claims.ts";
import {
  attemptHours,
  endpointStatistics,
  NO_STATISTICS,
  recordAttempts,
  removeAttempts,
  STEP_MS,
} from "../../src/webhooks/store/operations/endpoint_health.ts";
import {
  deleteEndpoint,
  editEndpoint,
  findEndpoint,
  listEndpointRecords,
} from "../../src/webhooks/store/operations/endpoints.ts";
import { erasePayload } from "../../src/webhooks/store/operations/events.ts";
import { removeFinished } from "../../src/webhooks/store/operations/retention.ts";
import {
  audit,
  DAY,
  EXHAUSTED,
  newId,
  NOW,
  retryAt,
  type StoreCases,
  type TestStore,
} from "./webhook_store_bed.ts";

const HOUR = 3_600_000;
const DISABLE_AFTER = 5 * DAY;

const SUCCESS: AttemptSummary = { succeeded: 1, failed: 0, answered: 1, totalMs: 30, maxMs: 30 };

/** Failures, all at one time. */
function failed(count: number, at: number, areReportable = true): AttemptSummary {
  const failures = { count, firstAt: at, lastAt: at, areReportable };
  return { succeeded: 0, failed: count, answered: 0, totalMs: 0, maxMs: 0, failures };
}

/** Records attempts of one endpoint; answers what changed. */
async function record(store: TestStore, endpointId: string, summary: AttemptSummary, now = NOW) {
  const options = { now, newId, disableAfterMs: DISABLE_AFTER };
  const { changed } = await store.write(recordAttempts, [{ endpointId, summary }], options);
  return changed.map(({ change }) => change);
}

async function statisticsOf(store: TestStore, id: string, now = NOW) {
  return (await store.read(endpointStatistics, [id], now)).get(id);
}

/** The events that an endpoint has deliveries of, oldest first, with their data. */
async function eventsOf(store: TestStore, endpointId: string): Promise<readonly unknown[]> {
  const { items } = await store.read(listDeliveries, { limit: 200, endpointId });
  return await Promise.all(items.toReversed().map(({ eventId }) => store.bodyOf(eventId)));
}

/** Statistics, failing endpoints, and events about them. */
export const HEALTH_CASES: StoreCases = {
  "attempts of several processes are added up by endpoint, for an hour and a day": async (store) => {
    const [one, other] = [await store.addEndpoint(), await store.addEndpoint()];
    const options = { now: NOW, newId, disableAfterMs: DISABLE_AFTER };
    const attempts = [one, other].map(({ id }) => ({
      endpointId: id,
      summary: { succeeded: 3, failed: 1, answered: 4, totalMs: 100.4, maxMs: 70.6 },
    }));
    await Promise.all(
      [store, await store.another()].map((each) => each.write(recordAttempts, attempts, options)),
    );
    const twice = { succeeded: 6, failed: 2, answered: 8, totalMs: 200, maxMs: 71 };
    for (const { id } of [one, other]) {
      assertEquals(await statisticsOf(store, id), { ...NO_STATISTICS, hour: twice, day: twice });
    }
    await record(store, one.id, SUCCESS, NOW + 2 * HOUR);
    assertEquals(await statisticsOf(store, one.id, NOW + 2 * HOUR), {
      ...NO_STATISTICS,
      hour: SUCCESS,
      day: { succeeded: 7, failed: 2, answered: 9, totalMs: 230, maxMs: 71 },
    });
    assertEquals(await statisticsOf(store, one.id, NOW + DAY + HOUR), { ...NO_STATISTICS, day: SUCCESS });
    assertEquals(await statisticsOf(store, newId()), NO_STATISTICS);
    const { items } = await store.read(listEndpointRecords, { limit: 1 }, NOW);
    assertEquals(items, [{ endpoint: other, statistics: { ...NO_STATISTICS, hour: twice, day: twice } }]);
  },

  "attempts are counted by hour, in the current one and the 23 before it": async (store) => {
    const [one, other] = [await store.addEndpoint(), await store.addEndpoint()];
    const hour = NOW - NOW % HOUR;
    await record(store, one.id, SUCCESS, hour - DAY + HOUR - 1);
    await record(store, one.id, SUCCESS, hour - DAY + HOUR);
    await record(store, other.id, SUCCESS, hour);
    await record(store, one.id, SUCCESS, hour);
    await record(store, one.id, failed(2, hour + STEP_MS), hour + STEP_MS);
    const { succeeded, failed: failures } = SUCCESS;
    assertEquals(await store.read(attemptHours, one.id, hour + HOUR - 1), [
      { at: hour - DAY + HOUR, succeeded, failed: failures },
      { at: hour, succeeded, failed: failures + 2 },
    ]);
    assertEquals((await store.read(attemptHours, one.id, hour + HOUR)).map(({ at }) => at), [hour]);
    assertEquals(await store.read(attemptHours, newId(), NOW), []);
  },

  "statistics older than a day are removed, some at a time": async (store) => {
    const { id } = await store.addEndpoint();
    for (let n = 0; n < 3; n++) await record(store, id, SUCCESS, NOW + n * STEP_MS);
    const end = NOW + DAY + 4 * STEP_MS;
    assertEquals(await store.write(removeAttempts, NOW + DAY, 10), 0);
    assertEquals(await store.write(removeAttempts, end, 2), 2);
    assertEquals((await statisticsOf(store, id, NOW + HOUR))?.day, SUCCESS);
    assertEquals(await store.write(removeFinished, { before: 0, now: end, max: 10 }), 1);
    assertEquals(await statisticsOf(store, id), NO_STATISTICS);
  },

  "an endpoint is reported to the others after 20 failures in a row, and after the next success": async (
    store,
  ) => {
    const dead = await store.addEndpoint({ events: ["endpoint.*"] });
    const other = await store.addEndpoint({ events: ["endpoint.*"] });
    const all = await store.addEndpoint({ events: ["*"] });
    assertEquals(await record(store, dead.id, failed(19, NOW)), []);
    assertEquals(await record(store, dead.id, failed(1, NOW + 1), NOW + 1), ["failing"]);
    assertEquals(await record(store, dead.id, failed(30, NOW + 2), NOW + 2), [], "it is reported once");
    const failures = { failures: 50, failingSince: NOW, lastFailureAt: NOW + 2 };
    assertEquals((await statisticsOf(store, dead.id))?.run, { ...failures, failingMs: 2, isReported: true });
    const later = { ...SUCCESS, ...failed(1, NOW + 3), succeeded: 1 };
    assertEquals(await record(store, dead.id, later, NOW + 3), ["recovered"]);
    assertEquals((await statisticsOf(store, dead.id))?.run.failures, 1);
    assertEquals(await record(store, dead.id, SUCCESS), []);
    assertEquals((await statisticsOf(store, dead.id))?.run, NO_STATISTICS.run);
    const failingSince = new Date(NOW).toISOString();
    assertEquals(await eventsOf(store, other.id), [
      {
        event: "endpoint.failing",
        data: { endpointId: dead.id, failingSince, consecutiveFailures: 20 },
      },
      {
        event: "endpoint.recovered",
        data: { endpointId: dead.id, failingSince, recoveredAt: new Date(NOW + 3).toISOString() },
      },
    ]);
    assertEquals([await eventsOf(store, dead.id), await eventsOf(store, all.id)], [[], []]);
  },

  "failures of operational events alone report nothing": async (store) => {
    const dead = await store.addEndpoint({ events: ["endpoint.*"] });
    const other = await store.addEndpoint({ events: ["endpoint.*"] });
    for (let n = 0; n < 5; n++) {
      assertEquals(await record(store, dead.id, failed(100, NOW + n * DAY, false)), []);
    }
    assertEquals(await eventsOf(store, other.id), []);
    assertEquals(await record(store, dead.id, failed(1, NOW + 4 * DAY)), ["failing"]);
    assertEquals(await record(store, dead.id, failed(1, NOW + 5 * DAY, false)), ["disabled"]);
    assertEquals((await store.read(findEndpoint, dead.id))?.enabled, false);
    assertEquals((await eventsOf(store, other.id)).length, 1, "nor that they disabled the endpoint");
  },

  "an endpoint whose attempts only failed for long is disabled by the system": async (store) => {
    const dead = await store.addEndpoint();
    const other = await store.addEndpoint({ events: ["endpoint.disabled"] });
    for (let n = 0; n < 10; n++) assertEquals(await record(store, dead.id, failed(1, NOW + n * DAY / 2)), []);
    const now = NOW + DISABLE_AFTER;
    assertEquals((await store.read(findEndpoint, dead.id))?.enabled, true);
    assertEquals(await record(store, dead.id, failed(1, now), now), ["disabled"]);
    assertEquals(await record(store, dead.id, failed(1, now + 1), now + 1), [], "it is disabled already");
    const disabled = { enabled: false, disabledAt: now, disabledReason: "failing", updatedAt: now } as const;
    assertEquals(await store.read(findEndpoint, dead.id), { ...dead, ...disabled });
    const [entry] = (await store.read(listAudit, { limit: 1 })).items;
    assertEquals([entry?.actor, entry?.action, entry?.object, entry?.details], [
      "system",
      "endpoint.disabled",
      `endpoint:${dead.id}`,
      { reason: "failing", failingSince: new Date(NOW).toISOString(), consecutiveFailures: 11 },
    ]);
    const times = { disabledAt: new Date(now).toISOString(), failingSince: new Date(NOW).toISOString() };
    assertEquals(await eventsOf(store, other.id), [{
      event: "endpoint.disabled",
      data: { endpointId: dead.id, reason: "failing", ...times, consecutiveFailures: 11 },
    }]);
    const change = { now: now + 2, audit: audit() };
    const still = await store.write(editEndpoint, dead.id, { enabled: false }, change);
    assertEquals([still?.disabledAt, still?.disabledReason], [now, "failing"]);
    const enabled = await store.write(editEndpoint, dead.id, { enabled: true }, change);
    assertEquals(enabled, { ...dead, updatedAt: now + 2 });
    assertEquals((await statisticsOf(store, dead.id))?.run, NO_STATISTICS.run);
    assertEquals(await record(store, dead.id, failed(1, now + 3), now + 3), [], "it has as long again");
    await store.write(editEndpoint, dead.id, { enabled: true }, change);
    assertEquals((await statisticsOf(store, dead.id))?.run.failures, 1, "it was enabled");
    const byAdmin = await store.write(editEndpoint, dead.id, { enabled: false }, change);
    assertEquals([byAdmin?.disabledAt, byAdmin?.disabledReason], [now + 2, "admin"]);
  },

  "an endpoint that is gone is disabled by the system": async (store) => {
    const { id } = await store.addEndpoint();
    const other = await store.addEndpoint({ events: ["endpoint.disabled"] });
    const gone = (at: number, goneAt: number): AttemptSummary => {
      return {
        ...failed(1, at),
        failures: { count: 1, firstAt: at, lastAt: at, areReportable: true, goneAt },
      };
    };
    await store.write(editEndpoint, id, { description: "moved" }, { now: NOW + 2, audit: audit() });
    assertEquals(await record(store, id, gone(NOW + 3, NOW + 1), NOW + 3), [], "changed since the attempt");
    assertEquals((await store.read(findEndpoint, id))?.enabled, true);
    const now = NOW + 4;
    assertEquals(await record(store, id, gone(now, NOW + 2), now), ["gone"]);
    assertEquals(await record(store, id, gone(now, now), now), [], "it is disabled already");
    const disabled = await store.read(findEndpoint, id);
    assertEquals([disabled?.enabled, disabled?.disabledAt, disabled?.disabledReason], [false, now, "gone"]);
    const facts = { failingSince: new Date(NOW + 3).toISOString(), consecutiveFailures: 2 };
    const [entry] = (await store.read(listAudit, { limit: 1 })).items;
    assertEquals([entry?.actor, entry?.action, entry?.object, entry?.details], [
      "system",
      "endpoint.disabled",
      `endpoint:${id}`,
      { reason: "gone", ...facts },
    ]);
    assertEquals(await eventsOf(store, other.id), [{
      event: "endpoint.disabled",
      data: { endpointId: id, reason: "gone", disabledAt: new Date(now).toISOString(), ...facts },
    }]);
    assertEquals((await store.metrics(NOW)).endpoints.disabled_by_weir, 1);
    const enabled = await store.write(editEndpoint, id, { enabled: true }, { now: now + 1, audit: audit() });
    assertEquals([enabled?.enabled, enabled?.disabledReason], [true, undefined]);
  },

  "the metrics count endpoints by state, and not what is due for failing ones": async (store) => {
    const [one, two, three] = [
      await store.addEndpoint(),
      await store.addEndpoint(),
      await store.addEndpoint(),
    ];
    await store.addEndpoint();
    await store.addEvent();
    const due = async () => {
      const { dueNow, endpoints } = await store.metrics(NOW);
      return [dueNow, endpoints];
    };
    const none = { healthy: 0, failing: 0, disabled_by_admin: 0, disabled_by_weir: 0 };
    assertEquals(await due(), [4, { ...none, healthy: 4 }]);
    await record(store, one.id, failed(19, NOW));
    assertEquals(await due(), [4, { ...none, healthy: 4 }]);
    await record(store, one.id, failed(1, NOW));
    await store.write(editEndpoint, two.id, { enabled: false }, { now: NOW, audit: audit() });
    for (let n = 0; n <= 5; n++) await record(store, three.id, failed(1, NOW + n * DAY));
    assertEquals(await due(), [1, { healthy: 1, failing: 1, disabled_by_admin: 1, disabled_by_weir: 1 }]);
  },

  "time without attempts is no time of failures": async (store) => {
    const { id } = await store.addEndpoint();
    await record(store, id, failed(1, NOW));
    for (const days of [6, 12, 18]) {
      assertEquals(await record(store, id, failed(30, NOW + days * DAY)), days === 6 ? ["failing"] : []);
    }
    assertEquals((await statisticsOf(store, id))?.run.failingMs, 0);
    assertEquals(await record(store, id, failed(1, NOW)), [], "nor is a clock that was set back");
    assertEquals((await store.read(findEndpoint, id))?.enabled, true);
  },

  "0 disables no endpoint": async (store) => {
    const { id } = await store.addEndpoint();
    for (let n = 0; n < 30; n++) {
      const options = { now: NOW + n * DAY, newId, disableAfterMs: 0 };
      await store.write(recordAttempts, [{ endpointId: id, summary: failed(1, NOW + n * DAY) }], options);
    }
    assertEquals((await store.read(findEndpoint, id))?.enabled, true);
  },

  "attempts of a deleted endpoint are not recorded, and its statistics are gone": async (store) => {
    const [gone, kept] = [await store.addEndpoint(), await store.addEndpoint()];
    await record(store, gone.id, failed(3, NOW));
    await store.write(deleteEndpoint, gone.id, { now: NOW, audit: audit(), newId });
    const attempts = [gone, kept].map(({ id }) => ({ endpointId: id, summary: failed(1, NOW) }));
    await (await store.another()).write(recordAttempts, attempts, { now: NOW, newId, disableAfterMs: 0 });
    assertEquals(await statisticsOf(store, gone.id), NO_STATISTICS);
    assertEquals((await statisticsOf(store, kept.id))?.run.failures, 1);
    assertEquals(await store.write(recordAttempts, [], { now: NOW, newId, disableAfterMs: 0 }), {
      changed: [],
      wokenIds: [],
    });
  },

  "what an endpoint has missed since it failed is counted, and recovered with that time": async (store) => {
    const receiver = await store.addEndpoint();
    const fail = async (createdAt: number, finishedAt: number) => {
      const { id } = await store.addEvent({}, createdAt);
      await store.finish(await store.claimOne(receiver, createdAt), { ...EXHAUSTED, finishedAt });
      return id;
    };
    await fail(NOW, NOW + DAY);
    await fail(NOW + 1, NOW + 3 * DAY);
    await fail(NOW + 2, NOW + 3 * DAY + 1);
    const erased = await fail(NOW + 3, NOW + 3 * DAY + 1);
    await store.write(erasePayload, erased, { now: NOW, audit: audit(), newId });
    const until = NOW + 4 * DAY;
    const missed = (failedSince: number) =>
      store.read(missedDeliveries, { endpointId: receiver.id, failedSince, until });
    assertEquals(await missed(NOW + 2 * DAY), { count: 2, since: NOW + 1 });
    assertEquals(await missed(NOW), { count: 3, since: NOW });
    assertEquals(await missed(until), { count: 0 });
    const range = { endpointId: receiver.id, since: NOW + 1, until, max: 10, now: until, audit: audit() };
    assertEquals(await store.write(recoverDeliveries, { ...range, dryRun: false }), 2);
    assertEquals(await missed(NOW + 2 * DAY), { count: 0 });
  },

  "a delivery that fails for good is reported in the same transaction": async (store) => {
    const receiver = await store.addEndpoint({ events: ["agent.*"] });
    const watcher = await store.addEndpoint({ events: ["delivery.failed"] });
    const { id: eventId } = await store.addEvent();
    const claimed = await store.claimOne(receiver);
    const event = deliveryFailedEvent({ ...claimed.delivery, ...EXHAUSTED }, {
      newEventId: newId(),
      now: NOW,
    });
    const outcome = { result: "failed", finishedAt: NOW + 5, status: 500 } as const;
    const finished = { number: claimed.attempt, outcome, change: EXHAUSTED, event };
    const deliveryId = claimed.delivery.id;
    const lost = { ...finished, deliveryId, claimId: newId() };
    assertEquals(await store.write(finishAttempt, lost), false);
    assertEquals(await eventsOf(store, watcher.id), [], "the claim was lost");
    assertEquals(await store.write(finishAttempt, { ...lost, claimId: claimed.claimId }), true);
    const at = new Date(NOW).toISOString();
    assertEquals(await eventsOf(store, watcher.id), [{
      event: "delivery.failed",
      data: {
        deliveryId,
        endpointId: receiver.id,
        eventId,
        event: "agent.reply.completed",
        reason: "exhausted",
        createdAt: at,
        firstFailureAt: at,
        failedAt: at,
      },
    }]);
  },

  "a delivery that fails with its disabled endpoint is reported, an operational one is not": async (
    store,
  ) => {
    const receiver = await store.addEndpoint({ events: ["agent.*", "endpoint.*"] });
    const watcher = await store.addEndpoint({ events: ["delivery.*"] });
    const known = await store.addEvent();
    await store.finish(await store.claimOne(receiver), retryAt(NOW + 30_000));
    await store.addEvent({ kind: "endpoint.failing" });
    await store.finish(await store.claimOne(receiver), retryAt(NOW + 30_000));
    await store.write(editEndpoint, receiver.id, { enabled: false }, { now: NOW, audit: audit() });
    const now = NOW + DAY;
    assertEquals(await store.write(failPaused, { now, newId }), 2);
    const told = await eventsOf(store, watcher.id) as { data: { eventId: string; reason: string } }[];
    assertEquals(told.map(({ data }) => [data.eventId, data.reason]), [[known.id, "endpoint_disabled"]]);
  },

  "a delivery that an administrator ended is not reported": async (store) => {
    const receiver = await store.addEndpoint({ events: ["agent.*"] });
    const watcher = await store.addEndpoint({ events: ["delivery.*"] });
    const erased = await store.addEvent();
    await store.write(erasePayload, erased.id, { now: NOW, audit: audit(), newId });
    assertEquals((await store.deliveryOf(erased.id)).reason, "payload_erased");
    await store.addEvent();
    await store.write(deleteEndpoint, receiver.id, { now: NOW, audit: audit(), newId });
    assertEquals(await eventsOf(store, watcher.id), []);
  },

  "an endpoint with a last attempt that is due is known": async (store) => {
    const receiver = await store.addEndpoint();
    await store.addEvent();
    const endings = async (now: number) =>
      (await store.read(dueEndpoints, now)).map(({ isEnding }) => isEnding);
    assertEquals(await endings(NOW), [undefined]);
    await store.finish(await store.claimOne(receiver), retryAt(NOW + DAY));
    await store.addEvent({}, NOW + 1);
    assertEquals(await endings(NOW + DAY - 1), [undefined]);
    assertEquals(await endings(NOW + DAY), [true]);
  },
};
