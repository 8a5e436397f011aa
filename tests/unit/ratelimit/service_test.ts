import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import type { CounterCache, Hit } from "../../../src/ratelimit/counter_cache.ts";
import { CacheError } from "../../../src/ratelimit/errors.ts";
import type { Descriptor, RateLimitRequest } from "../../../src/ratelimit/request.ts";
import { RateLimitService } from "../../../src/ratelimit/service.ts";
import { StatsStore } from "../../../src/stats/store.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { PLAIN_POLICY, rulesOf, ServiceFixture } from "../../harness/service_fixture.ts";

const RULES = `
domain: d
descriptors:
- key: k
  rate_limit: {unit: minute, requests_per_unit: 2}
- key: other
  rate_limit: {unit: minute, requests_per_unit: 10}
- key: detail
  detailed_metric: true
  rate_limit: {unit: minute, requests_per_unit: 10}
`;
const RULE_STATS = "ratelimit.service.rate_limit.";

function request(...descriptors: Descriptor[]): RateLimitRequest {
  return { domain: "d", hitsAddend: 0, descriptors };
}

function descriptor(key: string, more: Partial<Descriptor> = {}): Descriptor {
  return { entries: [{ key, value: "v" }], ...more };
}

/** Requests that can never be answered, and why. */
const REFUSED: readonly [title: string, request: RateLimitRequest, message: string][] = [
  ["empty domain", { domain: "", hitsAddend: 0, descriptors: [] }, "rate limit domain must not be empty"],
  ["no descriptors", request(), "rate limit descriptor list must not be empty"],
  [
    "too many descriptors",
    request(...Array.from({ length: 1_001 }, () => descriptor("k"))),
    "rate limit descriptor list must not be longer than 1000, but has 1001",
  ],
  [
    "too many entries",
    request(descriptor("k"), { entries: Array.from({ length: 65 }, () => ({ key: "k", value: "" })) }),
    "descriptor 1 must not have more than 64 entries, but has 65",
  ],
  [
    "override without unit",
    request(descriptor("k", { limit: { requestsPerUnit: 1, unit: undefined } })),
    "descriptor 0 must name a known unit in its limit: SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR",
  ],
];

for (const [title, refused, message] of REFUSED) {
  Deno.test(`service: refuses ${title}`, async () => {
    await using fixture = new ServiceFixture({ files: { "r.yaml": RULES } });
    const error = assertThrows(() => fixture.service.shouldRateLimit(refused));
    assertEquals([error.name, error.message], ["InvalidRequestError", message]);
    assertEquals(fixture.nonZeroStats(), { "ratelimit.service.call.should_rate_limit.service_error": 1 });
  });
}

Deno.test("service: decides what clients choose, however large, in that descriptor alone", async () => {
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES } });
  const longest = { entries: [{ key: "k", value: "é".repeat(1_000_000) }] };
  const widest = { entries: Array.from({ length: 64 }, () => ({ key: "k", value: "" })) };
  const most = Array.from({ length: 997 }, () => descriptor("none"));
  const answer = await fixture.service.shouldRateLimit(
    request(longest, widest, descriptor("k", { hitsAddend: 2 ** 53 + 2 }), ...most),
  );
  assertEquals(answer.statuses.length, 1_000);
  assertEquals(answer.statuses.slice(0, 3).map(({ code }) => code), ["OK", "OK", "OVER_LIMIT"]);
});

Deno.test("service: a value has one counter, however large a value is that the counter does not depend on", async () => {
  const rules = `
domain: d
descriptors:
- key: account
  descriptors:
  - key: agent
    value: "*"
    share_threshold: true
    rate_limit: {unit: minute, requests_per_unit: 1}
`;
  await using fixture = new ServiceFixture({ files: { "r.yaml": rules } });
  const codes = [];
  for (const agent of ["", "a".repeat(8_000), "a".repeat(9_000)]) {
    const entries = [{ key: "account", value: "b".repeat(300) }, { key: "agent", value: agent }];
    codes.push((await fixture.service.shouldRateLimit(request({ entries }))).overallCode);
  }
  assertEquals(codes, ["OK", "OVER_LIMIT", "OVER_LIMIT"]);
});

Deno.test("service: without rules there is no answer, and the request is checked first", () => {
  const stats = new StatsStore(10);
  const cache: CounterCache = {
    add: () => [],
    read: () => [],
    remove: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  const options = { cache, stats, policy: PLAIN_POLICY, clock: new FakeClock(), random: () => 0 };
  const service = new RateLimitService(options);
  const error = assertThrows(() => service.shouldRateLimit(request(descriptor("k"))));
  assertEquals([error.name, error.message], ["NoConfigurationError", "no rate limit configuration loaded"]);
  assertEquals(assertThrows(() => service.shouldRateLimit(request())).name, "InvalidRequestError");
  assertEquals(stats.service.serviceError, 2);
});

/** A cache that notes what it is asked, answers what it is told to, and may fail. */
class ScriptedCache implements CounterCache {
  readonly asked: string[] = [];
  readonly counts = new Map<string, number>();
  failure: Error | undefined;

  async add(hits: readonly Hit[]): Promise<number[]> {
    this.asked.push(`add ${hits.map(({ key, addend }) => `${key.slice(2, 5)}${addend}`).join(" ")}`);
    await Promise.resolve();
    if (this.failure !== undefined) throw this.failure;
    return hits.map(({ key, addend }) => {
      const count = (this.counts.get(key) ?? 0) + addend;
      this.counts.set(key, count);
      return count;
    });
  }
  read(hits: readonly Hit[]): Promise<number[]> {
    this.asked.push(`read ${hits.map(({ key }) => key.slice(2, 5)).join(" ")}`);
    return Promise.resolve(hits.map(({ key }) => this.counts.get(key) ?? 0));
  }
  remove(): Promise<void> {
    return Promise.resolve();
  }
  close(): Promise<void> {
    return Promise.resolve();
  }
}

Deno.test("service: a cache that fails is counted, and the hits are seen all the same", async () => {
  const cache = new ScriptedCache();
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, cache });
  cache.failure = new CacheError("kv", "gone");
  const error = await assertRejects(async () =>
    await fixture.service.shouldRateLimit(request(descriptor("k")))
  );
  assertEquals([error.name, error.message], ["CacheError", "gone"]);
  assertEquals(fixture.nonZeroStats(), {
    "ratelimit.service.cache_failure.error": 1,
    "ratelimit.service.call.should_rate_limit.kv_error": 1,
    [`${RULE_STATS}d.k.total_hits`]: 1,
  });
});

Deno.test("service: with stop-increment, keys beside one that goes over are only read", async () => {
  const cache = new ScriptedCache();
  const policy = { stopIncrementWhenOverLimit: true };
  await using fixture = new ServiceFixture({
    files: { "r.yaml": RULES },
    cache,
    policy,
    localCacheBytes: 10_000,
  });
  const both = request(descriptor("k"), descriptor("other"));
  for (let call = 0; call < 4; call++) await fixture.service.shouldRateLimit(both);
  await fixture.service.shouldRateLimit(request(descriptor("other")));
  assertEquals(cache.asked, [
    "read k_v oth",
    "add k_v1 oth1",
    "read k_v oth",
    "add k_v1 oth1",
    "read k_v oth",
    "add k_v1 oth0",
    "add oth0",
    "add oth1",
  ]);
});

Deno.test("service: the local cache answers for keys that are over, but not for a higher limit", async () => {
  const cache = new ScriptedCache();
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, cache, localCacheBytes: 10_000 });
  const ask = async (more: Partial<Descriptor> = {}) =>
    (await fixture.service.shouldRateLimit(request(descriptor("k", more)))).overallCode;
  assertEquals(await ask({ hitsAddend: 3 }), "OVER_LIMIT");
  assertEquals(await ask(), "OVER_LIMIT");
  assertEquals(await ask({ limit: { requestsPerUnit: 9, unit: "MINUTE" } }), "OK");
  assertEquals(await ask({ hitsAddend: 2, isNegativeHits: true }), "OK");
  assertEquals(await ask(), "OVER_LIMIT");
  assertEquals(cache.asked, ["add k_v3", "add k_v1", "add k_v-2", "add k_v1"]);
  assertEquals(fixture.nonZeroStats(), {
    [`${RULE_STATS}d.k.total_hits`]: 5,
    [`${RULE_STATS}d.k.over_limit`]: 3,
    [`${RULE_STATS}d.k.near_limit`]: 1,
    [`${RULE_STATS}d.k.over_limit_with_local_cache`]: 1,
    [`${RULE_STATS}d.k.returned_hits`]: 2,
    [`${RULE_STATS}d.k_v.total_hits`]: 1,
    [`${RULE_STATS}d.k_v.within_limit`]: 1,
  });
});

Deno.test("service: jitter lengthens what a shared cache keeps, not the window", async () => {
  const hits: Hit[] = [];
  const cache = new ScriptedCache();
  const add = cache.add.bind(cache);
  cache.add = (asked) => {
    hits.push(...asked);
    return add(asked);
  };
  const policy = { expirationJitterMaxSeconds: 300, cacheKeyPrefix: "p:" };
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, cache, policy });
  await fixture.service.shouldRateLimit(request(descriptor("k")));
  assertEquals(hits, [
    {
      key: "p:d_k_v_1699999980",
      addend: 1,
      windowEnd: 1_700_000_040,
      expiresInSeconds: 210,
      perSecond: false,
    },
  ]);
});

Deno.test("service: rules are replaced whole, counters and statistics go on", async () => {
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES } });
  const ask = async () => (await fixture.service.shouldRateLimit(request(descriptor("detail")))).statuses[0];
  assertEquals((await ask())?.limitRemaining, 9);
  const before = fixture.service.rules;
  fixture.service.setRules(
    before ?? { domains: new Map(), domainCount: 0, limits: [], metricKeys: new Map() },
  );
  assertEquals((await ask())?.limitRemaining, 8);
  assertEquals(fixture.nonZeroStats(), {
    [`${RULE_STATS}d.detail_v.total_hits`]: 2,
    [`${RULE_STATS}d.detail_v.within_limit`]: 2,
  });
});

Deno.test("service: metadata of rules is copied, never merged into the rules", async () => {
  const files = {
    "r.yaml": "domain: d\ndescriptors:\n" +
      "- {key: a, rate_limit: {unit: day, requests_per_unit: 9}, metadata: {s: {n: 1, __proto__: {x: 1}}}}\n" +
      "- {key: b, rate_limit: {unit: day, requests_per_unit: 9}, metadata: {s: {n: 2, z: 3}, t: [1]}}\n",
  };
  await using fixture = new ServiceFixture({ files, policy: { dynamicMetadata: true } });
  const ask = async (...keys: string[]) => {
    const answer = await fixture.service.shouldRateLimit(request(...keys.map((key) => descriptor(key))));
    return JSON.stringify(answer.dynamicMetadata?.["metadata"]);
  };
  assertEquals(await ask("a", "b"), '{"s":{"n":1,"__proto__":{"x":1},"z":3},"t":[1]}');
  assertEquals(await ask("a"), '{"s":{"n":1,"__proto__":{"x":1}}}');
  assertEquals(await ask("b", "a"), '{"s":{"n":2,"z":3,"__proto__":{"x":1}},"t":[1]}');
});

/** A rule of so many requests a minute. */
const limitedKey = (key: string, most: number) =>
  `- {key: ${key}, rate_limit: {unit: minute, requests_per_unit: ${most}}}\n`;
const filesWith = (...lines: readonly string[]) => ({
  "r.yaml": `domain: d\ndescriptors:\n${lines.join("")}`,
});
const askedFor = (key: string, hitsAddend = 1) => ({
  domain: "d",
  hitsAddend: 0,
  descriptors: [{ entries: [{ key, value: "v" }], hitsAddend }],
});

Deno.test("a counter that is known to be over its limit is not over one that was raised to just beyond it", async () => {
  await using fixture = new ServiceFixture({ files: filesWith(limitedKey("k", 2)), localCacheBytes: 10_000 });
  const ask = async (hits?: number) =>
    (await fixture.service.shouldRateLimit(askedFor("k", hits))).overallCode;
  assertEquals([await ask(3), await ask()], ["OVER_LIMIT", "OVER_LIMIT"]);
  // 3 were counted: the next one is exactly the fourth of four.
  fixture.service.setRules(rulesOf(filesWith(limitedKey("k", 4))));
  assertEquals([await ask(), await ask()], ["OK", "OVER_LIMIT"]);
});

Deno.test("after a reload hits count under the names of the new rules", async () => {
  await using fixture = new ServiceFixture({ files: filesWith(limitedKey("a", 9), limitedKey("b", 9)) });
  const ask = async (key: string) => void (await fixture.service.shouldRateLimit(askedFor(key)));
  await ask("a");
  fixture.service.setRules(rulesOf(filesWith(limitedKey("b", 9), limitedKey("c", 9))));
  await ask("b");
  await ask("c");
  const hits = Object.keys(fixture.nonZeroStats()).filter((name) => name.endsWith("total_hits")).sort();
  const prefix = "ratelimit.service.rate_limit.d.";
  assertEquals(hits, ["a", "b", "c"].map((key) => `${prefix}${key}.total_hits`));
});
