import { assertEquals, assertNotEquals } from "#assert";
import type { AnyHit, Counter, CounterCache } from "../../../src/ratelimit/decision/counter_cache.ts";
import { MemoryCache } from "../../../src/cache/memory_cache.ts";
import { encodeRateLimitRequest } from "../../../src/wire/rls.ts";
import type { RateLimitRequest } from "../../../src/ratelimit/request.ts";
import type { Unit } from "../../../src/ratelimit/units.ts";
import type { FakeClock } from "../../harness/fake_clock.ts";
import { KnownRequestsPair, laterCache } from "../../harness/known_requests_pair.ts";
import { ServiceFixture, type ServiceFixtureOptions } from "../../harness/service_fixture.ts";

const RULES = `domain: d
descriptors:
- { key: month, rate_limit: { unit: month, requests_per_unit: 2 } }
- { key: year, rate_limit: { unit: YEAR, requests_per_unit: 2 } }
- { key: months, rate_limit: { unit: month, unit_multiplier: 2, requests_per_unit: 2 } }
- { key: sliding, rate_limit: { unit: month, requests_per_unit: 2, algorithm: sliding_window } }
- { key: bucket, rate_limit: { unit: month, requests_per_unit: 2, algorithm: token_bucket } }
- { key: day, rate_limit: { unit: day, requests_per_unit: 2 } }
- { key: plain, rate_limit: { unit: month, requests_per_unit: 2, calendar: false } }
- { key: paris, rate_limit: { unit: month, requests_per_unit: 2, calendar: true, timezone: Europe/Paris } }
- { key: quarter, rate_limit: { unit: month, unit_multiplier: 3, requests_per_unit: 2, calendar: true } }
- { key: week, rate_limit: { unit: week, requests_per_unit: 2, calendar: true, timezone: Asia/Tokyo } }
`;
const MONTH_END = 1_740_787_200;
/** 2025-02-28 23:59:50 UTC. */
const AT = MONTH_END - 10;
const JITTER = 300;

/** Records the hits that it counts. */
class RecordingCache extends MemoryCache implements CounterCache {
  readonly hits: AnyHit[] = [];

  override counterOf(hit: AnyHit): Counter {
    this.hits.push(hit);
    return super.counterOf(hit);
  }
}

function requestOf(key: string, unit?: Unit): RateLimitRequest {
  const limit = unit === undefined ? undefined : { requestsPerUnit: 2, unit };
  const descriptors = [{ entries: [{ key, value: "a" }], isNegativeHits: false, limit }];
  return { domain: "d", descriptors, hitsAddend: 1 };
}

/** The end of the key, its expiry, and the seconds until the reset. */
type Facts = readonly [keyEnd: string, expiresInSeconds: number, secondsUntilReset: number | undefined];

const FEBRUARY = ["1738368000", 10 + JITTER / 2, 10] as const;
const YEAR = ["1735689600", 306 * 86_400 + 10 + JITTER / 2, 306 * 86_400 + 10] as const;

const CASES: readonly (readonly [name: string, request: RateLimitRequest, facts: Facts])[] = [
  ["a rule per month", requestOf("month"), FEBRUARY],
  ["a rule per year", requestOf("year"), YEAR],
  ["a request's limit per month", requestOf("any", "MONTH"), FEBRUARY],
  ["a request's limit per year", requestOf("any", "YEAR"), YEAR],
  ["a request's limit per day", requestOf("any", "DAY"), ["1740700800", 86_400 + JITTER / 2, 10]],
  ["several months", requestOf("months"), ["1736640000", 5_184_000 + JITTER / 2, 1_036_810]],
  ["a day", requestOf("day"), ["1740700800", 86_400 + JITTER / 2, 10]],
  ["a rule without a calendar", requestOf("plain"), ["1739232000", 2_592_000 + JITTER / 2, 1_036_810]],
  // March has begun there an hour ago.
  ["a rule of a time zone", requestOf("paris"), ["1740783600", 2_671_210 + JITTER / 2, 2_671_210]],
  ["a quarter", requestOf("quarter"), ["1735689600", 31 * 86_400 + 10 + JITTER / 2, 31 * 86_400 + 10]],
  ["a week", requestOf("week"), ["1740322800", 140_410 + JITTER / 2, 140_410]],
  ["a sliding window", requestOf("sliding"), ["sliding2592000", 2_754_000 + JITTER / 2, 2_656_810]],
  ["a token bucket", requestOf("bucket"), ["bucket2592000", 2_592_002 + JITTER / 2, 1_296_001]],
];

const OPTIONS: ServiceFixtureOptions = {
  files: { "d.yaml": RULES },
  at: AT,
  policy: { calendarMonths: true, expirationJitterMaxSeconds: JITTER },
};

for (const [name, request, facts] of CASES) {
  Deno.test(`calendar months: the key, the expiry and the reset of ${name}`, async () => {
    let cache: RecordingCache | undefined;
    const createCache = (clock: FakeClock) => cache = new RecordingCache({ maxKeys: 10, clock });
    await using fixture = new ServiceFixture({ ...OPTIONS, createCache });
    const { statuses: [status] } = await fixture.service.shouldRateLimit(request);
    const [hit] = cache?.hits ?? [];
    const keyEnd = hit?.key.slice(hit.key.lastIndexOf("_") + 1);
    assertEquals([keyEnd, hit?.expiresInSeconds, status?.secondsUntilReset], [...facts]);
  });
}

Deno.test("calendar months: without the setting, a month has 30 days and a year 365", async () => {
  await using fixture = new ServiceFixture({ files: { "d.yaml": RULES }, at: AT });
  const resets: unknown[] = [];
  for (const request of [requestOf("month"), requestOf("year"), requestOf("any", "MONTH")]) {
    const { statuses } = await fixture.service.shouldRateLimit(request);
    resets.push(statuses[0]?.secondsUntilReset);
  }
  const rest = (length: number) => length - AT % length;
  assertEquals(resets, [rest(2_592_000), rest(31_536_000), rest(2_592_000)]);
});

const MARCH_MS = 31 * 86_400_000;

for (const localCacheBytes of [0, 100_000]) {
  Deno.test(`calendar months: each begins at its first second, local cache of ${localCacheBytes}`, async () => {
    await using fixture = new ServiceFixture({ ...OPTIONS, localCacheBytes });
    const codes: string[] = [];
    for (const waitMs of [0, 0, 0, 9_999, 1, 0, 0, MARCH_MS - 1, 1]) {
      fixture.clock.aheadMs += waitMs;
      codes.push((await fixture.service.shouldRateLimit(requestOf("month"))).overallCode);
    }
    const twice = ["OK", "OK", "OVER_LIMIT", "OVER_LIMIT"];
    assertEquals(codes, [...twice, ...twice, "OK"]);
  });
}

Deno.test("calendar months: repeated requests are in the windows of others, also after the clock was set back", async () => {
  await using pair = new KnownRequestsPair({ ...OPTIONS, createCache: (clock) => laterCache(clock, 10) });
  const descriptors = [{ entries: [{ key: "month", value: "a" }], isNegativeHits: false }];
  const bytes = encodeRateLimitRequest({ domain: "d", descriptors, hitsAddend: 1 });
  const ask = async (times: number) => {
    for (let time = 0; time < times; time++) await pair.ask(bytes);
  };
  await ask(4);
  pair.setBack(86_400_000);
  await ask(4);
  for (const waitMs of [86_400_000, 9_999, 1, MARCH_MS - 1, 1]) {
    pair.setBack(-waitMs);
    await ask(4);
  }
  await pair.check(["d_month_a_1738368000", "d_month_a_1740787200", "d_month_a_1743465600"]);
  assertNotEquals(pair.recognized, 0);
});
