import { assertEquals, assertThrows } from "#assert";
import type { AnyHit } from "../../../../src/ratelimit/decision/counter_cache.ts";
import { InvalidRequestError } from "../../../../src/ratelimit/errors.ts";
import type { Descriptor, RateLimitRequest } from "../../../../src/ratelimit/request.ts";
import { RateLimitService } from "../../../../src/ratelimit/decision/service.ts";
import { StatsStore } from "../../../../src/stats/store.ts";
import { FailingCache } from "../../../harness/failing_cache.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";
import { PLAIN_POLICY, rulesOf, ServiceFixture } from "../../../harness/service_fixture.ts";

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

/** Requests that can never be answered, the field that is at fault, and why. */
const REFUSED: readonly [title: string, request: RateLimitRequest, field: string, message: string][] = [
  ["empty domain", { ...request(), domain: "" }, "domain", "rate limit domain must not be empty"],
  [
    "a long domain",
    { ...request(descriptor("k")), domain: "d".repeat(8_193) },
    "domain",
    "rate limit domain must not be longer than 8192 bytes",
  ],
  ["no descriptors", request(), "descriptors", "rate limit descriptor list must not be empty"],
  [
    "too many descriptors",
    request(...Array.from({ length: 1_001 }, () => descriptor("k"))),
    "descriptors",
    "rate limit descriptor list must not be longer than 1000, but has 1001",
  ],
  [
    "too many entries",
    request(descriptor("k"), { entries: Array.from({ length: 65 }, () => ({ key: "k", value: "" })) }),
    "descriptors[1].entries",
    "descriptor 1 must not have more than 64 entries, but has 65",
  ],
  [
    "override without unit",
    request(descriptor("k", { limit: { requestsPerUnit: 1, unit: undefined } })),
    "descriptors[0].limit.unit",
    "descriptor 0 must name a known unit in its limit: SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR",
  ],
  [
    "override beyond 32 bits",
    request(descriptor("k", { limit: { requestsPerUnit: 4_294_967_296, unit: "DAY" } })),
    "descriptors[0].limit.requestsPerUnit",
    "descriptor 0 must not have a limit beyond 4294967295",
  ],
  [
    "override of no unit",
    request(descriptor("k", { limit: { requestsPerUnit: 1, unit: "DAY", unitMultiplier: 0 } })),
    "descriptors[0].limit.unitMultiplier",
    "descriptor 0 must have a unit multiplier from 1 to 4294967295 in its limit",
  ],
];

for (const [title, refused, field, message] of REFUSED) {
  Deno.test(`service: refuses ${title}`, async () => {
    await using fixture = new ServiceFixture({ files: { "r.yaml": RULES } });
    const error = assertThrows(() => fixture.service.shouldRateLimit(refused));
    assertEquals(error instanceof InvalidRequestError && [error.field, error.message], [field, message]);
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
  const clock = new FakeClock();
  const options = { cache: new FailingCache([]), stats, policy: PLAIN_POLICY, clock, random: () => 0 };
  const service = new RateLimitService(options);
  const error = assertThrows(() => service.shouldRateLimit(request(descriptor("k"))));
  assertEquals([error.name, error.message], ["NoConfigurationError", "no rate limit configuration loaded"]);
  assertEquals(assertThrows(() => service.shouldRateLimit(request())).name, "InvalidRequestError");
  assertEquals(stats.service.serviceError, 2);
});

Deno.test("service: with stop-increment, keys next to one that goes over are only read", async () => {
  const cache = new FailingCache([]);
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
    "k0 other0",
    "k1 other1",
    "k0 other0",
    "k1 other1",
    "k0 other0",
    "k1 other0",
    "other0",
    "other1",
  ]);
});

Deno.test("service: the local cache answers for keys that are over, but not for a higher limit", async () => {
  const cache = new FailingCache([]);
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, cache, localCacheBytes: 10_000 });
  const ask = async (more: Partial<Descriptor> = {}) =>
    (await fixture.service.shouldRateLimit(request(descriptor("k", more)))).overallCode;
  assertEquals(await ask({ hitsAddend: 3 }), "OVER_LIMIT");
  assertEquals(await ask(), "OVER_LIMIT");
  assertEquals(await ask({ limit: { requestsPerUnit: 9, unit: "MINUTE" } }), "OK");
  assertEquals(await ask({ hitsAddend: 2, isNegativeHits: true }), "OK");
  assertEquals(await ask(), "OVER_LIMIT");
  assertEquals(cache.asked, ["k3", "k1", "k-2", "k1"]);
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
  const hits: AnyHit[] = [];
  const cache = new FailingCache([]);
  const counterOf = cache.counterOf.bind(cache);
  cache.counterOf = (hit) => {
    hits.push(hit);
    return counterOf(hit);
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
  fixture.service.setRules(rulesOf({ "r.yaml": RULES }));
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

/** Rules of so many requests a minute. */
function limits(perMinute: Readonly<Record<string, number>>): Record<string, string> {
  const rules = Object.entries(perMinute).map(([key, most]) =>
    `- {key: ${key}, rate_limit: {unit: minute, requests_per_unit: ${most}}}\n`
  );
  return { "r.yaml": `domain: d\ndescriptors:\n${rules.join("")}` };
}

Deno.test("service: a counter that is known to be over its limit is not over one that was raised to just beyond it", async () => {
  await using fixture = new ServiceFixture({ files: limits({ k: 2 }), localCacheBytes: 10_000 });
  const ask = async (hitsAddend = 1) =>
    (await fixture.service.shouldRateLimit(request(descriptor("k", { hitsAddend })))).overallCode;
  assertEquals([await ask(3), await ask()], ["OVER_LIMIT", "OVER_LIMIT"]);
  // 3 were counted: the next one is exactly the fourth of four.
  fixture.service.setRules(rulesOf(limits({ k: 4 })));
  assertEquals([await ask(), await ask()], ["OK", "OVER_LIMIT"]);
});

Deno.test("service: after a reload hits count under the names of the new rules", async () => {
  await using fixture = new ServiceFixture({ files: limits({ a: 9, b: 9 }) });
  const ask = async (key: string) => void (await fixture.service.shouldRateLimit(request(descriptor(key))));
  await ask("a");
  fixture.service.setRules(rulesOf(limits({ b: 9, c: 9 })));
  await ask("b");
  await ask("c");
  const hits = Object.keys(fixture.nonZeroStats()).filter((name) => name.endsWith("total_hits")).sort();
  assertEquals(hits, ["a", "b", "c"].map((key) => `${RULE_STATS}d.${key}.total_hits`));
});
