import { assertEquals, assertNotEquals, assertRejects } from "#assert";
import { MemoryCache } from "../../../../src/cache/memory_cache.ts";
import type { Policy } from "../../../../src/ratelimit/decision/policy.ts";
import type { Descriptor, RateLimitRequest } from "../../../../src/ratelimit/request.ts";
import { changeOf, Simulation } from "../../../../src/ratelimit/forecast/simulation.ts";
import { SimulationTally } from "../../../../src/ratelimit/forecast/simulation_tally.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";
import { bySize, SOAK_SEED } from "../../../soak/soak_options.ts";
import { PLAIN_POLICY, rulesOf, ServiceFixture } from "../../../harness/service_fixture.ts";

const START = 1_700_000_000;
const RULES = `
domain: d
descriptors:
- key: plain
  rate_limit: {unit: minute, requests_per_unit: 3}
- key: shadow
  shadow_mode: true
  rate_limit: {unit: second, requests_per_unit: 1}
- key: quota
  quota_mode: true
  rate_limit: {unit: minute, requests_per_unit: 2}
- key: free
  rate_limit: {unlimited: true}
- key: named
  rate_limit: {unit: hour, requests_per_unit: 4, name: n}
- key: replacing
  rate_limit: {unit: minute, requests_per_unit: 5, replaces: [{name: n}]}
- key: shared
  value: a*
  share_threshold: true
  rate_limit: {unit: minute, requests_per_unit: 4, unit_multiplier: 2}
- key: several
  value: {regex: "^[a-w]"}
  share_threshold: true
  rate_limit: {unit: minute, requests_per_unit: 3}
- key: several
  value: {in: [x, y]}
  rate_limit: {unit: minute, requests_per_unit: 2}
`;
const KEYS = ["plain", "shadow", "quota", "free", "named", "replacing", "shared", "several", "none"];

function requestOf(...descriptors: Descriptor[]): RateLimitRequest {
  return { domain: "d", hitsAddend: 0, descriptors };
}

function descriptorOf(key: string, value = "v"): Descriptor {
  return { entries: [{ key, value }] };
}

function simulationOf(
  text: string,
  policy: Partial<Policy> = {},
  clock = new FakeClock(START * 1_000),
): Simulation {
  const cache = new MemoryCache({ maxKeys: 1_000, clock });
  return new Simulation({
    rules: rulesOf({ "r.yaml": text }),
    cache,
    policy: { ...PLAIN_POLICY, ...policy },
  });
}

function randomDescriptor(random: () => number): Descriptor {
  const key = KEYS[Math.floor(random() * KEYS.length)] ?? "";
  const chance = random();
  return {
    ...descriptorOf(key, ["a", "ab", ""][Math.floor(random() * 3)]),
    ...(chance < 0.1 ? { limit: { requestsPerUnit: 2, unit: "MINUTE" } } : {}),
    ...(chance > 0.6 ? { hitsAddend: Math.floor(random() * 4) } : {}),
    ...(chance > 0.9 ? { isNegativeHits: true } : {}),
  };
}

const POLICIES: readonly Partial<Policy>[] = [
  {},
  { shadowMode: true },
  { quotaMode: true },
  { stopIncrementWhenOverLimit: true },
  { expirationJitterMaxSeconds: 300, cacheKeyPrefix: "p" },
];

for (const policy of POLICIES) {
  Deno.test(`simulation: decides as the service does, with ${JSON.stringify(policy)}`, async () => {
    const random = seededRandom(10 + SOAK_SEED);
    await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, policy, at: START });
    const simulation = simulationOf(RULES, policy, fixture.clock);
    const seen = new Set<string>();
    for (let round = 0; round < bySize({ short: 400, full: 4_000 }); round++) {
      fixture.clock.advance(Math.floor(random() * 3) * 1_000);
      const descriptors = Array.from(
        { length: 1 + Math.floor(random() * 4) },
        () => randomDescriptor(random),
      );
      const request = { domain: "d", hitsAddend: Math.floor(random() * 3), descriptors };
      const decision = await fixture.service.shouldRateLimit(request);
      const simulated = await simulation.decide(request, fixture.clock.now() / 1_000);
      assertEquals({
        overallCode: simulated.overallCode,
        statuses: simulated.statuses.map(({ code, limit, remaining }) => [code, limit?.current, remaining]),
      }, {
        overallCode: decision.overallCode,
        statuses: decision.statuses.map(({ code, currentLimit, limitRemaining }) => {
          return [code, currentLimit, limitRemaining];
        }),
      });
      for (const { code, shadowed } of simulated.statuses) seen.add(`${code} ${shadowed}`);
      seen.add(simulated.overallCode);
    }
    // A comparison of requests that are all OK would show nothing.
    const codes = ["OK", "OK false", "OK true", "OVER_LIMIT false"];
    assertEquals([...seen].sort().filter((text) => text !== "OVER_LIMIT"), codes);
    assertEquals(seen.has("OVER_LIMIT"), policy.shadowMode !== true);
  });
}

Deno.test("simulation: a request that can never be answered is refused, and counts nothing", async () => {
  const simulation = simulationOf(RULES);
  const wrong = requestOf(descriptorOf("plain"), {
    entries: [],
    limit: { requestsPerUnit: 1, unit: undefined },
  });
  const error = await assertRejects(() => simulation.decide(wrong, START));
  assertEquals(
    error.message,
    "descriptor 1 must name a known unit in its limit: SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR",
  );
  const { statuses } = await simulation.decide(requestOf(descriptorOf("plain")), START);
  assertEquals(statuses.map(({ remaining }) => remaining), [2]);
});

const TWO = "unit: minute, requests_per_unit: 2";

/** The limit before, the one after, and how the second of two equal requests changes. */
const CHANGES: readonly [
  title: string,
  before: string,
  after: string,
  kind?: "toOverLimit" | "toOk" | "otherLimit",
][] = [
  ["the same rule", TWO, TWO],
  ["a name", TWO, `${TWO}, name: n`],
  ["a lower limit", TWO, "unit: minute, requests_per_unit: 1", "toOverLimit"],
  ["a higher limit", "unit: minute, requests_per_unit: 1", TWO, "toOk"],
  ["another number", TWO, "unit: minute, requests_per_unit: 3", "otherLimit"],
  ["another unit", TWO, "unit: hour, requests_per_unit: 2", "otherLimit"],
  ["another window", TWO, `${TWO}, unit_multiplier: 5`, "otherLimit"],
  ["no limit any more", TWO, "unlimited: true", "otherLimit"],
];

for (const [title, before, after, kind] of CHANGES) {
  Deno.test(`simulation change: ${title}`, async () => {
    const rule = (limit: string) => `domain: d\ndescriptors:\n- key: k\n  rate_limit: {${limit}}\n`;
    const [old, now] = [simulationOf(rule(before)), simulationOf(rule(after))];
    const request = requestOf(descriptorOf("k"));
    await old.decide(request, START);
    await now.decide(request, START);
    const change = changeOf(await old.decide(request, START), await now.decide(request, START));
    const overall = kind === "otherLimit" ? undefined : kind;
    assertEquals(change, kind === undefined ? undefined : { kind, overall, statuses: [kind] });
  });
}

Deno.test("simulation change: of the overall code alone, and what a shadow hides", async () => {
  const rule = (flags: string) =>
    `domain: d\ndescriptors:\n- key: k\n${flags}  rate_limit: {unit: minute, requests_per_unit: 0}\n`;
  const request = requestOf(descriptorOf("k"), {
    ...descriptorOf("k"),
    limit: { requestsPerUnit: 9, unit: "DAY" },
  });
  const decided = async (flags: string, policy: Partial<Policy> = {}) =>
    await simulationOf(rule(flags), policy).decide(request, START);
  const over = await decided("");
  const shadowed = await decided("  shadow_mode: true\n");
  assertEquals(changeOf(over, await decided("", { shadowMode: true })), {
    kind: "toOk",
    overall: "toOk",
    statuses: [undefined, undefined],
  });
  assertEquals(changeOf(over, shadowed)?.statuses, ["toOk", undefined]);
  assertEquals(shadowed.statuses.map((status) => status.shadowed), [true, false]);
  assertNotEquals(over, shadowed);
});

Deno.test("simulation change: another window of a rule with several, which is not the tightest", async () => {
  const decided = async (perDay: number) => {
    const windows = `[{ ${TWO} }, { unit: day, requests_per_unit: ${perDay} }]`;
    const simulation = simulationOf(`domain: d\ndescriptors:\n- key: k\n  rate_limits: ${windows}\n`);
    return await simulation.decide(requestOf(descriptorOf("k")), START);
  };
  assertEquals(changeOf(await decided(100), await decided(100)), undefined);
  assertEquals(changeOf(await decided(100), await decided(10))?.kind, "otherLimit");
});

Deno.test("simulation tally: by rule, with limits of requests and none at all behind", async () => {
  const tally = new SimulationTally();
  const [old, now] = [simulationOf(RULES), simulationOf(RULES.replace("per_unit: 3", "per_unit: 1"))];
  const own: Descriptor = { ...descriptorOf("own"), limit: { requestsPerUnit: 0, unit: "DAY" } };
  const request = requestOf(descriptorOf("none"), own, descriptorOf("plain"), descriptorOf("shadow"));
  for (let round = 0; round < 2; round++) {
    tally.add(await old.decide(request, START), await now.decide(request, START));
  }
  const same = { toOverLimit: 0, toOk: 0, otherLimit: 0 };
  const all = (overLimit: number, shadowed = 0) => ({ decisions: 2, overLimit, shadowed });
  assertEquals(tally.rules, [
    {
      source: "rule",
      rule: "d.plain",
      old: all(0),
      new: all(1),
      changed: { ...same, toOverLimit: 1, otherLimit: 1 },
    },
    { source: "rule", rule: "d.shadow", old: all(0, 1), new: all(0, 1), changed: same },
    { source: "none", rule: "", old: all(0), new: all(0), changed: same },
    { source: "request", rule: "", old: all(2), new: all(2), changed: same },
  ]);
  assertEquals([tally.requests, tally.decisions, tally.changes, tally.overLimit], [2, 8, 2, {
    old: 2,
    new: 2,
  }]);
  assertEquals(tally.changedRequests, { toOverLimit: 1, toOk: 0, otherLimit: 1 });
  assertEquals(tally.changedDecisions, { toOverLimit: 1, toOk: 0, otherLimit: 1 });
});
