import { readRateLimitRequest } from "../../src/http/routes/rate_limit_json.ts";
import { policyOf } from "../../src/serve/decisions.ts";
import type { CounterCache } from "../../src/ratelimit/decision/counter_cache.ts";
import { matchLimit } from "../../src/ratelimit/rules/match_rules.ts";
import type { RateLimit } from "../../src/ratelimit/rules/rules.ts";
import { planHits } from "../../src/ratelimit/decision/plan.ts";
import { metricKey } from "../../src/ratelimit/rules/stat_path.ts";
import { readSettings, type Settings } from "../../src/settings/read_settings.ts";
import { assertEquals } from "./assert.ts";
import { loadRules, rulesOf, ServiceFixture, type ServiceFixtureOptions } from "./service_fixture.ts";
import { decisionAsVector, expectedDecision, type Vector, VECTORS, type VectorStep } from "./vectors.ts";

/** The cases whose requests are decided by the service itself. */
export const COUNTED = VECTORS.filter(({ expect_config_error, steps }) =>
  !expect_config_error && steps.every(({ http }) => !http)
);

/** The service of a case, which counts in the embedded cache unless another is given. */
export function vectorFixture(vector: Vector, cache?: CounterCache): ServiceFixture {
  return new ServiceFixture({ ...vectorOptions(vector), ...(cache === undefined ? {} : { cache }) });
}

/** The rules and settings of a case, and its first time: to move there, a clock would run millions of timers. */
export function vectorOptions(vector: Vector): ServiceFixtureOptions {
  const settings = settingsOf(vector);
  const [at] = vector.steps.flatMap((step) => step.at ?? []);
  return {
    ...(at === undefined ? {} : { at }),
    files: vector.config,
    policy: policyOf(settings),
    localCacheBytes: settings.LOCAL_CACHE_SIZE_IN_BYTES,
  };
}

/** Plays the steps of a case and compares every decision, and the statistics at the end. */
export async function playVector(fixture: ServiceFixture, vector: Vector): Promise<void> {
  for (const step of vector.steps) {
    if (step.at !== undefined) fixture.clock.advance(step.at * 1000 - fixture.clock.now());
    await checkStep(fixture, vector, step);
  }
  checkStats(fixture, vector);
}

function settingsOf(vector: Vector): Settings {
  return readSettings({ BACKEND_TYPE: "memory", ...vector.env }).settings;
}

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

async function failure(run: () => unknown): Promise<Error | undefined> {
  try {
    await run();
  } catch (error) {
    return error instanceof Error ? error : undefined;
  }
  return undefined;
}
