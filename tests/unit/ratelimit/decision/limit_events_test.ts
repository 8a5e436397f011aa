import { assertEquals } from "#assert";
import type { Decision } from "../../../../src/ratelimit/decision.ts";
import type { LimitEventSink, LimitFact } from "../../../../src/ratelimit/decision/limit_events.ts";
import type { Descriptor } from "../../../../src/ratelimit/request.ts";
import { FailingCache } from "../../../harness/failing_cache.ts";
import { ServiceFixture, type ServiceFixtureOptions } from "../../../harness/service_fixture.ts";

function rule(key: string, fields: string, limit = "unit: minute, requests_per_unit: 5"): string {
  return `- key: ${key}\n  ${fields}\n  rate_limit: { ${limit} }\n`;
}

const RULES = {
  "d.yaml": "domain: d\ndescriptors:\n" +
    rule("over", "events: [over_limit]") +
    rule("near", "events: [near_limit]") +
    rule("both", "events: [over_limit, near_limit]") +
    rule("silent", "quota_mode: false") +
    rule("shadow", "events: [over_limit]\n  shadow_mode: true") +
    rule("zero", "events: [over_limit]", "unit: day, requests_per_unit: 0") +
    rule(
      "sliding",
      "events: [over_limit, near_limit]",
      "unit: minute, requests_per_unit: 5, algorithm: sliding_window",
    ) +
    rule(
      "bucket",
      "events: [over_limit, near_limit]",
      "unit: second, requests_per_unit: 1, algorithm: token_bucket, burst: 5",
    ) +
    rule("flight", "events: [over_limit]", "algorithm: concurrency, max_in_flight: 1, lease: 60s"),
};

class Facts implements LimitEventSink {
  readonly facts: LimitFact[] = [];

  note(facts: readonly LimitFact[]): void {
    this.facts.push(...facts);
  }
}

interface Asked {
  readonly key: string;
  readonly times?: number;
  readonly descriptor?: Partial<Descriptor>;
  readonly hitsAddend?: number;
}

/** The facts of these calls as `event value hits`, and the decisions. */
async function factsOf(asked: readonly Asked[], options: Partial<ServiceFixtureOptions> = {}) {
  const sink = new Facts();
  await using fixture = new ServiceFixture({ files: RULES, limitEvents: sink, ...options });
  const decisions: (Decision | string)[] = [];
  for (const { key, times = 1, descriptor = {}, hitsAddend = 1 } of asked) {
    const descriptors = [{ entries: [{ key, value: "a" }], ...descriptor }];
    for (let time = 0; time < times; time++) {
      const decision = fixture.service.shouldRateLimit({ domain: "d", descriptors, hitsAddend });
      decisions.push(await Promise.resolve(decision).catch((error) => String(error)));
    }
  }
  return { facts: sink.facts, decisions };
}

const CASES: readonly {
  name: string;
  asked: readonly Asked[];
  options?: Partial<ServiceFixtureOptions>;
  facts: readonly string[];
}[] = [
  { name: "within its limit", asked: [{ key: "over", times: 5 }], facts: [] },
  {
    name: "over its limit, each refused call",
    asked: [{ key: "over", times: 7 }],
    facts: ["over_limit 1", "over_limit 1"],
  },
  {
    name: "a call of which some hits are over",
    asked: [{ key: "over", hitsAddend: 8 }],
    facts: ["over_limit 3"],
  },
  { name: "near its limit, and then over it", asked: [{ key: "near", times: 7 }], facts: ["near_limit 1"] },
  {
    name: "both events in one call",
    asked: [{ key: "both", hitsAddend: 8 }],
    facts: ["near_limit 1", "over_limit 3"],
  },
  { name: "a rule without events", asked: [{ key: "silent", times: 9 }], facts: [] },
  {
    name: "a rule in shadow mode, whose calls are allowed",
    asked: [{ key: "shadow", times: 6 }],
    facts: ["over_limit 1 shadow"],
  },
  {
    name: "shadow mode of the whole service",
    asked: [{ key: "over", times: 6 }],
    options: { policy: { shadowMode: true } },
    facts: ["over_limit 1 shadow"],
  },
  { name: "a limit of 0", asked: [{ key: "zero" }], facts: ["over_limit 1"] },
  {
    name: "a refused call of a sliding window takes nothing",
    asked: [{ key: "sliding", times: 7 }],
    facts: ["near_limit 1", "over_limit 1", "over_limit 1"],
  },
  {
    name: "a token bucket",
    asked: [{ key: "bucket", hitsAddend: 6 }],
    facts: ["over_limit 6"],
  },
  { name: "too many in flight", asked: [{ key: "flight", times: 2 }], facts: ["over_limit 1"] },
  {
    name: "hits that are given back",
    asked: [{ key: "flight", times: 2 }, { key: "flight", descriptor: { isNegativeHits: true } }],
    facts: ["over_limit 1"],
  },
  {
    name: "a question that counts nothing",
    asked: [{ key: "over", times: 5 }, { key: "over", descriptor: { hitsAddend: 0 } }],
    facts: [],
  },
  {
    name: "a limit in the request, which no rule has",
    asked: [{ key: "over", times: 3, descriptor: { limit: { requestsPerUnit: 1, unit: "MINUTE" } } }],
    facts: [],
  },
  {
    name: "refusals that the local cache knows",
    asked: [{ key: "over", times: 8 }],
    options: { localCacheBytes: 10_000 },
    facts: ["over_limit 1", "over_limit 1", "over_limit 1"],
  },
  {
    name: "denied without a count",
    asked: [{ key: "over" }],
    options: { cache: new FailingCache(["x"]), policy: { onCacheFailure: "deny" } },
    facts: [],
  },
  {
    name: "a cache that fails",
    asked: [{ key: "over" }],
    options: { cache: new FailingCache(["x"]) },
    facts: [],
  },
];

for (const { name, asked, options, facts } of CASES) {
  Deno.test(`facts of decisions: ${name}`, async () => {
    const found = (await factsOf(asked, options)).facts;
    assertEquals(
      found.map(({ event, hits, isShadow }) => `${event} ${hits}${isShadow ? " shadow" : ""}`),
      facts,
    );
  });
}

Deno.test("decisions and statistics are the same with events and without", async () => {
  const silent = RULES["d.yaml"].replaceAll(/events: \[.*\]/g, "quota_mode: false");
  for (const localCacheBytes of [0, 10_000]) {
    for (const { asked } of CASES) {
      const [told, untold] = [
        await factsOf(asked, { localCacheBytes }),
        await factsOf(asked, { localCacheBytes, files: { "d.yaml": silent } }),
      ];
      assertEquals(told.decisions, untold.decisions);
      assertEquals(untold.facts, []);
    }
  }
});

Deno.test("the entries of a fact are short and well-formed, whatever the client sent", async () => {
  const values = ["a".repeat(9_000), "caf\udce9"];
  const asked = values.map((value) => ({
    key: "over",
    times: 6,
    descriptor: { entries: [{ key: "over", value }] },
  }));
  const { facts } = await factsOf(asked);
  const shown = facts.map(({ entries }) => entries.map(({ value }) => value.replace(/[\da-f]{64}$/, "HASH")));
  assertEquals(shown, [[`${"a".repeat(64)}~sha256_HASH`], ["caf\\xe9~sha256_HASH"]]);
});

Deno.test("a fact has the request, the rule and the counter", async () => {
  const [fact] = (await factsOf([{ key: "over", times: 6 }])).facts;
  assertEquals(fact?.entries, [{ key: "over", value: "a" }]);
  assertEquals([fact?.domain, fact?.metricKey, fact?.key], ["d", "d.over", "d_over_a_1699999980"]);
  assertEquals(fact?.limit.events?.at, "d.yaml:3:3");
  assertEquals(fact?.taken, undefined);
});
