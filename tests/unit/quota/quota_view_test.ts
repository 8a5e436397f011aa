import { assertEquals } from "#assert";
import { QuotaHub, type QuotaHubOptions } from "../../../src/quota/quota_hub.ts";
import type { QuotaShares } from "../../../src/quota/quota_shares.ts";
import { mergedViews, type QuotaFilter, type ShownBucket } from "../../../src/quota/quota_view.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { QuotaEnvoy } from "../../harness/quota_envoy.ts";
import { hubOptions } from "../../harness/quota_history.ts";

const RULES = `- {key: k, rate_limit: {unit: second, requests_per_unit: 100}}
- {key: free, rate_limit: {unlimited: true}}
- {key: none, rate_limit: {unit: second, requests_per_unit: 0}}
- {key: shadow, shadow_mode: true, rate_limit: {unit: second, requests_per_unit: 10}}
- {key: flight, on_cache_failure: deny, rate_limit: {algorithm: concurrency, max_in_flight: 5, lease: 1m}}
- {key: open, on_cache_failure: allow, rate_limit: {unit: second, requests_per_unit: 100}}
- {key: shut, on_cache_failure: deny, rate_limit: {unit: second, requests_per_unit: 100}}
`;
const DOWN: QuotaShares = {
  exchange: () => Promise.reject(new Error("down")),
  leave: () => Promise.resolve(),
};

class Bed {
  readonly clock = new FakeClock();
  readonly hub: QuotaHub;

  constructor(options: Partial<QuotaHubOptions> = {}, settledMs = 6_000) {
    this.hub = new QuotaHub({ ...hubOptions(this.clock, RULES), ...options });
    this.clock.advance(settledMs);
  }

  /** A client with buckets of one pair, by its requests per second. */
  envoy(name: string, demands: Readonly<Record<string, number>>): QuotaEnvoy {
    const envoy = new QuotaEnvoy({ clock: this.clock, name, domain: "d", delay: () => 0 });
    envoy.connect(this.hub);
    for (const [pair, demand] of Object.entries(demands)) {
      const [key = "", value = ""] = pair.split("=");
      envoy.demand(pair, [{ key, value }], demand);
    }
    return envoy;
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      this.clock.advance(Math.min(100, left));
      for (let turn = 0; turn < 12; turn++) await Promise.resolve();
    }
  }

  async shown(filter: QuotaFilter = {}): Promise<readonly ShownBucket[]> {
    return (await this.hub.snapshot(filter)).quotas;
  }

  /** The reasons of each client, by the name of the bucket. */
  async whys(): Promise<Readonly<Record<string, readonly string[]>>> {
    const shown = await this.shown();
    return Object.fromEntries(
      shown.map((one) => [nameOf(one), one.clients.map(({ name, why }) => `${name}: ${why}`)]),
    );
  }
}

function nameOf({ bucket }: ShownBucket): string {
  return bucket.map(({ key, value }) => `${key}=${value}`).join(",");
}

Deno.test("quota view: each client has the reason for what happens to its requests", async () => {
  const bed = new Bed();
  bed.envoy("e", { "k=1": 300, "k=2": 10, "free=1": 1, "none=1": 1, "shadow=1": 50, "flight=1": 1 });
  await bed.pass(11_000);
  assertEquals(await bed.whys(), {
    "none=1": ["e: all requests are refused: the limit is 0"],
    "flight=1": [
      "e: all requests are refused: a limit of requests in flight cannot be a quota, and on_cache_failure decides",
    ],
    "k=1": ["e: requests above its share are refused"],
    "k=2": ["e: within its share"],
    "free=1": ["e: all requests pass: there is no limit"],
    "shadow=1": ["e: all requests pass: shadow mode"],
  });
});

Deno.test("quota view: a client that joins waits, and one that has gone keeps what may be in force", async () => {
  const bed = new Bed();
  const one = bed.envoy("one", { "k=1": 300 });
  await bed.pass(6_000);
  one.silence(60_000);
  one.disconnect();
  bed.envoy("two", { "k=1": 300 });
  await bed.pass(1_000);
  const [shown] = await bed.shown();
  assertEquals(
    [
      shown?.inForce,
      shown?.clients.map(({ isConnected, share, inForce, why }) => [isConnected, share, inForce, why]),
    ],
    [100, [
      [false, 100, 100, "requests above its share are refused"],
      [true, 0, 0, "requests are refused: others may still use the whole limit"],
    ]],
  );
});

Deno.test("quota view: a failing cache, and the start of the service, are the reason", async () => {
  const failing = new Bed({ shares: DOWN });
  failing.envoy("e", { "k=1": 1, "open=1": 1, "shut=1": 1 });
  await failing.pass(6_000);
  assertEquals(await failing.whys(), {
    "k=1": ["e: no quota in force, because the cache fails: its own configuration decides"],
    "open=1": ["e: all requests pass: the cache fails, and on_cache_failure decides"],
    "shut=1": ["e: all requests are refused: the cache fails, and on_cache_failure decides"],
  });
  const starting = new Bed({}, 0);
  starting.envoy("e", { "k=1": 1 });
  await starting.pass(1_000);
  assertEquals(await starting.whys(), {
    "k=1": ["e: no quota yet: after its start, the service waits for reports of clients that may have one"],
  });
});

Deno.test("quota view: buckets with the most demand for their limit come first", async () => {
  const bed = new Bed();
  const demands = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`k=${index}`, 5 + index]));
  bed.envoy("e", { ...demands, "none=1": 1 });
  await bed.pass(11_000);
  assertEquals((await bed.shown({ limit: 3 })).map(nameOf), ["none=1", "k=19", "k=18"]);
  assertEquals((await bed.shown({ text: "K=1", limit: 2 })).map(nameOf), ["k=19", "k=18"]);
  assertEquals((await bed.shown({ text: "D.NONE" })).map(nameOf), ["none=1"]);
  assertEquals((await bed.hub.snapshot({ text: "=1", limit: 1 })).buckets, 12);
});

Deno.test("quota view: a bucket of several hubs has the clients of all of them", async () => {
  const [one, two] = [new Bed(), new Bed()];
  one.envoy("one", { "k=1": 300, "k=2": 10 });
  two.envoy("two", { "k=1": 60, "free=1": 1 });
  for (const bed of [one, two]) await bed.pass(6_000);
  const views = [await one.hub.snapshot({}), await two.hub.snapshot({})];
  const { buckets, quotas } = mergedViews(views);
  assertEquals(
    [
      buckets,
      quotas.map((shown) => [
        nameOf(shown),
        shown.clientCount,
        Math.round(shown.demand),
        shown.inForce,
        shown.clients.map(({ name }) => name),
      ]),
    ],
    [3, [
      ["k=1", 2, 360, 200, ["one", "two"]],
      ["k=2", 1, 10, 100, ["one"]],
      ["free=1", 1, 1, undefined, ["two"]],
    ]],
  );
  assertEquals(mergedViews(views, 1), { buckets: 3, quotas: quotas.slice(0, 1) });
});
