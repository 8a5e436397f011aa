import { assertEquals } from "#assert";
import type { DescriptorStatus } from "../../../src/ratelimit/decision.ts";
import type { Descriptor } from "../../../src/ratelimit/request.ts";
import { explain } from "../../../src/ratelimit/forecast/explain.ts";
import { NO_RULES } from "../../../src/ratelimit/rules/rules.ts";
import type { LimitFact } from "../../../src/ratelimit/decision/limit_events.ts";
import { FailingCache } from "../../harness/failing_cache.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { PLAIN_POLICY, ServiceFixture, type ServiceFixtureOptions } from "../../harness/service_fixture.ts";

const FIXED = "{unit: second, requests_per_unit: 2}, {unit: minute, requests_per_unit: 5}";
const RULES = `
domain: d
descriptors:
- {key: fixed, rate_limits: [${FIXED}]}
- {key: named, name: both, rate_limits: [${FIXED}]}
- {key: other, name: other, replaces: [{name: both}], rate_limits: [${FIXED}]}
- {key: shadow, shadow_mode: true, rate_limits: [${FIXED}]}
- {key: reporting, events: [over_limit, near_limit], rate_limits: [${FIXED}]}
- {key: deny, on_cache_failure: deny, rate_limits: [${FIXED}]}
- {key: local, on_cache_failure: local, rate_limits: [${FIXED}]}
- key: mixed
  rate_limits:
  - {unit: second, requests_per_unit: 2}
  - {unit: minute, requests_per_unit: 5, algorithm: sliding_window}
- {key: one, rate_limit: {unit: minute, requests_per_unit: 1}}
`;

type Part = Partial<Descriptor>;

function descriptor(key: string, more: Part = {}): Descriptor {
  return { entries: [{ key, value: "v" }], ...more };
}

function open(options: Partial<ServiceFixtureOptions> = {}): ServiceFixture {
  return new ServiceFixture({ files: { "r.yaml": RULES }, ...options });
}

async function decided(fixture: ServiceFixture, ...descriptors: Descriptor[]): Promise<string> {
  const decision = await fixture.service.shouldRateLimit({ domain: "d", hitsAddend: 0, descriptors });
  return decision.statuses.map(statusText).join("; ");
}

function statusText({ code, currentLimit, limitRemaining, secondsUntilReset }: DescriptorStatus): string {
  const { requestsPerUnit, unit } = currentLimit ?? {};
  return `${code} ${requestsPerUnit}/${unit} ${limitRemaining} ${secondsUntilReset}`;
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

// 1_700_000_000 is 20 s into a minute.
Deno.test("windows: the tightest answers: the least remaining, and over a limit the longest wait", async () => {
  await using fixture = open();
  assertEquals(await decidedTimes(fixture, 3, "fixed"), [
    ...["OK 2/SECOND 1 1", "OK 2/SECOND 0 1", "OVER_LIMIT 2/SECOND 0 1"],
  ]);
  fixture.clock.advance(1_000);
  // A refused hit in fixed windows counts in all of them: 5 of the minute are used then.
  assertEquals(await decidedTimes(fixture, 3, "fixed"), [
    ...["OK 2/SECOND 1 1", "OK 2/SECOND 0 1", "OVER_LIMIT 5/MINUTE 0 39"],
  ]);
  fixture.clock.advance(39_000);
  assertEquals(await decided(fixture, descriptor("fixed")), "OK 2/SECOND 1 1");
});

Deno.test("windows: keys end in the length and the start of their window, with one hash tag", async () => {
  await using fixture = open();
  const { explanation } = explain(fixture.service.rules ?? NO_RULES, {
    domain: "d",
    hitsAddend: 0,
    descriptors: [descriptor("fixed"), descriptor("mixed")],
  }, { nowSeconds: 1_700_000_000, random: () => 0, policy: { ...PLAIN_POLICY, cacheKeyPrefix: "p:" } });
  assertEquals(
    explanation.descriptors.flatMap(({ windows = [] }) => windows.map(({ cacheKey }) => cacheKey)),
    [
      "p:{d_fixed_v}_1s_1700000000",
      "p:{d_fixed_v}_60s_1699999980",
      "p:{d_mixed_v}_1s_1700000000",
      "p:{d_mixed_v}_60s_sliding60",
    ],
  );
});

Deno.test("windows: with a conditional algorithm, a refused hit counts in none", async () => {
  await using fixture = open();
  assertEquals(await decidedTimes(fixture, 4, "mixed"), [
    ...["OK 2/SECOND 1 1", "OK 2/SECOND 0 1", "OVER_LIMIT 2/SECOND 0 1", "OVER_LIMIT 2/SECOND 0 1"],
  ]);
  fixture.clock.advance(1_000);
  assertEquals(await decidedTimes(fixture, 2, "mixed"), ["OK 2/SECOND 1 1", "OK 2/SECOND 0 1"]);
  fixture.clock.advance(1_000);
  assertEquals(await decided(fixture, descriptor("mixed", { hitsAddend: 2 })), "OVER_LIMIT 5/MINUTE 1 1");
  assertEquals(await decidedTimes(fixture, 2, "mixed"), ["OK 5/MINUTE 0 61", "OVER_LIMIT 5/MINUTE 0 61"]);
  assertEquals(await decided(fixture, descriptor("mixed", { hitsAddend: 0 })), "OVER_LIMIT 5/MINUTE 0 61");
});

Deno.test("windows: with stopIncrementWhenOverLimit, fixed windows are taken in all or in none", async () => {
  await using fixture = open({ policy: { stopIncrementWhenOverLimit: true } });
  await decidedTimes(fixture, 10, "fixed");
  fixture.clock.advance(1_000);
  assertEquals(await decidedTimes(fixture, 2, "fixed"), ["OK 2/SECOND 1 1", "OK 2/SECOND 0 1"]);
  fixture.clock.advance(1_000);
  // Another descriptor that is over its limit keeps the list from counting.
  await decided(fixture, descriptor("one"));
  assertEquals(
    await decided(fixture, descriptor("one"), descriptor("fixed")),
    "OVER_LIMIT 1/MINUTE 0 38; OK 5/MINUTE 1 38",
  );
  assertEquals(await decided(fixture, descriptor("fixed")), "OK 5/MINUTE 0 38");
  assertEquals(
    await decided(fixture, descriptor("fixed"), descriptor("named")),
    "OVER_LIMIT 5/MINUTE 0 38; OK 2/SECOND 2 1",
  );
});

Deno.test("windows: negative hits are given back in all, and 0 only looks", async () => {
  await using fixture = open();
  await decided(fixture, descriptor("fixed", { hitsAddend: 2 }));
  const back = descriptor("fixed", { hitsAddend: 1, isNegativeHits: true });
  assertEquals(await decided(fixture, back), "OK 2/SECOND 1 1");
  assertEquals(await decided(fixture, descriptor("fixed", { hitsAddend: 0 })), "OK 2/SECOND 1 1");
  fixture.clock.advance(1_000);
  assertEquals(await decided(fixture, descriptor("fixed", { hitsAddend: 0 })), "OK 2/SECOND 2 1");
  fixture.clock.advance(1_000);
  assertEquals(await decided(fixture, descriptor("fixed", { hitsAddend: 2 })), "OK 2/SECOND 0 1");
  fixture.clock.advance(1_000);
  assertEquals(await decided(fixture, descriptor("fixed", { hitsAddend: 1 })), "OK 2/SECOND 1 1");
});

Deno.test("windows: a call counts once in the statistics of its rule, and refusals under their units", async () => {
  await using fixture = open();
  await decidedTimes(fixture, 3, "fixed");
  fixture.clock.advance(1_000);
  await decidedTimes(fixture, 3, "fixed");
  const stats = Object.entries(fixture.nonZeroStats()).map((
    [name, value],
  ) => [name.split(".").at(-1), value]);
  assertEquals(Object.fromEntries(stats), {
    total_hits: 6,
    within_limit: 4,
    near_limit: 2,
    over_limit: 2,
    over_limit_per_second: 2,
    over_limit_per_minute: 1,
  });
});

Deno.test("windows: headers have the tightest window, and the policies of all", async () => {
  const responseHeaders = { limit: "L", remaining: "R", reset: "S" };
  await using fixture = open({ policy: { responseHeaders, standardHeaders: true } });
  const headers = async (key: string) => {
    const { responseHeadersToAdd } = await fixture.service.shouldRateLimit({
      domain: "d",
      hitsAddend: 0,
      descriptors: [descriptor(key)],
    });
    return responseHeadersToAdd.map(({ key, value }) => `${key}: ${value}`);
  };
  assertEquals(await headers("fixed"), [
    ...["L: 2", "R: 1", "S: 1"],
    'RateLimit-Policy: "fixed-1s";q=2;w=1, "fixed-60s";q=5;w=60',
    'RateLimit: "fixed-1s";r=1;t=1',
  ]);
  assertEquals((await headers("named")).at(-1), 'RateLimit: "both-1s";r=1;t=1');
});

Deno.test("windows: with headers of all descriptors, each window has its own", async () => {
  const unitHeaders = { limit: "L", remaining: "R" };
  await using fixture = open({ policy: { unitHeaders, standardHeaders: true } });
  const { responseHeadersToAdd } = await fixture.service.shouldRateLimit({
    domain: "d",
    hitsAddend: 0,
    descriptors: [descriptor("fixed"), descriptor("one")],
  });
  assertEquals(responseHeadersToAdd.map(({ key, value }) => `${key}: ${value}`), [
    ...["L-seconds: 2", "R-seconds: 1", "L-minutes: 1", "R-minutes: 0"],
    'RateLimit-Policy: "fixed-1s";q=2;w=1, "fixed-60s";q=5;w=60, "one";q=1;w=60',
    'RateLimit: "fixed-1s";r=1;t=1, "one";r=0;t=40',
  ]);
});

Deno.test("windows: headers have no rest of a window that a known refusal of another one did not count", async () => {
  const unitHeaders = { limit: "L", remaining: "R" };
  await using fixture = open({ policy: { unitHeaders, standardHeaders: true }, localCacheBytes: 100_000 });
  await decidedTimes(fixture, 3, "fixed");
  const { responseHeadersToAdd } = await fixture.service.shouldRateLimit({
    domain: "d",
    hitsAddend: 0,
    descriptors: [descriptor("fixed")],
  });
  assertEquals(responseHeadersToAdd.map(({ key, value }) => `${key}: ${value}`), [
    ...["L-seconds: 2", "R-seconds: 0"],
    'RateLimit-Policy: "fixed-1s";q=2;w=1, "fixed-60s";q=5;w=60',
    'RateLimit: "fixed-1s";r=0;t=1',
  ]);
});

Deno.test("windows: a header has at most 32 windows of all descriptors, and those of the one that decides", async () => {
  await using fixture = open({
    policy: { unitHeaders: { limit: "L", remaining: "R" }, standardHeaders: true },
  });
  await decidedTimes(fixture, 3, "fixed");
  const descriptors = Array.from({ length: 40 }, () => descriptor("named"));
  const { responseHeadersToAdd } = await fixture.service.shouldRateLimit({
    domain: "d",
    hitsAddend: 0,
    descriptors: [...descriptors, descriptor("fixed")],
  });
  const policy = responseHeadersToAdd.find(({ key }) => key === "RateLimit-Policy")?.value.split(", ") ?? [];
  assertEquals([policy.length, policy.at(-1)], [32, '"fixed-60s";q=5;w=60']);
});

Deno.test("windows: name, replaces and shadow mode are those of the rule", async () => {
  await using fixture = open();
  assertEquals(
    await decided(fixture, descriptor("named"), descriptor("other")),
    "OK undefined/undefined 0 undefined; OK 2/SECOND 1 1",
  );
  assertEquals((await decidedTimes(fixture, 3, "shadow")).at(-1), "OK 2/SECOND 0 1");
  assertEquals(fixture.nonZeroStats()["ratelimit.service.rate_limit.d.shadow.shadow_mode"], 1);
});

Deno.test("windows: the local cache knows each window, and a known refusal counts in none", async () => {
  await using fixture = open({ localCacheBytes: 100_000 });
  await decidedTimes(fixture, 10, "fixed");
  fixture.clock.advance(1_000);
  assertEquals(await decidedTimes(fixture, 3, "fixed"), [
    ...["OK 2/SECOND 1 1", "OK 2/SECOND 0 1", "OVER_LIMIT 5/MINUTE 0 39"],
  ]);
  fixture.clock.advance(1_000);
  // Only the minute is known.
  assertEquals(await decided(fixture, descriptor("fixed")), "OVER_LIMIT 5/MINUTE 0 38");
  const stat = "ratelimit.service.rate_limit.d.fixed.over_limit_with_local_cache";
  assertEquals(fixture.nonZeroStats()[stat], 8);
});

Deno.test("windows: events are those of the windows that refuse, or else that hits are near", async () => {
  const facts: LimitFact[] = [];
  await using fixture = open({ limitEvents: { note: (found) => void facts.push(...found) } });
  await decidedTimes(fixture, 3, "reporting");
  fixture.clock.advance(1_000);
  await decidedTimes(fixture, 3, "reporting");
  assertEquals(facts.map(({ event, limit, key }) => `${event} ${limit.unit} ${key}`), [
    "near_limit SECOND {d_reporting_v}_1s_1700000000",
    "over_limit SECOND {d_reporting_v}_1s_1700000000",
    "near_limit SECOND {d_reporting_v}_1s_1700000001",
    "near_limit MINUTE {d_reporting_v}_60s_1699999980",
    "over_limit SECOND {d_reporting_v}_1s_1700000001",
    "over_limit MINUTE {d_reporting_v}_60s_1699999980",
  ]);
});

Deno.test("windows: while the cache fails, a descriptor is decided and counted once by its mode", async () => {
  const cache = new FailingCache(["xx", "xx", "xx", "xx"]);
  await using fixture = open({ cache });
  assertEquals(await decided(fixture, descriptor("deny")), "OVER_LIMIT 5/MINUTE 0 40");
  assertEquals(await decidedTimes(fixture, 3, "local"), [
    ...["OK 2/SECOND 1 1", "OK 2/SECOND 0 1", "OVER_LIMIT 2/SECOND 0 1"],
  ]);
  const { "ratelimit.service.cache_failure.deny": deny, "ratelimit.service.cache_failure.local": local } =
    fixture.nonZeroStats();
  assertEquals([deny, local], [1, 3]);
});

Deno.test("windows: no window is ever exceeded, and a refused hit of a joint list counts in none", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = seededRandom(seed);
    const pick = (below: number) => Math.floor(random() * below);
    const [perSecond, perMinute, perHour] = [1 + pick(5), 3 + pick(12), 10 + pick(30)];
    const algorithm = ["fixed_window", "sliding_window", "token_bucket"][pick(3)] ?? "";
    const file = `
domain: d
descriptors:
- key: k
  rate_limits:
  - {unit: second, requests_per_unit: ${perSecond}}
  - {unit: minute, requests_per_unit: ${perMinute}, algorithm: ${algorithm}}
  - {unit: hour, requests_per_unit: ${perHour}}
`;
    const policy = { stopIncrementWhenOverLimit: algorithm === "fixed_window" };
    await using fixture = new ServiceFixture({ files: { "r.yaml": file }, policy });
    const passed: { at: number; hits: number }[] = [];
    const within = (from: number) => passed.reduce((sum, { at, hits }) => at >= from ? sum + hits : sum, 0);
    for (let call = 0; call < 300; call++) {
      fixture.clock.advance([0, 100, 900, 7_000, 40_000][pick(5)] ?? 0);
      const now = fixture.clock.now() / 1_000;
      const hits = 1 + pick(3);
      const { overallCode } = await fixture.service.shouldRateLimit({
        domain: "d",
        hitsAddend: 0,
        descriptors: [{ entries: [{ key: "k", value: "v" }], hitsAddend: hits }],
      });
      const starts = [1, 60, 3_600].map((length) => now - now % length);
      const [second, minute, hour] = starts.map((start) => within(start) + hits) as [number, number, number];
      const isPast = second > perSecond || hour > perHour;
      const note = `seed ${seed}, call ${call}`;
      if (overallCode === "OVER_LIMIT") {
        // Had a refused hit counted anywhere, one that fits in all would be refused.
        if (algorithm === "fixed_window") assertEquals(isPast || minute > perMinute, true, note);
        continue;
      }
      assertEquals(isPast, false, note);
      if (algorithm === "fixed_window") assertEquals(minute <= perMinute, true, note);
      if (algorithm === "sliding_window") assertEquals(within(now - 60) + hits <= perMinute, true, note);
      passed.push({ at: now, hits });
    }
  }
});
