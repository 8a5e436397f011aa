import { assert, assertEquals } from "#assert";
import { DecisionTally } from "../../../src/ratelimit/decision/decision_tally.ts";
import { recordReported } from "../../../src/ratelimit/decision/reported_hits.ts";
import { RuleCounts } from "../../../src/ratelimit/decision/rule_counts.ts";
import { FailingCache } from "../../harness/failing_cache.ts";
import type { FakeClock } from "../../harness/fake_clock.ts";
import { laterCache } from "../../harness/known_requests_pair.ts";
import { rulesOf, ServiceFixture, type ServiceFixtureOptions } from "../../harness/service_fixture.ts";

const RULES = {
  "d.yaml": `domain: d
descriptors:
- key: k
  rate_limit: { unit: minute, requests_per_unit: 2 }
- key: second
  rate_limit: { unit: second, requests_per_unit: 1 }
- key: shadow
  shadow_mode: true
  rate_limit: { unit: minute, requests_per_unit: 1 }
- key: free
  rate_limit: { unlimited: true }
- key: detail
  detailed_metric: true
  rate_limit: { unit: minute, requests_per_unit: 2 }
`,
};
const WINDOWS = `domain: d
descriptors:
- key: several
  rate_limits: [{ unit: minute, requests_per_unit: 2 }, { unit: day, requests_per_unit: 9 }]
`;

async function ask(fixture: ServiceFixture, key: string, value: string, hitsAddend = 0): Promise<string> {
  const descriptors = [{ entries: [{ key, value }] }];
  return (await fixture.service.shouldRateLimit({ domain: "d", hitsAddend, descriptors })).overallCode;
}

async function askTimes(fixture: ServiceFixture, times: number, key: string, value: string): Promise<void> {
  for (let time = 0; time < times; time++) await ask(fixture, key, value);
}

/** Decisions, those over a limit, and keys with the hits that were over. */
function tallied(
  { service, clock }: ServiceFixture,
  tally = service.tally,
): [number, number, [string, number][]] {
  const { total, overLimit, overLimitKeys } = tally;
  const top = overLimitKeys.top(10, clock.now() / 1_000);
  return [total, overLimit, top.map(({ key, count }) => [key, count])];
}

/** A cache that counts nothing, the first times. */
function failingCache(): FailingCache {
  return new FailingCache(["x", "x", "x"]);
}

/** Requests, and the tally after them. */
const CASES: readonly {
  name: string;
  options?: Partial<ServiceFixtureOptions>;
  asked: readonly (readonly [times: number, key: string, value: string])[];
  tally: ReturnType<typeof tallied>;
}[] = [
  {
    name: "what is within its limit has no key",
    asked: [[2, "k", "a"], [9, "free", "a"]],
    tally: [11, 0, []],
  },
  {
    name: "what is over counts by its key, without the window",
    asked: [[5, "k", "a"], [3, "k", "b_c"]],
    tally: [8, 4, [["d_k_a", 3], ["d_k_b_c", 1]]],
  },
  {
    name: "the prefix of cache keys is left out",
    options: { policy: { cacheKeyPrefix: "pre_" } },
    asked: [[3, "k", "a"]],
    tally: [3, 1, [["d_k_a", 1]]],
  },
  {
    name: "what the local cache knows counts as well",
    options: { localCacheBytes: 1_000_000 },
    asked: [[6, "k", "a"]],
    tally: [6, 4, [["d_k_a", 4]]],
  },
  {
    name: "a rule in shadow mode has its keys, and no decision is over",
    asked: [[3, "shadow", "a"]],
    tally: [3, 0, [["d_shadow_a", 2]]],
  },
  {
    name: "global shadow mode hides no key",
    options: { policy: { shadowMode: true } },
    asked: [[3, "k", "a"]],
    tally: [3, 0, [["d_k_a", 1]]],
  },
  {
    name: "what is denied because the cache fails has no key",
    options: { cache: failingCache(), policy: { onCacheFailure: "deny" } },
    asked: [[3, "k", "a"]],
    tally: [3, 3, []],
  },
];

for (const { name, options, asked, tally } of CASES) {
  Deno.test(`tally: ${name}`, async () => {
    await using fixture = new ServiceFixture({ files: RULES, ...options });
    for (const [times, key, value] of asked) await askTimes(fixture, times, key, value);
    assertEquals(tallied(fixture), tally);
  });
}

Deno.test("tally: windows of one key count together, and half of it after ten minutes", async () => {
  await using fixture = new ServiceFixture({ files: RULES });
  for (let second = 0; second < 3; second++) {
    await askTimes(fixture, 2, "second", "a");
    fixture.clock.advance(1_000);
  }
  assertEquals(tallied(fixture), [6, 3, [["d_second_a", 3]]]);
  fixture.clock.advance(600_000);
  assertEquals(tallied(fixture), [6, 3, [["d_second_a", 1.5]]]);
});

Deno.test("tally: a call that failed is no decision", async () => {
  await using fixture = new ServiceFixture({ files: RULES, cache: failingCache() });
  await ask(fixture, "k", "a").catch(() => {});
  assertEquals(tallied(fixture), [0, 0, []]);
});

Deno.test("tally: hits of a call are what counts for its key", async () => {
  await using fixture = new ServiceFixture({ files: RULES });
  await ask(fixture, "k", "a", 7);
  assertEquals(tallied(fixture), [1, 1, [["d_k_a", 5]]]);
});

Deno.test("counts of a rule are there whatever its metric key, and outlive a reload", async () => {
  await using fixture = new ServiceFixture({ files: RULES });
  await askTimes(fixture, 3, "k", "a");
  await askTimes(fixture, 3, "detail", "a");
  await askTimes(fixture, 1, "detail", "b");
  const counts = () =>
    (fixture.service.rules?.limits ?? []).map(({ rule }, index) => {
      const count = fixture.service.ruleCounts?.at(index);
      const { totalHits = 0, overLimit = 0, nearLimit = 0, withinLimit = 0 } = count ?? {};
      return [rule?.fullKey, count !== undefined, totalHits, overLimit, nearLimit, withinLimit];
    });
  const k = ["d.k", true, 3, 1, 1, 2];
  const detail = ["d.detail", true, 4, 1, 1, 3];
  const rest = [["d.second", true, 0, 0, 0, 0], ["d.shadow", true, 0, 0, 0, 0], [
    "d.free",
    false,
    0,
    0,
    0,
    0,
  ]];
  assertEquals(counts(), [k, ...rest, detail]);
  const reversed = RULES["d.yaml"].replace(
    "- key: k\n",
    "- key: first\n  rate_limit: { unlimited: true }\n- key: k\n",
  );
  fixture.service.setRules(rulesOf({ "d.yaml": reversed }));
  assertEquals(counts(), [["d.first", false, 0, 0, 0, 0], k, ...rest, detail]);
});

Deno.test("the sum of a rule includes calls that were in flight at a reload", async () => {
  const createCache = (clock: FakeClock) => laterCache(clock, 100);
  await using fixture = new ServiceFixture({ files: RULES, createCache });
  const { service } = fixture;
  await ask(fixture, "detail", "a");
  const inFlight = ask(fixture, "detail", "a");
  service.setRules(rulesOf(RULES));
  await inFlight;
  const index = service.rules?.limits.findIndex(({ rule }) => rule?.fullKey === "d.detail") ?? -1;
  assertEquals(service.ruleCounts?.at(index)?.totalHits, 2);
});

Deno.test("rules that read alike share their sum, before a reload and after it", async () => {
  const files = {
    "one.yaml": `domain: d
descriptors:
- key: a
  descriptors:
  - key: b
    detailed_metric: true
    rate_limit: { unit: minute, requests_per_unit: 2 }
`,
    "two.yaml": `domain: d.a
descriptors:
- key: b
  detailed_metric: true
  rate_limit: { unit: minute, requests_per_unit: 2 }
`,
  };
  await using fixture = new ServiceFixture({ files });
  const { service } = fixture;
  const hits = () => [0, 1].map((index) => service.ruleCounts?.at(index)?.totalHits);
  const seen = [];
  for (let reload = 0; reload < 3; reload++) {
    for (const [domain, hitsAddend, keys] of [["d", 3, ["a", "b"]], ["d.a", 1, ["b"]]] as const) {
      const entries = keys.map((key) => ({ key, value: "x" }));
      await service.shouldRateLimit({ domain, hitsAddend, descriptors: [{ entries }] });
    }
    seen.push(hits());
    service.setRules(rulesOf(files));
  }
  assertEquals(seen, [[4, 4], [8, 8], [12, 12]]);
});

Deno.test("sums continue while the bookkeeping of a reload has pauses, and through a second reload", async () => {
  const keys = Array.from({ length: 300 }, (_, index) => `k${index}`);
  const files = {
    "d.yaml": `domain: d\ndescriptors:\n` +
      keys.map((key) =>
        `- key: ${key}\n  detailed_metric: true\n  rate_limit: { unit: minute, requests_per_unit: 9 }\n`
      ).join(""),
  };
  await using fixture = new ServiceFixture({ files });
  const { service, clock } = fixture;
  const call = async () => {
    const descriptors = keys.map((key) => ({ entries: [{ key, value: "x" }] }));
    await service.shouldRateLimit({ domain: "d", hitsAddend: 1, descriptors });
  };
  const sums = () => new Set(keys.map((_, index) => service.ruleCounts?.at(index)?.totalHits));
  await call();
  // Each look at the clock takes as long as a slice.
  let elapsedMs = 0;
  const idle = clock.waiting;
  clock.elapsed = () => elapsedMs += 10;
  for (const expected of [2, 3]) {
    service.setRules(rulesOf(files));
    assertEquals(clock.waiting, idle + 1);
    await call();
    assertEquals(sums(), new Set([expected]));
  }
  for (let slices = 0; clock.waiting > idle; slices++) {
    assertEquals(slices < 100, true);
    clock.advance(0);
  }
  assertEquals(sums(), new Set([3]));
  service.setRules(rulesOf({ "d.yaml": files["d.yaml"].replace("key: k0\n", "key: other\n") }));
  await call();
  const of = (index: number) => service.ruleCounts?.at(index)?.totalHits;
  assertEquals([of(0), of(1)], [0, 4]);
  // What is taken does not come back from the previous rules.
  assertEquals(new Set(service.ruleCounts?.takeSums().map(([, { totalHits }]) => totalHits)), new Set([4]));
  assertEquals([of(0), of(1)], [0, 0]);
});

Deno.test("tally: what threads take one after the other is together what one would have", async () => {
  const process = new DecisionTally();
  await using fixture = new ServiceFixture({ files: RULES });
  const take = () => {
    const nowSeconds = fixture.clock.now() / 1_000;
    process.add(fixture.service.tally.take(nowSeconds), nowSeconds);
  };
  await askTimes(fixture, 5, "k", "a");
  take();
  await askTimes(fixture, 1, "k", "a");
  await askTimes(fixture, 3, "k", "b".repeat(300));
  take();
  take();
  assertEquals(tallied(fixture), [0, 0, []]);
  const long = `d_k_${"b".repeat(251)}…`;
  assertEquals(tallied(fixture, process), [9, 5, [["d_k_a", 4], [long, 1]]]);
});

Deno.test("the sums of other threads are added to those of the rule", async () => {
  await using fixture = new ServiceFixture({ files: RULES });
  const { service, stats } = fixture;
  const rules = rulesOf(RULES);
  const process = new RuleCounts(rules, stats);
  for (const value of ["a", "b"]) {
    await askTimes(fixture, 3, "detail", value);
    process.addSums(service.ruleCounts?.takeSums() ?? []);
  }
  assertEquals(service.ruleCounts?.takeSums(), []);
  const index = rules.limits.findIndex(({ rule }) => rule?.fullKey === "d.detail");
  assertEquals(process.at(index), { totalHits: 6, overLimit: 2, nearLimit: 2, withinLimit: 4 });
});

for (
  const [name, quotaKey] of [["k", "d_k_a_quota1.1.1"], ["several", "{d_several_a}_quota1.7.1"]] as const
) {
  Deno.test(`tally: requests that a client refused are counted under the key that decisions of "${name}" have`, async () => {
    await using fixture = new ServiceFixture({ files: name === "k" ? RULES : { "d.yaml": WINDOWS } });
    await askTimes(fixture, 3, name, "a");
    const { service, stats, clock } = fixture;
    const limit = service.rules?.limits.find(({ rule }) => rule?.fullKey === `d.${name}`);
    assert(limit !== undefined);
    const entries = [{ key: name, value: "a" }];
    const hits = { limit, domain: "d", entries, key: quotaKey, allowed: 2, denied: 5, shadow: 0 };
    const { tally, ruleCounts: counts } = service;
    recordReported(hits, { stats, tally, counts, limitEvents: undefined, now: clock.now() });
    assertEquals(tallied(fixture), [10, 6, [[`d_${name}_a`, 6]]]);
  });
}
