import { assertEquals, assertRejects } from "#assert";
import { OverLimitCache } from "../../../../src/cache/over_limit_cache.ts";
import { MemoryCache } from "../../../../src/cache/memory_cache.ts";
import { LiveCounters } from "../../../../src/ratelimit/forecast/live_counters.ts";
import type { Algorithm } from "../../../../src/ratelimit/rule_source.ts";
import type { RateLimitRequest } from "../../../../src/ratelimit/request.ts";
import type { Rules } from "../../../../src/ratelimit/rules/rules.ts";
import { RateLimitService } from "../../../../src/ratelimit/decision/service.ts";
import { StatsStore } from "../../../../src/stats/store.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";
import { PLAIN_POLICY, rulesOf } from "../../../harness/service_fixture.ts";
import { takeCounts } from "../../../harness/take.ts";

const RULES = rulesOf({
  "shop.yaml": `domain: shop
descriptors:
- key: user
  rate_limit: { unit: minute, requests_per_unit: 2, name: users }
- key: vip
  rate_limit: { unit: minute, requests_per_unit: 9, replaces: [{ name: users }] }
- key: free
  rate_limit: { unlimited: true }
- key: sliding
  rate_limit: { unit: minute, requests_per_unit: 9, algorithm: sliding_window }
- key: bucket
  rate_limit: { unit: minute, requests_per_unit: 6, algorithm: token_bucket, burst: 30 }
- key: flight
  rate_limit: { algorithm: concurrency, max_in_flight: 9, lease: 30s }
- key: named
  identifies: true
  rate_limit: { algorithm: concurrency, max_in_flight: 9, lease: 30s }
- key: bill
  rate_limit: { unit: month, requests_per_unit: 9, calendar: true, timezone: Europe/Paris }
`,
});

/** A service that decides, and a look at its counters. */
class Bed implements AsyncDisposable {
  readonly clock = new FakeClock(1_700_000_000_000);
  readonly cache = new MemoryCache({ maxKeys: 100, clock: this.clock });
  readonly fallback = new MemoryCache({ maxKeys: 100, clock: this.clock });
  readonly localCache = new OverLimitCache(10_000);
  readonly service: RateLimitService;
  readonly counters: LiveCounters;

  constructor(rules?: Rules) {
    const { clock, cache, fallback, localCache } = this;
    const shared = { clock, cache, fallback, policy: PLAIN_POLICY };
    this.service = new RateLimitService({
      ...shared,
      localCache,
      stats: new StatsStore(100),
      random: () => 0,
    });
    const forget = (keys: readonly string[]) =>
      Promise.resolve(keys.forEach((key) => localCache.forget(key)));
    if (rules !== undefined) this.service.setRules(rules);
    this.counters = new LiveCounters({ ...shared, forget, rules: () => this.service.rules });
  }

  /** The code of one decision. */
  async code(request: RateLimitRequest): Promise<string> {
    return (await this.service.shouldRateLimit(request)).overallCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cache.close();
    await this.fallback.close();
  }
}

function asking(...pairs: readonly (readonly [key: string, value: string])[]): RateLimitRequest {
  const descriptors = pairs.map(([key, value]) => ({ entries: [{ key, value }] }));
  return { domain: "shop", descriptors, hitsAddend: 1 };
}

const ANN = asking(["user", "ann"]);
const STATE = {
  limited: true,
  rule: "shop.user",
  cacheKey: "shop_user_ann_1699999980",
  limit: 2,
  unit: "MINUTE",
  windowSeconds: 60,
  resetsAt: "2023-11-14T22:14:00Z",
} as const;

Deno.test("peek shows what a counter holds, and moves nothing", async () => {
  await using bed = new Bed(RULES);
  assertEquals(await bed.counters.peek(ANN), [{ ...STATE, used: 0, remaining: 2 }]);
  for (let call = 0; call < 3; call++) await bed.code(ANN);
  const over = { ...STATE, used: 3, remaining: 0 };
  assertEquals([await bed.counters.peek(ANN), await bed.counters.peek(ANN)], [[over], [over]]);
  assertEquals(bed.cache.size, 1);
  bed.clock.advance(60_000);
  assertEquals((await bed.counters.peek(ANN)).map((state) => state.limited && state.used), [0]);
});

Deno.test("peek says of each descriptor why nothing is counted", async () => {
  await using bed = new Bed(RULES);
  const request = asking(["free", "x"], ["user", "ann"], ["vip", "ann"], ["none", "x"]);
  const states = await bed.counters.peek({ ...request, hitsAddend: 4 });
  assertEquals(states, [
    { limited: false, reason: "unlimited", rule: "shop.free" },
    { limited: false, reason: "replaced", rule: "shop.user" },
    {
      ...STATE,
      rule: "shop.vip",
      cacheKey: "shop_vip_ann_1699999980",
      limit: 9,
      used: 0,
      remaining: 9,
    },
    { limited: false, reason: "no_rule" },
  ]);
  assertEquals(await bed.counters.peek({ ...ANN, domain: "other" }), [{
    limited: false,
    reason: "unknown_domain",
  }]);
});

Deno.test("peek looks at the counter of a limit that the request brings along", async () => {
  await using bed = new Bed(RULES);
  const limit = { requestsPerUnit: 5, unit: "MINUTE" as const };
  const request = {
    ...ANN,
    descriptors: ANN.descriptors.map((descriptor) => ({ ...descriptor, limit })),
  };
  await bed.code(request);
  const { rule: _, ...own } = STATE;
  assertEquals(await bed.counters.peek(request), [{ ...own, limit: 5, used: 1, remaining: 4 }]);
});

Deno.test("reset forgets the counters of the request alone, and what this instance knows of them", async () => {
  await using bed = new Bed(RULES);
  const both = asking(["user", "ann"], ["user", "bob"], ["user", "ann"]);
  for (let call = 0; call < 3; call++) await bed.code(both);
  await takeCounts(bed.fallback, [
    { key: STATE.cacheKey, addend: 8, windowEnd: 1_700_000_040, expiresInSeconds: 60, perSecond: false },
  ]);
  assertEquals(bed.localCache.size, 2);
  assertEquals(await bed.counters.reset(ANN), [{ ...STATE, used: 4, remaining: 0 }]);
  assertEquals([bed.cache.size, bed.fallback.size, bed.localCache.size], [1, 0, 1]);
  assertEquals([await bed.code(ANN), await bed.code(asking(["user", "bob"]))], ["OK", "OVER_LIMIT"]);
});

Deno.test("reset of what is not counted asks no cache", async () => {
  await using bed = new Bed(RULES);
  bed.cache.remove = () => Promise.reject(new Error("nothing is to be removed"));
  assertEquals(await bed.counters.reset(asking(["free", "x"])), [
    { limited: false, reason: "unlimited", rule: "shop.free" },
  ]);
});

Deno.test("the local cache keeps a key whose counter could not be removed", async () => {
  await using bed = new Bed(RULES);
  for (let call = 0; call < 3; call++) await bed.code(ANN);
  bed.cache.remove = () => Promise.reject(new Error("the cache is unavailable"));
  const error = await assertRejects(() => bed.counters.reset(ANN));
  assertEquals(error.message, "the cache is unavailable");
  assertEquals(bed.localCache.size, 1);
});

Deno.test("without rules, and for a request that is none, counters are refused as decisions are", async () => {
  await using bed = new Bed();
  for (const work of ["peek", "reset"] as const) {
    const none = await assertRejects(() => bed.counters[work](ANN));
    assertEquals(none.name, "NoConfigurationError");
    const invalid = await assertRejects(() => bed.counters[work]({ ...ANN, domain: "" }));
    assertEquals(invalid.name, "InvalidRequestError");
  }
});

Deno.test("counters of a calendar show its time zone, and the length of the current window", async () => {
  await using bed = new Bed(RULES);
  const request = asking(["bill", "ann"]);
  await bed.code(request);
  assertEquals(await bed.counters.peek(request), [{
    limited: true,
    rule: "shop.bill",
    cacheKey: "shop_bill_ann_1698793200",
    limit: 9,
    unit: "MONTH",
    windowSeconds: 30 * 86_400,
    timezone: "Europe/Paris",
    used: 1,
    remaining: 8,
    resetsAt: "2023-11-30T23:00:00Z",
  }]);
});

Deno.test("a counter of named hits is shown and reset by any name", async () => {
  await using bed = new Bed(RULES);
  await bed.code({ ...asking(["named", "ann"]), hitsAddend: 4 });
  bed.clock.advance(10_000);
  await bed.code(asking(["named", "bob"]));
  const counter = {
    limited: true,
    rule: "shop.named",
    algorithm: "concurrency",
    cacheKey: "shop_named_leases30",
    limit: 9,
    unit: undefined,
    windowSeconds: 30,
  } as const;
  const expected = [{ ...counter, used: 5, remaining: 4, resetsAt: "2023-11-14T22:14:00Z" }];
  assertEquals(await bed.counters.peek(asking(["named", "any"])), expected);
  assertEquals(await bed.counters.reset(asking(["named", "any"])), expected);
  const free = { used: 0, remaining: 9, resetsAt: "2023-11-14T22:13:30Z" };
  assertEquals(await bed.counters.peek(asking(["named", "ann"])), [{ ...counter, ...free }]);
});

Deno.test("counters of other algorithms are shown and reset without taking from them", async () => {
  await using bed = new Bed(RULES);
  const request = asking(["sliding", "ann"], ["bucket", "ann"], ["flight", "ann"]);
  await bed.code({ ...request, hitsAddend: 4 });
  bed.clock.advance(15_000);
  const counter = (rule: string, algorithm: Algorithm, cacheKey: string, limit: number) => {
    return { limited: true, rule, algorithm, cacheKey, limit, unit: "MINUTE", windowSeconds: 60 } as const;
  };
  const sliding = counter("shop.sliding", "sliding_window", "shop_sliding_ann_sliding60", 9);
  const bucket = { ...counter("shop.bucket", "token_bucket", "shop_bucket_ann_bucket60", 6), burst: 30 };
  const flight = {
    ...counter("shop.flight", "concurrency", "shop_flight_ann_lease30", 9),
    unit: undefined,
    windowSeconds: 30,
  };
  const expected = [
    { ...sliding, used: 4, remaining: 5, resetsAt: "2023-11-14T22:14:23Z" },
    { ...bucket, used: 3, remaining: 27, resetsAt: "2023-11-14T22:14:01Z" },
    { ...flight, used: 4, remaining: 5, resetsAt: "2023-11-14T22:13:51Z" },
  ];
  assertEquals(await bed.counters.peek(request), expected);
  assertEquals(await bed.counters.usage(bed.counters.explain(request).plan), [
    ...[{ used: 4, remaining: 5 }, { used: 3, remaining: 27 }, { used: 4, remaining: 5 }],
  ]);
  assertEquals(await bed.counters.reset(request), expected);
  const free = { used: 0, resetsAt: "2023-11-14T22:13:35Z" };
  assertEquals(await bed.counters.peek(request), [
    { ...sliding, ...free, remaining: 9 },
    { ...bucket, ...free, remaining: 30 },
    { ...flight, ...free, remaining: 9 },
  ]);
});
