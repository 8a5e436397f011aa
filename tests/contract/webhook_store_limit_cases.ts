import { assertEquals } from "@std/assert";
import { addEndpoint, bodyOf, DAY, newId, NOW, type StoreCases } from "./webhook_store_bed.ts";
import { listDeliveries } from "../../src/webhooks/store/deliveries.ts";
import { listEvents } from "../../src/webhooks/store/events.ts";
import {
  endEpisodes,
  type EpisodeReport,
  isEpisodeOver,
  type ReportOptions,
  takeReports,
} from "../../src/webhooks/store/limit_episodes.ts";
import { removeFinished } from "../../src/webhooks/store/retention.ts";
import type { WebhookStore } from "../../src/webhooks/store/store.ts";

/** Of an episode that lasts a minute. */
function report(part: Partial<EpisodeReport> = {}): EpisodeReport {
  return {
    ...{ id: "a".repeat(64), event: "over_limit", hits: 1, startedAt: NOW, endsAt: NOW + 60_000 },
    first: { facts: `{"domain":"d"}`, freeAt: NOW + 60_000 },
    ...part,
  };
}

const LATER: Pick<EpisodeReport, "first"> = { first: undefined };

let number = 0;

/** Writes reports as a process does, by default one that has not reported before. */
function take(
  store: WebhookStore,
  reports: readonly EpisodeReport[],
  part: Partial<ReportOptions> = {},
): Promise<readonly string[]> {
  const options = { reporter: newId(), number: ++number, events: [], now: NOW, newId };
  return store.write(takeReports, { ...options, reports, ...part });
}

function end(store: WebhookStore, before: number, max = 10) {
  return store.write(endEpisodes, { before, max, now: before, newId });
}

/** The bodies of the events, newest first. */
async function bodies(store: WebhookStore) {
  const { items } = await store.read(listEvents, { limit: 100 });
  return await Promise.all(items.map(({ id }) => bodyOf(store, id)));
}

/** The events, oldest first, each with its data apart from the facts. */
async function events(store: WebhookStore): Promise<readonly string[]> {
  return (await bodies(store)).toReversed().map(({ event, data: { refusedHits = "", episode = "" } }) =>
    `${event} ${String(episode).slice(0, 1)} ${refusedHits}`.trim()
  );
}

const [A, B, C] = ["a".repeat(64), "b".repeat(64), "c".repeat(64)] as const;

/** Cases of stores with an endpoint that subscribes to the events. */
const SUBSCRIBED_CASES: StoreCases = {
  "the data of the events of an episode": async ({ store }) => {
    await take(store, [report({ hits: 2 })]);
    await end(store, NOW + 60_001);
    const [at, endsAt] = ["2023-11-14T22:13:20.000Z", "2023-11-14T22:14:20.000Z"];
    const shared = { domain: "d", episode: `${"a".repeat(16)}-${NOW}` };
    assertEquals((await bodies(store)).map(({ data }) => data), [
      { ...shared, startedAt: at, endedAt: endsAt, refusedHits: 2 },
      { ...shared, at, freeAt: endsAt },
    ]);
  },

  "processes that report the same episodes concurrently write each event once": async (
    { store, another },
  ) => {
    const stores = [store, await another(), await another()];
    const ids = Array.from({ length: 20 }, (_, index) => index.toString(16).padStart(64, "0"));
    await Promise.all(stores.flatMap((one, place) => {
      const reports = ids.map((id) => report({ id }));
      return [take(one, place % 2 === 0 ? reports : reports.toReversed()), take(one, reports)];
    }));
    assertEquals((await events(store)).length, 20);
    const ended = await Promise.all(stores.map((one) => end(one, NOW + 60_001, 20)));
    assertEquals(ended.reduce((sum, { count }) => sum + count, 0), 20);
    assertEquals((await events(store)).slice(20), Array(20).fill("ratelimit.over_limit.ended 0 6"));
  },

  "a batch that is written again changes nothing": async ({ store }) => {
    const batch = { reporter: "r", number: 5, events: [{ kind: "config.loaded", json: "{}" }] };
    await take(store, [report({ hits: 2 })], batch);
    await take(store, [report({ hits: 2 })], batch);
    await take(store, [report({ hits: 7 })], { ...batch, number: 4 });
    await take(store, [report({ hits: 1, ...LATER })], { reporter: "r", number: 6 });
    await end(store, NOW + 60_001);
    assertEquals(await events(store), [
      "config.loaded",
      "ratelimit.over_limit a",
      "ratelimit.over_limit.ended a 3",
    ]);
  },

  "late reports of an ended episode change nothing": async ({ store }) => {
    await take(store, [report()]);
    await end(store, NOW + 60_001);
    const late = { now: NOW + 90_000 };
    await take(store, [report({ hits: 5, endsAt: NOW + 90_000, ...LATER })], late);
    await take(store, [report({ hits: 5, startedAt: NOW + 59_999, endsAt: NOW + 90_000 })], late);
    assertEquals(await end(store, NOW + 2 * DAY), { count: 0, endpointIds: [] });
    const ended = ["ratelimit.over_limit a", "ratelimit.over_limit.ended a 1"];
    assertEquals(await events(store), ended);
    await take(store, [report({ startedAt: NOW + 60_000, endsAt: NOW + 120_000 })]);
    assertEquals(await events(store), [...ended, "ratelimit.over_limit a"]);
  },

  "an episode that goes on after its end was reported, as after an outage of the store, begins again": async (
    { store },
  ) => {
    const near = { id: B, event: "near_limit", hits: 1 } as const;
    await take(store, [report(), report(near)]);
    await end(store, NOW + 60_001);
    const now = NOW + 70_000;
    const goesOn = { endsAt: NOW + 75_000, ...LATER };
    await take(store, [report({ hits: 5, ...goesOn }), report({ ...near, ...goesOn })], { now });
    await take(store, [report({ hits: 2, startedAt: NOW + 71_000, endsAt: NOW + 81_000 })], { now });
    await take(store, [report({ ...near, startedAt: NOW + 71_000, endsAt: NOW + 81_000 })], { now });
    assertEquals((await end(store, NOW + 81_000)).count, 0);
    assertEquals((await end(store, NOW + 81_001)).count, 2);
    assertEquals(await events(store), [
      "ratelimit.over_limit a",
      "ratelimit.near_limit b",
      "ratelimit.over_limit.ended a 1",
      "ratelimit.over_limit a",
      "ratelimit.over_limit.ended a 7",
    ]);
    // Another episode by its name, with the facts of the first report.
    const shared = { domain: "d", episode: `${"a".repeat(16)}-${NOW + 60_000}` };
    const [endedAt, startedAt] = ["2023-11-14T22:14:41.000Z", "2023-11-14T22:14:20.000Z"];
    assertEquals((await bodies(store)).slice(0, 2).map(({ data }) => data), [
      { ...shared, startedAt, endedAt, refusedHits: 7 },
      { ...shared, at: startedAt, freeAt: "2023-11-14T22:14:35.000Z" },
    ]);
  },

  "hits without a first report are discarded": async ({ store }) => {
    await take(store, [report(LATER)]);
    assertEquals(await events(store), []);
    assertEquals(await store.read(isEpisodeOver, NOW + DAY), false);
  },

  "a key without windows has one episode after the other": async ({ store }) => {
    await take(store, [report({ hits: 1, endsAt: NOW + 10_000 })]);
    // It goes on, as another process reports.
    await take(store, [report({ hits: 2, startedAt: NOW + 9_000, endsAt: NOW + 19_000 })]);
    await take(store, [report({ hits: 4, endsAt: NOW + 12_000, ...LATER })]);
    assertEquals(await end(store, NOW + 19_000), { count: 0, endpointIds: [] });
    // The end of the first was not reported yet.
    const next = { startedAt: NOW + 19_000, endsAt: NOW + 29_000 };
    await take(store, [report({ hits: 8, ...next }), report({ hits: 16, ...next, ...LATER })]);
    await end(store, NOW + 29_001);
    // And after that was reported.
    await take(store, [report({ hits: 32, startedAt: NOW + 40_000, endsAt: NOW + 50_000 })]);
    await end(store, NOW + 50_001);
    assertEquals(await events(store), [
      "ratelimit.over_limit a",
      "ratelimit.over_limit.ended a 7",
      "ratelimit.over_limit a",
      "ratelimit.over_limit.ended a 24",
      "ratelimit.over_limit a",
      "ratelimit.over_limit.ended a 32",
    ]);
  },

  "keys near a limit have one event in an episode, and none at its end": async ({ store }) => {
    const near = { event: "near_limit" } as const;
    await take(store, [report(near)]);
    await take(store, [report({ ...near, startedAt: NOW + 1 })]);
    assertEquals((await end(store, NOW + 60_001)).count, 1);
    await take(store, [report({ ...near, startedAt: NOW + 60_000, endsAt: NOW + 120_000 })]);
    assertEquals(await events(store), ["ratelimit.near_limit a", "ratelimit.near_limit a"]);
  },

  "ends are reported in portions, the earliest first": async ({ store }) => {
    const endsAt = (ms: number) => ({ endsAt: NOW + ms });
    await take(store, [
      report({ id: C, ...endsAt(1) }),
      report({ id: A, ...endsAt(3) }),
      report({ id: B, ...endsAt(2) }),
    ]);
    assertEquals((await end(store, NOW + 10, 2)).count, 2);
    assertEquals((await end(store, NOW + 10, 2)).count, 1);
    const ended = (await events(store)).filter((text) => text.includes("ended"));
    assertEquals(ended.map((text) => text.split(" ")[1]), ["c", "b", "a"]);
  },

  "ended episodes and processes that report no more are removed after a day": async ({ store }) => {
    await take(store, [report({ id: A }), report({ id: B, endsAt: NOW + 5 * DAY })], {
      reporter: "r",
      number: 1,
    });
    await end(store, NOW + 60_001);
    const remove = (now: number) => store.write(removeFinished, { before: NOW - DAY, now, max: 500 });
    assertEquals(await remove(NOW + DAY), 0);
    // The process and the first episode; the second one has not ended.
    assertEquals(await remove(NOW + DAY + 60_001), 2);
    assertEquals((await end(store, NOW + 6 * DAY)).count, 1);
    await take(store, [report({ id: A })], { reporter: "r", number: 1 });
    assertEquals((await events(store)).filter((text) => text === "ratelimit.over_limit a").length, 2);
  },
};

function withSubscriber(cases: StoreCases): StoreCases {
  return Object.fromEntries(
    Object.entries(cases).map(([name, run]) => [name, async (bed) => {
      await addEndpoint(bed.store, { events: ["ratelimit.*", "config.*"] });
      await run(bed);
    }]),
  );
}

/** Episodes of limits: what several processes report becomes events. */
export const LIMIT_CASES: StoreCases = {
  "an episode that several processes report is two events, with the hits of all": async (
    { store, another },
  ) => {
    const { id } = await addEndpoint(store, { events: ["ratelimit.*"] });
    await addEndpoint(store, { events: ["*"] });
    const second = await another();
    assertEquals(await take(store, [report({ hits: 2 })]), [id]);
    assertEquals(await take(second, [report({ hits: 3, startedAt: NOW + 5 })]), []);
    await take(store, [report({ hits: 4, ...LATER })]);
    assertEquals(await store.read(isEpisodeOver, NOW + 60_000), false);
    assertEquals(await end(second, NOW + 60_000), { count: 0, endpointIds: [] });
    assertEquals(await store.read(isEpisodeOver, NOW + 60_001), true);
    assertEquals(await end(second, NOW + 60_001), { count: 1, endpointIds: [id] });
    assertEquals(await end(store, NOW + 60_001), { count: 0, endpointIds: [] });
    assertEquals(await events(store), ["ratelimit.over_limit a", "ratelimit.over_limit.ended a 9"]);
    const { items } = await store.read(listDeliveries, { limit: 10 });
    assertEquals(items.map(({ endpointId }) => endpointId), [id, id]);
  },

  "events without a subscriber are not stored": async ({ store }) => {
    await addEndpoint(store, { events: ["*", "ratelimit.near_limit"] });
    await take(store, [report()], { events: [{ kind: "config.loaded", json: "{}" }] });
    assertEquals((await end(store, NOW + 60_001)).count, 1);
    assertEquals(await events(store), []);
  },
  ...withSubscriber(SUBSCRIBED_CASES),
};
