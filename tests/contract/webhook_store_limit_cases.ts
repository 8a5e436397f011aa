import { assertEquals } from "#assert";
import { DAY, newId, NOW, type StoreCases, type TestStore } from "./webhook_store_bed.ts";
import { listDeliveries } from "../../src/webhooks/store/operations/deliveries.ts";
import { listEvents } from "../../src/webhooks/store/operations/events.ts";
import {
  endEpisodes,
  EPISODE_GRACE_MS,
  type EpisodeReport,
  isEpisodeOver,
  type ReportOptions,
  takeReports,
} from "../../src/webhooks/store/operations/limit_episodes.ts";
import { LimitEpisodes, REPORT_MS } from "../../src/ratelimit/decision/limit_episodes.ts";
import { removeFinished } from "../../src/webhooks/store/operations/retention.ts";

/** Of an episode that lasts a minute. */
function report(part: Partial<EpisodeReport> = {}): EpisodeReport {
  return {
    id: "a".repeat(64),
    event: "over_limit",
    hits: 1,
    startedAt: NOW,
    endsAt: NOW + 60_000,
    first: { facts: `{"domain":"d"}`, freeAt: NOW + 60_000 },
    ...part,
  };
}

const LATER: Pick<EpisodeReport, "first"> = { first: undefined };

let number = 0;

/** Writes reports as a process does, by default one that has not reported before. */
function take(
  store: TestStore,
  reports: readonly EpisodeReport[],
  part: Partial<ReportOptions> = {},
): Promise<readonly string[]> {
  const options = { reporter: newId(), number: ++number, events: [], now: NOW, newId };
  return store.write(takeReports, { ...options, reports, ...part });
}

/** Ends what ended before a time, after the grace. */
function end(store: TestStore, before: number, max = 10) {
  return store.write(endEpisodes, { max, now: before + EPISODE_GRACE_MS, newId });
}

/** True if there is anything to end. */
function isOver(store: TestStore, before: number): Promise<boolean> {
  return store.read(isEpisodeOver, before + EPISODE_GRACE_MS);
}

/** The bodies of the events, newest first. */
async function bodies(store: TestStore) {
  const { items } = await store.read(listEvents, { limit: 100 });
  return await Promise.all(items.map(({ id }) => store.bodyOf(id)));
}

/** The events, oldest first, each with its data apart from the facts. */
async function events(store: TestStore): Promise<readonly string[]> {
  return (await bodies(store)).toReversed().map(({ event, data: { refusedHits = "", episode = "" } }) =>
    `${event} ${String(episode).slice(0, 1)} ${refusedHits}`.trim()
  );
}

/** The time for which keys are refused, in seconds. */
const REFUSED_S = 120;
/** At which seconds each of two instances refuses a key that is free again within 10 s. */
const REFUSALS: Readonly<Record<string, readonly ((second: number) => boolean)[]>> = {
  "1: both without a pause": [() => true, () => true],
  "2: the second one begins when the first report has ended": [() => true, (second) => second >= 10],
  "3: in turn, each for 15 s": [(second) => second % 30 < 15, (second) => second % 30 >= 15],
  "4: each every 9 s": [(second) => second % 9 === 0, (second) => second % 9 === 4],
  "5: one every 5 s, the other every 25 s": [(second) => second % 5 === 0, (second) => second % 25 === 20],
};

/** An instance that reports a key without windows to its store. */
class ReportingInstance {
  readonly #store: TestStore;
  readonly #id: string;
  readonly #reporter = newId();
  readonly #episodes = new LimitEpisodes({ maxPerSecond: 10, graceMs: 0 });
  #batches = 0;
  refused = 0;

  constructor(store: TestStore, id: string) {
    this.#store = store;
    this.#id = id;
  }

  refuse(now: number): void {
    this.refused++;
    const facts = { domain: "d", entries: [], rule: { at: "", metricKey: "" }, limit: {}, isShadow: false };
    const times = { startedAt: now, endsAt: now + 10_000 };
    const report = {
      event: "over_limit",
      key: "k",
      hits: 1,
      ...times,
      facts: { ...facts, freeAt: now },
    } as const;
    this.#episodes.merge([report], now);
  }

  async report(now: number): Promise<void> {
    const reports = this.#episodes.take(now, 10).map(({ facts, event, hits, startedAt, endsAt }) => {
      const first = facts === undefined ? undefined : { facts: `{"domain":"d"}`, freeAt: endsAt };
      return { id: this.#id, event, hits, startedAt, endsAt, first };
    });
    if (reports.length === 0) return;
    await take(this.#store, reports, { reporter: this.#reporter, number: ++this.#batches, now });
  }
}

const [A, B, C] = ["a".repeat(64), "b".repeat(64), "c".repeat(64)] as const;

/** Cases of stores with an endpoint that subscribes to the events. */
const SUBSCRIBED_CASES: StoreCases = {
  "the data of the events of an episode": async (store) => {
    await take(store, [report({ hits: 2 })]);
    await end(store, NOW + 60_001);
    const [at, endsAt] = ["2023-11-14T22:13:20.000Z", "2023-11-14T22:14:20.000Z"];
    const shared = { domain: "d", episode: `${"a".repeat(16)}-${NOW}` };
    assertEquals((await bodies(store)).map(({ data }) => data), [
      { ...shared, startedAt: at, endedAt: endsAt, refusedHits: 2 },
      { ...shared, at, freeAt: endsAt },
    ]);
  },

  "processes that report the same episodes concurrently write each event once": async (store) => {
    const stores = [store, await store.another(), await store.another()];
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

  "a batch that is written again changes nothing": async (store) => {
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

  "late reports of an ended episode change nothing": async (store) => {
    await take(store, [report()]);
    await end(store, NOW + 60_001);
    const late = { now: NOW + 90_000 };
    await take(store, [report({ hits: 5, endsAt: NOW + 90_000, ...LATER })], late);
    await take(store, [report({ hits: 5, startedAt: NOW + 59_999, endsAt: NOW + 90_000 })], late);
    assertEquals(await end(store, NOW + 2 * DAY), { count: 0, endpointIds: [] });
    const ended = ["ratelimit.over_limit a", "ratelimit.over_limit.ended a 1"];
    assertEquals(await events(store), ended);
    const next = { startedAt: NOW + 60_000 + EPISODE_GRACE_MS, endsAt: NOW + 120_000 };
    await take(store, [report(next)]);
    assertEquals(await events(store), [...ended, "ratelimit.over_limit a"]);
  },

  "an episode that goes on after its end was reported, as after an outage of the store, begins again": async (
    store,
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

  "hits without a first report are discarded": async (store) => {
    await take(store, [report(LATER)]);
    assertEquals(await events(store), []);
    assertEquals(await isOver(store, NOW + DAY), false);
  },

  "a key without windows has one episode after the other": async (store) => {
    await take(store, [report({ hits: 1, endsAt: NOW + 10_000 })]);
    // It goes on, as another process reports.
    await take(store, [report({ hits: 2, startedAt: NOW + 9_000, endsAt: NOW + 19_000 })]);
    await take(store, [report({ hits: 4, endsAt: NOW + 12_000, ...LATER })]);
    assertEquals(await end(store, NOW + 19_000), { count: 0, endpointIds: [] });
    // The end of the first was not reported yet.
    const next = { startedAt: NOW + 19_000 + EPISODE_GRACE_MS, endsAt: NOW + 49_000 };
    await take(store, [report({ hits: 8, ...next }), report({ hits: 16, ...next, ...LATER })]);
    await end(store, NOW + 49_001);
    // And after that was reported.
    await take(store, [report({ hits: 32, startedAt: NOW + 70_000, endsAt: NOW + 80_000 })]);
    await end(store, NOW + 80_001);
    assertEquals(await events(store), [
      "ratelimit.over_limit a",
      "ratelimit.over_limit.ended a 7",
      "ratelimit.over_limit a",
      "ratelimit.over_limit.ended a 24",
      "ratelimit.over_limit a",
      "ratelimit.over_limit.ended a 32",
    ]);
  },

  "a key that two instances refuse without a pause has one episode": async (store) => {
    assertEquals(EPISODE_GRACE_MS > REPORT_MS, true);

    const stores = [store, await store.another()];
    for (const [name, secondsOf] of Object.entries(REFUSALS)) {
      const instances = stores.map((one) => new ReportingInstance(one, name.slice(0, 1).repeat(64)));
      const seen = (await events(store)).length;
      for (let second = 0; second <= REFUSED_S; second++) {
        const now = NOW + second * 1_000;
        for (const [place, instance] of instances.entries()) {
          if (secondsOf[place]?.(second)) instance.refuse(now);
        }
        // The report of the first one is the later one.
        for (const instance of instances.toReversed()) await instance.report(now + 250);
        await store.write(endEpisodes, { now, max: 10, newId });
      }
      for (const instance of instances) await instance.report(NOW + REFUSED_S * 1_000 + 60_000);
      await end(store, NOW + REFUSED_S * 1_000 + 60_000);
      const refused = instances.reduce((sum, { refused }) => sum + refused, 0);
      const episode = name.slice(0, 1);
      const expected = [
        `ratelimit.over_limit ${episode}`,
        `ratelimit.over_limit.ended ${episode} ${refused}`,
      ];
      assertEquals((await events(store)).slice(seen), expected, name);
    }
  },

  "keys near a limit have one event in an episode, and none at its end": async (store) => {
    const near = { event: "near_limit" } as const;
    await take(store, [report(near)]);
    await take(store, [report({ ...near, startedAt: NOW + 1 })]);
    assertEquals((await end(store, NOW + 60_001)).count, 1);
    await take(store, [report({ ...near, startedAt: NOW + 80_000, endsAt: NOW + 120_000 })]);
    assertEquals(await events(store), ["ratelimit.near_limit a", "ratelimit.near_limit a"]);
  },

  "ends are reported in portions, the earliest first": async (store) => {
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

  "ended episodes and processes that report no more are removed after a day": async (store) => {
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
    Object.entries(cases).map(([name, run]) => [name, async (store) => {
      await store.addEndpoint({ events: ["ratelimit.*", "config.*"] });
      await run(store);
    }]),
  );
}

/** Episodes of limits: what several processes report becomes events. */
export const LIMIT_CASES: StoreCases = {
  "an episode that several processes report is two events, with the hits of all": async (store) => {
    const { id } = await store.addEndpoint({ events: ["ratelimit.*"] });
    await store.addEndpoint({ events: ["*"] });
    const second = await store.another();
    assertEquals(await take(store, [report({ hits: 2 })]), [id]);
    assertEquals(await take(second, [report({ hits: 3, startedAt: NOW + 5 })]), []);
    await take(store, [report({ hits: 4, ...LATER })]);
    assertEquals(await isOver(store, NOW + 60_000), false);
    assertEquals(await end(second, NOW + 60_000), { count: 0, endpointIds: [] });
    assertEquals(await isOver(store, NOW + 60_001), true);
    assertEquals(await end(second, NOW + 60_001), { count: 1, endpointIds: [id] });
    assertEquals(await end(store, NOW + 60_001), { count: 0, endpointIds: [] });
    assertEquals(await events(store), ["ratelimit.over_limit a", "ratelimit.over_limit.ended a 9"]);
    const { items } = await store.read(listDeliveries, { limit: 10 });
    assertEquals(items.map(({ endpointId }) => endpointId), [id, id]);
  },

  "events without a subscriber are not stored": async (store) => {
    await store.addEndpoint({ events: ["*", "ratelimit.near_limit"] });
    await take(store, [report()], { events: [{ kind: "config.loaded", json: "{}" }] });
    assertEquals((await end(store, NOW + 60_001)).count, 1);
    assertEquals(await events(store), []);
  },
  ...withSubscriber(SUBSCRIBED_CASES),
};
