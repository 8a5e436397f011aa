import { assertEquals } from "#assert";
import type { DescriptorStatus } from "../../../src/ratelimit/decision.ts";
import type { AnyHit, Counter } from "../../../src/ratelimit/decision/counter_cache.ts";
import { MemoryCache } from "../../../src/cache/memory_cache.ts";
import type { Descriptor } from "../../../src/ratelimit/request.ts";
import { FailingCache } from "../../harness/failing_cache.ts";
import type { FakeClock } from "../../harness/fake_clock.ts";
import { rulesOf, ServiceFixture, type ServiceFixtureOptions } from "../../harness/service_fixture.ts";

const SLIDING = "rate_limit: {unit: minute, requests_per_unit: 3, algorithm: sliding_window";
const RULES = `
domain: d
descriptors:
- {key: sliding, ${SLIDING}}}
- {key: shadow, shadow_mode: true, ${SLIDING}}}
- {key: quota, quota_mode: true, ${SLIDING}}}
- {key: named, ${SLIDING}, name: inner}}
- {key: outer, ${SLIDING}, name: outer, replaces: [{name: inner}]}}
- {key: metadata, metadata: {plan: free}, ${SLIDING}}}
- {key: doubled, ${SLIDING}, unit_multiplier: 2}}
- {key: shared, value: "a*", share_threshold: true, ${SLIDING}}}
- {key: bucket, rate_limit: {unit: second, requests_per_unit: 10, algorithm: token_bucket, burst: 30}}
- {key: flight, rate_limit: {algorithm: concurrency, max_in_flight: 2, lease: 60s}}
- {key: fixed, rate_limit: {unit: minute, requests_per_unit: 3}}
- {key: local, on_cache_failure: local, ${SLIDING}}}
- {key: deny, on_cache_failure: deny, ${SLIDING}}}
- {key: error, ${SLIDING}}}
`;

type Part = Partial<Descriptor> & { readonly value?: string };

function descriptor(key: string, { value = "v", ...more }: Part = {}): Descriptor {
  return { entries: [{ key, value }], ...more };
}

function open(options: Partial<ServiceFixtureOptions> = {}): ServiceFixture {
  return new ServiceFixture({ files: { "r.yaml": RULES }, ...options });
}

/** The code of the call, and code, remaining and reset of each descriptor. */
async function decided(fixture: ServiceFixture, ...descriptors: Descriptor[]): Promise<string> {
  const decision = await fixture.service.shouldRateLimit({ domain: "d", hitsAddend: 0, descriptors });
  return [decision.overallCode, ...decision.statuses.map(statusText)].join("; ");
}

function statusText({ code, limitRemaining, secondsUntilReset }: DescriptorStatus): string {
  return `${code} ${limitRemaining} ${secondsUntilReset}`;
}

async function decidedTimes(
  fixture: ServiceFixture,
  times: number,
  key: string,
  more: Part = {},
): Promise<string[]> {
  const found: string[] = [];
  for (let call = 0; call < times; call++) found.push(await decided(fixture, descriptor(key, more)));
  return found;
}

Deno.test("sliding window: the answer shows what would pass, and when", async () => {
  // 1_700_000_000 is 5 s into a slice of 3.75 s, of which each is counted for 60 s after its end.
  await using fixture = open();
  assertEquals(await decidedTimes(fixture, 4, "sliding"), [
    ...["OK; OK 2 63", "OK; OK 1 63", "OK; OK 0 63", "OVER_LIMIT; OVER_LIMIT 0 63"],
  ]);
  fixture.clock.advance(62_000);
  assertEquals(await decided(fixture, descriptor("sliding")), "OVER_LIMIT; OVER_LIMIT 0 1");
  fixture.clock.advance(1_000);
  assertEquals(await decided(fixture, descriptor("sliding")), "OK; OK 2 64");
  assertEquals(await decided(fixture, descriptor("doubled")), "OK; OK 2 127");
});

Deno.test("token bucket: a burst passes, then the rate", async () => {
  await using fixture = open();
  assertEquals(
    await decided(fixture, descriptor("bucket", { hitsAddend: 31 })),
    "OVER_LIMIT; OVER_LIMIT 30 1",
  );
  assertEquals(await decided(fixture, descriptor("bucket", { hitsAddend: 30 })), "OK; OK 0 3");
  assertEquals(await decided(fixture, descriptor("bucket")), "OVER_LIMIT; OVER_LIMIT 0 1");
  fixture.clock.advance(100);
  assertEquals(await decidedTimes(fixture, 2, "bucket"), ["OK; OK 0 3", "OVER_LIMIT; OVER_LIMIT 0 1"]);
  const request = { domain: "d", hitsAddend: 0, descriptors: [descriptor("bucket")] };
  const { statuses: [status] } = await fixture.service.shouldRateLimit(request);
  assertEquals(status?.currentLimit, { name: "", requestsPerUnit: 10, unit: "SECOND" });
});

Deno.test("concurrency: hits are in flight until they are given back, or for their lease", async () => {
  await using fixture = open();
  const back = descriptor("flight", { isNegativeHits: true, hitsAddend: 1 });
  assertEquals(await decidedTimes(fixture, 3, "flight"), [
    ...["OK; OK 1 63", "OK; OK 0 63", "OVER_LIMIT; OVER_LIMIT 0 63"],
  ]);
  assertEquals(await decided(fixture, back), "OK; OK 1 63");
  assertEquals(await decidedTimes(fixture, 2, "flight"), ["OK; OK 0 63", "OVER_LIMIT; OVER_LIMIT 0 63"]);
  fixture.clock.advance(63_000);
  assertEquals(await decidedTimes(fixture, 1, "flight"), ["OK; OK 1 64"]);
  assertEquals([await decided(fixture, back), await decided(fixture, back)], ["OK; OK 2 1", "OK; OK 2 1"]);
  const request = { domain: "d", hitsAddend: 0, descriptors: [descriptor("flight")] };
  const { statuses: [status] } = await fixture.service.shouldRateLimit(request);
  assertEquals(status?.currentLimit, { name: "", requestsPerUnit: 2, unit: undefined });
});

Deno.test("0 hits ask whether one would pass", async () => {
  await using fixture = open();
  const question = descriptor("sliding", { hitsAddend: 0 });
  assertEquals(await decided(fixture, question), "OK; OK 3 1");
  await decidedTimes(fixture, 3, "sliding");
  assertEquals(await decided(fixture, question), "OVER_LIMIT; OVER_LIMIT 0 63");
});

Deno.test("refused hits do not count, and statistics have the usual names", async () => {
  await using fixture = open();
  await decided(fixture, descriptor("sliding", { hitsAddend: 2 }));
  await decided(fixture, descriptor("sliding", { hitsAddend: 2 }));
  await decided(fixture, descriptor("sliding", { hitsAddend: 1 }));
  await decided(fixture, descriptor("sliding", { hitsAddend: 1, isNegativeHits: true }));
  assertEquals(fixture.nonZeroStats(), {
    "ratelimit.service.rate_limit.d.sliding.total_hits": 5,
    "ratelimit.service.rate_limit.d.sliding.over_limit": 2,
    "ratelimit.service.rate_limit.d.sliding.near_limit": 1,
    "ratelimit.service.rate_limit.d.sliding.within_limit": 3,
    "ratelimit.service.rate_limit.d.sliding.returned_hits": 1,
  });
});

Deno.test("modes, replaces, shared thresholds and metadata work as with fixed windows", async () => {
  await using fixture = open({ policy: { dynamicMetadata: true } });
  assertEquals((await decidedTimes(fixture, 4, "shadow")).at(3), "OK; OK 0 63");
  assertEquals(fixture.nonZeroStats()["ratelimit.service.rate_limit.d.shadow.shadow_mode"], 1);
  await decidedTimes(fixture, 3, "quota");
  assertEquals(
    await decided(fixture, descriptor("quota"), descriptor("sliding")),
    "OVER_LIMIT; OVER_LIMIT 0 63; OK 2 63",
  );
  assertEquals(
    await decided(fixture, descriptor("named"), descriptor("outer")),
    "OK; OK 0 undefined; OK 2 63",
  );
  await decidedTimes(fixture, 2, "shared", { value: "a1" });
  assertEquals(await decided(fixture, descriptor("shared", { value: "a2" })), "OK; OK 0 63");
  const request = { domain: "d", hitsAddend: 0, descriptors: [descriptor("metadata")] };
  const { dynamicMetadata } = await fixture.service.shouldRateLimit(request);
  assertEquals(dynamicMetadata?.["metadata"], { plan: "free" });
});

Deno.test("a limit that comes with the request is a fixed window", async () => {
  await using fixture = open();
  const limit = { requestsPerUnit: 1, unit: "MINUTE" } as const;
  assertEquals(await decidedTimes(fixture, 2, "sliding", { limit }), [
    ...["OK; OK 0 40", "OVER_LIMIT; OVER_LIMIT 0 40"],
  ]);
});

Deno.test("both kinds of limits in one call count independently", async () => {
  await using fixture = open();
  const both = [descriptor("fixed"), descriptor("sliding"), descriptor("bucket"), descriptor("fixed")];
  assertEquals(await decided(fixture, ...both), "OK; OK 2 40; OK 2 63; OK 29 1; OK 1 40");
  await decidedTimes(fixture, 2, "sliding");
  assertEquals(
    await decided(fixture, ...both),
    "OVER_LIMIT; OK 0 40; OVER_LIMIT 0 63; OK 28 1; OVER_LIMIT 0 40",
  );
});

Deno.test("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT reads first", async () => {
  await using fixture = open({ policy: { stopIncrementWhenOverLimit: true } });
  const both = [descriptor("fixed"), descriptor("sliding", { hitsAddend: 2 }), descriptor("flight")];
  assertEquals(await decided(fixture, ...both), "OK; OK 2 40; OK 1 63; OK 1 63");
  // Nothing but the one that does not pass is asked to take.
  assertEquals(await decided(fixture, ...both), "OVER_LIMIT; OK 2 40; OVER_LIMIT 1 1; OK 1 63");
  assertEquals(await decided(fixture, descriptor("flight")), "OK; OK 0 63");
  assertEquals(
    await decided(fixture, descriptor("flight"), descriptor("fixed")),
    "OVER_LIMIT; OVER_LIMIT 0 63; OK 2 40",
  );
});

/** Counts the conditional hits that reach the cache. */
class CountedCache extends MemoryCache {
  asked = 0;

  constructor(clock: FakeClock) {
    super({ maxKeys: 100, clock });
  }

  override counterOf(hit: AnyHit): Counter {
    this.asked++;
    return super.counterOf(hit);
  }
}

Deno.test("the local cache remembers a refusal until one hit would pass, and not for concurrency", async () => {
  const caches: CountedCache[] = [];
  const createCache = (clock: FakeClock) => {
    const cache = new CountedCache(clock);
    caches.push(cache);
    return cache;
  };
  await using fixture = open({ createCache, localCacheBytes: 10_000 });
  const asked = () => caches[0]?.asked;
  await decided(fixture, descriptor("bucket", { hitsAddend: 30 }));
  assertEquals(await decidedTimes(fixture, 2, "bucket"), Array(2).fill("OVER_LIMIT; OVER_LIMIT 0 1"));
  assertEquals(asked(), 2);
  fixture.clock.advance(99);
  assertEquals([await decided(fixture, descriptor("bucket")), asked()], ["OVER_LIMIT; OVER_LIMIT 0 1", 2]);
  fixture.clock.advance(1);
  assertEquals([await decided(fixture, descriptor("bucket")), asked()], ["OK; OK 0 3", 3]);
  assertEquals(
    fixture.nonZeroStats()["ratelimit.service.rate_limit.d.bucket.over_limit_with_local_cache"],
    2,
  );
  await decidedTimes(fixture, 4, "flight");
  assertEquals(asked(), 7);
  // A refusal of more hits than one does not mean that one would not pass.
  await decidedTimes(fixture, 2, "sliding", { hitsAddend: 2 });
  assertEquals(await decidedTimes(fixture, 3, "sliding"), [
    ...["OK; OK 0 63", "OVER_LIMIT; OVER_LIMIT 0 63", "OVER_LIMIT; OVER_LIMIT 0 63"],
  ]);
  assertEquals(asked(), 11);
  await decided(fixture, descriptor("sliding", { isNegativeHits: true, hitsAddend: 1 }));
  assertEquals(await decided(fixture, descriptor("sliding")), "OK; OK 0 63");
});

Deno.test("the local cache forgets a refusal when a reload changes how fast its bucket is refilled", async () => {
  const files = (perDay: number) => ({
    "r.yaml": `
domain: d
descriptors:
- {key: k, rate_limit: {unit: day, requests_per_unit: ${perDay}, algorithm: token_bucket, burst: 1}}
`,
  });
  await using fixture = new ServiceFixture({ files: files(1), localCacheBytes: 10_000 });
  assertEquals(await decidedTimes(fixture, 2, "k"), ["OK; OK 0 86401", "OVER_LIMIT; OVER_LIMIT 0 86401"]);
  fixture.service.setRules(rulesOf(files(86_400)));
  assertEquals(await decided(fixture, descriptor("k")), "OVER_LIMIT; OVER_LIMIT 0 2");
  fixture.clock.advance(2_000);
  assertEquals(await decided(fixture, descriptor("k")), "OK; OK 0 2");
});

Deno.test("a cache that fails is handled by the mode of the rule", async () => {
  await using fixture = open({ cache: new FailingCache(["x", "x", "x", "x", "x", "x.", ".x"]) });
  assertEquals(await decidedTimes(fixture, 4, "local"), [
    ...["OK; OK 2 63", "OK; OK 1 63", "OK; OK 0 63", "OVER_LIMIT; OVER_LIMIT 0 63"],
  ]);
  assertEquals(await decided(fixture, descriptor("deny")), "OVER_LIMIT; OVER_LIMIT 0 60");
  const failure = await decided(fixture, descriptor("error"), descriptor("fixed")).catch(({ name }) => name);
  assertEquals(failure, "CacheError");
  assertEquals(
    await decided(fixture, descriptor("fixed"), descriptor("local")),
    "OVER_LIMIT; OK 1 40; OVER_LIMIT 0 63",
  );
});

Deno.test("the headers show the limit that decides", async () => {
  const responseHeaders = { limit: "L", remaining: "M", reset: "R" };
  await using fixture = open({ policy: { responseHeaders } });
  const headers = async (key: string) => {
    const request = { domain: "d", hitsAddend: 0, descriptors: [descriptor("fixed"), descriptor(key)] };
    const { responseHeadersToAdd } = await fixture.service.shouldRateLimit(request);
    return responseHeadersToAdd.map(({ key, value }) => `${key}=${value}`).join(" ");
  };
  assertEquals(await headers("flight"), "L=2 M=1 R=63");
  assertEquals(await headers("bucket"), "L=3 M=1 R=40");
  assertEquals(await headers("sliding"), "L=3 M=0 R=40");
});

Deno.test("the standard headers show quota, window and what is left", async () => {
  const files = {
    "r.yaml": `
domain: d
descriptors:
- {key: fixed, rate_limit: {unit: minute, requests_per_unit: 3, name: 'a "b" \\ é'}}
- {key: sliding, ${SLIDING}, unit_multiplier: 2}}
- {key: bucket, rate_limit: {unit: second, requests_per_unit: 7, algorithm: token_bucket, burst: 30}}
- {key: flight, rate_limit: {algorithm: concurrency, max_in_flight: 2, lease: 60s}}
- {key: free, rate_limit: {unlimited: true}}
`,
  };
  await using fixture = open({ files, policy: { standardHeaders: true } });
  const headers = async (...keys: string[]) => {
    const request = { domain: "d", hitsAddend: 0, descriptors: keys.map((key) => descriptor(key)) };
    const { responseHeadersToAdd } = await fixture.service.shouldRateLimit(request);
    return responseHeadersToAdd.map(({ key, value }) => `${key}: ${value}`);
  };
  assertEquals(await headers("fixed"), [
    'RateLimit-Policy: "a \\"b\\" \\\\ ?";q=3;w=60',
    'RateLimit: "a \\"b\\" \\\\ ?";r=2;t=40',
  ]);
  assertEquals(await headers("sliding"), [
    'RateLimit-Policy: "sliding";q=3;w=120',
    'RateLimit: "sliding";r=2;t=123',
  ]);
  assertEquals(await headers("bucket"), [
    'RateLimit-Policy: "bucket";q=30;w=5',
    'RateLimit: "bucket";r=29;t=1',
  ]);
  assertEquals(await headers("bucket", "flight"), [
    'RateLimit-Policy: "flight";q=2;qu="concurrent-requests"',
    'RateLimit: "flight";r=1',
  ]);
  assertEquals(await headers("free"), []);
});
