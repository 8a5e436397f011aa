import { assertEquals, assertRejects } from "#assert";
import type { Decision } from "../../../src/ratelimit/decision.ts";
import { CacheError, InvalidRequestError } from "../../../src/ratelimit/errors.ts";
import type { Policy } from "../../../src/ratelimit/decision/policy.ts";
import type { Descriptor } from "../../../src/ratelimit/request.ts";
import { RateLimitService } from "../../../src/ratelimit/decision/service.ts";
import { StatsStore } from "../../../src/stats/store.ts";
import { FailingCache } from "../../harness/failing_cache.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import {
  PLAIN_POLICY,
  rulesOf,
  ServiceFixture,
  type ServiceFixtureOptions,
} from "../../harness/service_fixture.ts";
import { failed, GONE, hits, PART, STOP, STOPPING, WHOLE } from "./cache_failure_cases.ts";

const LIMIT = "rate_limit: {unit: minute, requests_per_unit: 2}";
const RULES = `
domain: d
descriptors:
- {key: plain, ${LIMIT}}
- {key: error, on_cache_failure: error, ${LIMIT}}
- {key: allow, on_cache_failure: allow, ${LIMIT}}
- {key: deny, on_cache_failure: deny, ${LIMIT}}
- {key: local, on_cache_failure: local, ${LIMIT}}
- {key: shadow, on_cache_failure: deny, shadow_mode: true, ${LIMIT}}
- {key: quota, on_cache_failure: deny, quota_mode: true, ${LIMIT}}
- {key: share, on_cache_failure: allow, quota_mode: true, ${LIMIT}}
- {key: free, on_cache_failure: deny, rate_limit: {unlimited: true}}
`;

function open(script: readonly string[], options: Partial<ServiceFixtureOptions> = {}): ServiceFixture {
  return new ServiceFixture({ files: { "r.yaml": RULES }, cache: new FailingCache(script), ...options });
}

for (const [name, cases] of Object.entries({ whole: WHOLE, part: PART, "stop-increment": STOPPING })) {
  for (const later of [false, true]) {
    for (const { title, policy = {}, script, calls, answers, stats, asked } of cases) {
      Deno.test(`cache failure, ${name}${later ? ", later" : ""}: ${title}`, async () => {
        const cache = new FailingCache(script, { later });
        await using fixture = open([], { cache, policy, localCacheBytes: 10_000 });
        const found: string[] = [];
        for (const texts of calls) found.push(await answerOf(fixture, texts.map(descriptor)));
        assertEquals(found, answers);
        assertEquals(plainStats(fixture), stats);
        if (asked !== undefined) assertEquals(cache.asked, asked);
      });
    }
  }
}

Deno.test("cache failure: a limit of the request follows the policy, not the rule", async () => {
  await using fixture = open(["x"], { policy: { onCacheFailure: "deny" } });
  const override = { ...descriptor("allow"), limit: { requestsPerUnit: 9, unit: "DAY" } } as const;
  assertEquals(await answerOf(fixture, [override]), "OVER_LIMIT: OVER_LIMIT 0");
});

Deno.test("cache failure: an answer without a count shows limit, reset and headers", async () => {
  const responseHeaders = { limit: "L", remaining: "M", reset: "R" };
  await using fixture = open(["x", "x"], { policy: { responseHeaders } });
  const ask = (key: string): Decision | Promise<Decision> =>
    fixture.service.shouldRateLimit({ domain: "d", hitsAddend: 0, descriptors: [descriptor(key)] });
  const shown = {
    currentLimit: { name: "", requestsPerUnit: 2, unit: "MINUTE" },
    limitRemaining: 0,
    secondsUntilReset: 40,
  };
  const headers = [{ key: "L", value: "2" }, { key: "M", value: "0" }, { key: "R", value: "40" }];
  const rest = { responseHeadersToAdd: headers, dynamicMetadata: undefined };
  assertEquals(
    [await ask("allow"), await ask("deny")] as unknown,
    [
      { overallCode: "OK", statuses: [{ code: "OK", ...shown }], ...rest },
      { overallCode: "OVER_LIMIT", statuses: [{ code: "OVER_LIMIT", ...shown }], ...rest },
    ],
  );
});

Deno.test("cache failure: hits that are given back move nothing without a count", async () => {
  await using fixture = open(["xx"]);
  const back = { hitsAddend: 1, isNegativeHits: true };
  const descriptors = [{ ...descriptor("allow"), ...back }, { ...descriptor("local"), ...back }];
  assertEquals(await answerOf(fixture, descriptors), "OK: OK 0, OK 2");
  assertEquals(plainStats(fixture), {
    ...failed("allow"),
    "cache_failure.local": 1,
    "rate_limit.d.local.returned_hits": 1,
  });
});

Deno.test("cache failure: memcached's are counted as its own", async () => {
  const cache = new FailingCache(["x", "x"], { backend: "mc" });
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, cache });
  assertEquals(await answerOf(fixture, [descriptor("allow")]), "OK: OK 0");
  assertEquals(await answerOf(fixture, [descriptor("plain")]), GONE);
  assertEquals(plainStats(fixture), {
    "cache_failure.allow": 1,
    "cache_failure.error": 1,
    "call.should_rate_limit.mc_error": 2,
    ...hits("allow", "plain"),
  });
});

for (const later of [false, true]) {
  Deno.test(`cache failure: a key that can never be held is none${later ? ", later" : ""}`, async () => {
    const cache = new FailingCache([]);
    const illegal = new InvalidRequestError("too long", { backend: "mc" });
    if (later) cache.error = illegal;
    else {
      cache.counterOf = () => {
        throw illegal;
      };
    }
    await using fixture = open([], { cache, policy: { onCacheFailure: "allow" } });
    assertEquals(await answerOf(fixture, [descriptor("allow")]), "InvalidRequestError: too long");
    assertEquals(plainStats(fixture), { "call.should_rate_limit.mc_error": 1, ...hits("allow") });
  });
}

Deno.test("cache failure: a fault of the fallback fails the call", async () => {
  await using fixture = open(["x"]);
  fixture.fallback.counterOf = () => {
    throw new TypeError("broken");
  };
  assertEquals(await answerOf(fixture, [descriptor("local")]), "TypeError: broken");
  assertEquals(plainStats(fixture), { "call.should_rate_limit.service_error": 1, ...hits("local") });
});

Deno.test("cache failure: local without a fallback fails the call", async () => {
  const stats = new StatsStore(10);
  const cache = new FailingCache(["x"]);
  const policy: Policy = { ...PLAIN_POLICY, onCacheFailure: "local" };
  const service = new RateLimitService({ cache, stats, policy, clock: new FakeClock(), random: () => 0 });
  service.setRules(rulesOf({ "r.yaml": RULES }));
  assertEquals(await answerOf({ service }, [descriptor("plain")]), GONE);
  assertEquals(stats.service.cacheFailure, { error: 1, allow: 0, deny: 0, local: 0 });
});

Deno.test("cache failure: who asks is handed to every question", async () => {
  const cache = new FailingCache(["", ".x"]);
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, cache, policy: STOP });
  const caller = { cancelled: false };
  const ask = async (...keys: string[]) => {
    const descriptors = keys.map(descriptor);
    await fixture.service.shouldRateLimit({ domain: "d", hitsAddend: 0, descriptors }, caller);
  };
  await ask("plain");
  await ask("plain", "allow");
  caller.cancelled = true;
  assertEquals(cache.asked, ["plain1", "plain0 allow0", "plain1"]);
  assertEquals(cache.callers.map((one) => one?.cancelled), [true, true, true]);
  // Who may ask twice has the time of one asking.
  const { clock } = fixture;
  assertEquals(cache.callers.map((one) => one?.since), [clock.now(), clock.now(), clock.now()]);
});

Deno.test("cache failure: the error that fails a call is the cache's own", async () => {
  const cache = new FailingCache([]);
  const error = new CacheError("kv", "no connection");
  cache.error = error;
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, cache });
  const descriptors = [descriptor("plain")];
  const thrown = await assertRejects(async () =>
    await fixture.service.shouldRateLimit({ domain: "d", hitsAddend: 0, descriptors })
  );
  assertEquals(thrown === error, true);
});

/** `key`, or `key:hits`, as a descriptor. */
function descriptor(text: string): Descriptor {
  const [key = "", hitsAddend] = text.split(":");
  return {
    entries: [{ key, value: "v" }],
    ...(hitsAddend === undefined ? {} : { hitsAddend: Number(hitsAddend) }),
  };
}

async function answerOf(
  { service }: Pick<ServiceFixture, "service">,
  descriptors: readonly Descriptor[],
): Promise<string> {
  try {
    const decision = await service.shouldRateLimit({ domain: "d", hitsAddend: 0, descriptors });
    const statuses = decision.statuses.map(({ code, limitRemaining }) => `${code} ${limitRemaining}`);
    return `${decision.overallCode}: ${statuses.join(", ")}`;
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  }
}

function plainStats(fixture: ServiceFixture): Record<string, number> {
  const all = Object.entries(fixture.nonZeroStats());
  return Object.fromEntries(all.map(([name, value]) => [name.replace("ratelimit.service.", ""), value]));
}
