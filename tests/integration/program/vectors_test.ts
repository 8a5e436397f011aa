import { assertEquals, assertMatch } from "@std/assert";
import { systemClock } from "../../../src/base/clock.ts";
import type { KvCache } from "../../../src/cache/kv_cache.ts";
import { readRateLimitRequest } from "../../../src/http/json.ts";
import { rateLimitRoute } from "../../../src/http/rate_limit_route.ts";
import { createRouter } from "../../../src/http/router.ts";
import type { CounterCache } from "../../../src/ratelimit/counter_cache.ts";
import { planHits } from "../../../src/ratelimit/plan.ts";
import type { Policy } from "../../../src/ratelimit/policy.ts";
import type { RateLimit } from "../../../src/ratelimit/rules.ts";
import { matchLimit } from "../../../src/ratelimit/matcher.ts";
import { metricKey } from "../../../src/ratelimit/stat_path.ts";
import { problemText } from "../../../src/ratelimit/rule_source.ts";
import { readSettings, type Settings } from "../../../src/settings/read_settings.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { policyOf } from "../../../src/open_service.ts";
import { listenOnPort, listenOptions } from "../../harness/http_fixture.ts";
import { openKvCache } from "../../harness/open_kv.ts";
import { type RedisServer, startRedis } from "../../harness/redis_server.ts";
import { loadRules, rulesOf, ServiceFixture } from "../../harness/service_fixture.ts";
import { needs } from "../../harness/tools.ts";
import {
  decisionAsVector,
  expectedCounters,
  expectedDecision,
  type Vector,
  VECTORS,
  type VectorStep,
} from "../../harness/vectors.ts";

/** What our text of a problem must hold for the meaning that a case gives as its reason. */
const REASONS: Readonly<Record<string, RegExp>> = {
  "invalid unit 'unknown'": /invalid rate limit unit 'unknown'/,
  "invalid unit ''": /invalid rate limit unit ''/,
  "unit with unlimited": /should not specify rate limit unit when unlimited/,
  "empty domain": /config file cannot have empty domain/,
  "empty key": /descriptor has empty key/,
  "duplicate composite key d.k_v": /duplicate descriptor composite key 'd\.k_v'/,
  "duplicate composite key d.k": /duplicate descriptor composite key 'd\.k'/,
  "non-string key": /key.*(string|text)/,
  "list item is not a mapping": /must be a mapping/,
  "bad leaf type": /whole number/,
  "bad requests_per_unit": /requests_per_unit.*(number|4294967295)/,
  "shadow_mode not boolean": /shadow_mode.*(true|boolean)/,
  "yaml syntax": /YAML|quote|quoted/i,
  "top level is not a mapping": /must be a mapping/,
  "descriptors has wrong type": /descriptors.*list/,
  "duplicate domain d": /duplicate domain 'd' in config file/,
};

function settingsOf(vector: Vector): Settings {
  return readSettings({ BACKEND_TYPE: "memory", ...vector.env }).settings;
}

function fixtureOf(vector: Vector, cache?: CounterCache): ServiceFixture {
  const settings = settingsOf(vector);
  const policy: Policy = policyOf(settings);
  const localCacheBytes = settings.LOCAL_CACHE_SIZE_IN_BYTES;
  return new ServiceFixture({
    files: vector.config,
    policy,
    localCacheBytes,
    ...(cache === undefined ? {} : { cache }),
  });
}

for (const vector of VECTORS.filter((vector) => vector.expect_config_error)) {
  Deno.test(`vector ${vector.id}: ${vector.why}`, () => {
    const { rules, problems } = loadRules(vector.config);
    const reason = vector.reject_reason ?? "";
    const expected = REASONS[reason] ?? new RegExp(reason.replaceAll(/[.*+?]/g, "\\$&"));
    assertEquals(rules, undefined);
    assertMatch(
      problems.filter(({ severity }) => severity === "error").map(problemText).join("\n"),
      expected,
    );
  });
}

const COUNTED = VECTORS.filter(({ expect_config_error, steps }) =>
  !expect_config_error && steps.every(({ http }) => !http)
);

for (const vector of COUNTED) {
  Deno.test(`vector ${vector.id}: ${vector.why}`, async () => {
    await using fixture = fixtureOf(vector);
    for (const step of vector.steps) {
      if (step.at !== undefined) fixture.clock.advance(step.at * 1000 - fixture.clock.now());
      await checkStep(fixture, vector, step);
    }
    checkStats(fixture, vector);
  });
}

for (const vector of COUNTED) {
  Deno.test({
    ...needs(["redis-server"], `vector ${vector.id} on a key-value cache: counters and expiries`),
    async fn() {
      await using redis = await startRedis();
      const begin = performance.now();
      await using fixture = fixtureOf(vector, await openKv(redis));
      for (const step of vector.steps) {
        if (step.at !== undefined) fixture.clock.advance(step.at * 1000 - fixture.clock.now());
        await checkStep(fixture, vector, step);
      }
      await checkCounters(redis, vector, begin);
      checkStats(fixture, vector);
    },
  });
}

for (const vector of VECTORS.filter(({ steps }) => steps.some(({ http }) => http))) {
  Deno.test(`vector ${vector.id} over HTTP: ${vector.why}`, async () => {
    await using fixture = fixtureOf(vector);
    const logger = createLogger({ level: "panic", format: "text", clock: fixture.clock, write: () => {} });
    const route = rateLimitRoute({
      decide: (request) => fixture.service.shouldRateLimit(request),
      clock: systemClock,
    });
    const handler = createRouter([route], { logger, clock: systemClock });
    const server = listenOnPort(handler, listenOptions({ logger, clock: systemClock }));
    try {
      for (const { http, expect } of vector.steps) {
        const { method = "GET", path = "/", body = "" } = http ?? {};
        const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method, body });
        const text = await response.text();
        assertEquals(response.status, expect.httpStatus);
        if (expect.contentType !== undefined) {
          assertEquals(response.headers.get("content-type"), expect.contentType);
        }
        if (typeof expect.httpBody === "string") assertEquals(text, expect.httpBody);
        if (typeof expect.httpBody === "object") assertEquals(JSON.parse(text), expect.httpBody);
      }
    } finally {
      await server.close(1_000);
    }
  });
}

Deno.test("vectors: every case is played, and every reason is known", () => {
  assertEquals(VECTORS.length, 133);
  const http = VECTORS.filter(({ steps }) => steps.some((step) => step.http)).length;
  const refused = VECTORS.filter((vector) => vector.expect_config_error).length;
  assertEquals(COUNTED.length + http + refused, VECTORS.length);
});

async function checkStep(fixture: ServiceFixture, vector: Vector, step: VectorStep): Promise<void> {
  const { expect } = step;
  if (step.reload !== undefined) {
    const { rules } = loadRules(step.reload);
    if (rules !== undefined) {
      fixture.service.setRules(rules);
      fixture.stats.service.configLoadSuccess++;
    }
    assertEquals(rules !== undefined, expect.accepted);
    return;
  }
  const request = readRateLimitRequest(JSON.stringify(step.request));
  if (expect.error !== undefined) {
    const error = await failure(() => fixture.service.shouldRateLimit(request));
    assertEquals(error?.message, expect.error.grpcMessage);
    return;
  }
  const nowSeconds = Math.floor(fixture.clock.now() / 1000);
  const rules = fixture.service.rules ?? rulesOf(vector.config);
  const context = { nowSeconds, random: () => 0.5, policy: policyOf(settingsOf(vector)) };
  const plan = planHits(rules, request, context);
  assertEquals<unknown>(plan.descriptors.map(({ hit }) => hit?.key ?? ""), expect.cacheKeys);
  const matched = request.descriptors.map(({ entries, limit }, index) => {
    if (limit !== undefined && rules.domains.has(request.domain)) return plan.descriptors[index]?.limit;
    const table = rules.domains.get(request.domain);
    return table === undefined ? undefined : matchLimit(table, entries);
  });
  const shown = matched.map((limit, index) =>
    limit === undefined ? null : {
      metricKey: metricKey(limit, request.domain, request.descriptors[index]?.entries ?? []),
      ...matchedLimit(limit),
    }
  );
  assertEquals<unknown>(shown, expect.matched);
  const decision = await fixture.service.shouldRateLimit(request);
  assertEquals(decisionAsVector(decision), expectedDecision(expect));
}

function matchedLimit({ requestsPerUnit, unit, unlimited, shadowMode }: RateLimit) {
  return { requestsPerUnit, unit: unit ?? "UNKNOWN", unlimited, shadowMode };
}

/**
 * Every counter: those that a case does not list, or all where it lists none, are 0. Loads of the
 * configuration count in the area `reload` alone.
 */
function checkStats(fixture: ServiceFixture, vector: Vector): void {
  const expected = vector.steps.at(-1)?.expect_stats_total;
  const stats = fixture.nonZeroStats();
  const loads = "ratelimit.service.config_load_success";
  if (vector.area === "reload") stats[loads] = (stats[loads] ?? 0) + 1;
  assertEquals(stats, { ...expected });
}

/** What is counted since `begin`, by `performance.now()`. */
async function checkCounters(redis: RedisServer, vector: Vector, begin: number): Promise<void> {
  for (const [key, { added, expires }] of expectedCounters(vector)) {
    const count = await redis.command("GET", key);
    const ttl = Number(await redis.command("TTL", key));
    const passed = (performance.now() - begin) / 1_000;
    // Where the machine took longer than a key lives, it may be gone.
    if (added > 0 && passed >= expires) continue;
    assertEquals([key, Number(count ?? 0)], [key, added]);
    if (added > 0) assertEquals([key, ttl >= Math.floor(expires - passed) - 1], [key, true]);
  }
}

async function openKv(redis: RedisServer): Promise<KvCache> {
  const cache = openKvCache(redis.url);
  await cache.ready;
  return cache;
}

async function failure(run: () => unknown): Promise<Error | undefined> {
  try {
    await run();
  } catch (error) {
    return error instanceof Error ? error : undefined;
  }
  return undefined;
}
