import { assertEquals } from "#assert";
import { limitText, rulesText } from "../../../src/ratelimit/rules/rules_text.ts";
import type { LimitFact } from "../../../src/ratelimit/decision/limit_events.ts";
import type { Descriptor } from "../../../src/ratelimit/request.ts";
import { FailingCache } from "../../harness/failing_cache.ts";
import { rulesOf, ServiceFixture, type ServiceFixtureOptions } from "../../harness/service_fixture.ts";

const FLIGHT = "rate_limit: {algorithm: concurrency, max_in_flight: 2, lease: 60s}";
const FILES = {
  "r.yaml": `
domain: d
descriptors:
- key: account
  ${FLIGHT}
  descriptors:
  - {key: id, identifies: true, ${FLIGHT}}
  - {key: id, value: free, rate_limit: {unlimited: true}}
- {key: id, identifies: true, detailed_metric: true, on_cache_failure: local, events: [over_limit], ${FLIGHT}}
`,
};

function open(options: Partial<ServiceFixtureOptions> = {}): ServiceFixture {
  return new ServiceFixture({ files: FILES, ...options });
}

/** One hit of a name, or so many; a negative number gives back. */
function named(id: string, hits = 1, account: string | undefined = "ann"): Descriptor {
  const entries = [{ key: "id", value: id }];
  if (account !== "") entries.unshift({ key: "account", value: account });
  return { entries, hitsAddend: Math.abs(hits), isNegativeHits: hits < 0 };
}

async function decided(fixture: ServiceFixture, ...descriptors: Descriptor[]): Promise<string> {
  const { statuses } = await fixture.service.shouldRateLimit({ domain: "d", hitsAddend: 0, descriptors });
  return statuses.map(({ code, limitRemaining, secondsUntilReset }) => {
    return `${code} ${limitRemaining} ${secondsUntilReset}`;
  }).join("; ");
}

Deno.test("named hits: each has its own lease, is given back once, and counts again while it is in flight", async () => {
  await using fixture = open();
  const { clock } = fixture;
  assertEquals(await decided(fixture, named("a")), "OK 1 60");
  clock.advance(40_000);
  assertEquals(await decided(fixture, named("b")), "OK 0 60");
  assertEquals(await decided(fixture, named("c")), "OVER_LIMIT 0 20");
  assertEquals(await decided(fixture, named("c", -1)), "OK 0 60");
  assertEquals(await decided(fixture, named("b", -1)), "OK 1 20");
  assertEquals(await decided(fixture, named("b", -1)), "OK 1 20");
  assertEquals(await decided(fixture, named("a")), "OK 0 60");
  clock.advance(19_999);
  assertEquals(await decided(fixture, named("b")), "OVER_LIMIT 0 1");
  clock.advance(1);
  assertEquals(await decided(fixture, named("b")), "OK 0 60");
  assertEquals(fixture.nonZeroStats(), {
    "ratelimit.service.rate_limit.d.account.id.total_hits": 6,
    "ratelimit.service.rate_limit.d.account.id.over_limit": 2,
    "ratelimit.service.rate_limit.d.account.id.within_limit": 4,
    "ratelimit.service.rate_limit.d.account.id.near_limit": 3,
    "ratelimit.service.rate_limit.d.account.id.returned_hits": 3,
  });
});

Deno.test("named hits: the name is no part of the counter, and other rules match it as ever", async () => {
  await using fixture = open();
  assertEquals(
    await decided(fixture, named("a"), named("b"), named("a", 1, "bob")),
    "OK 1 60; OK 0 60; OK 1 60",
  );
  assertEquals(await decided(fixture, named("free", 9)), "OK 4294967295 undefined");
  assertEquals(await decided(fixture, named("x", 0)), "OVER_LIMIT 0 60");
  // The values of the other rule may be anything.
  const other = { entries: [{ key: "account", value: "ann_id" }] };
  assertEquals(await decided(fixture, other), "OK 1 63");
});

Deno.test("named hits: no length and no bytes of a name lead to another counter or another name", async () => {
  await using fixture = open();
  const ids = ["x".repeat(100_000), `${"x".repeat(100_000)}y`, "\udcff", "\udcfe", ""];
  for (const id of ids) {
    assertEquals(await decided(fixture, named(id), named("other")), "OK 1 60; OK 0 60");
    assertEquals(await decided(fixture, named("third")), "OVER_LIMIT 0 60");
    for (const not of ids) if (not !== id) await decided(fixture, named(not, -1));
    assertEquals(await decided(fixture, named("other", -1), named(id, -1)), "OK 1 60; OK 2 1");
  }
});

Deno.test("named hits: names are not in statistics, over-limit keys and the keys of events", async () => {
  const facts: LimitFact[] = [];
  await using fixture = open({ limitEvents: { note: (noted) => void facts.push(...noted) } });
  for (const id of ["a", "b", "c", "d"]) await decided(fixture, named(id, 1, ""));
  assertEquals(Object.keys(fixture.nonZeroStats()).filter((name) => !name.includes("rate_limit.d.id.")), []);
  assertEquals(new Set(facts.map(({ key }) => key)), new Set(["d_id_leases60"]));
  assertEquals(facts.length, 2);
  const top = fixture.service.tally.overLimitKeys.top(5, fixture.service.nowSeconds());
  assertEquals(top.map(({ key }) => key), ["d_id"]);
});

Deno.test("named hits: the fallback counts them while the cache fails", async () => {
  await using fixture = open({ cache: new FailingCache(["x", "x", "x", "x", "x"]) });
  const answers = [];
  for (const [id, hits] of [["a", 1], ["b", 1], ["c", 1], ["a", -1], ["c", 1]] as const) {
    answers.push(await decided(fixture, named(id, hits, "")));
  }
  assertEquals(answers, ["OK 1 60", "OK 0 60", "OVER_LIMIT 0 60", "OK 1 60", "OK 0 60"]);
});

Deno.test("named hits: STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT reads first", async () => {
  await using fixture = open({ policy: { stopIncrementWhenOverLimit: true } });
  await decided(fixture, named("a", 2));
  assertEquals(await decided(fixture, named("b"), named("b", 1, "bob")), "OVER_LIMIT 0 60; OK 2 1");
  assertEquals(await decided(fixture, named("a", -1), named("b", 1, "bob")), "OK 1 60; OK 1 60");
});

Deno.test("named hits: texts of the rules show them", () => {
  const rules = rulesOf(FILES);
  const [, limit] = rules.limits;
  assertEquals(limit === undefined ? "" : limitText(limit), "2 in flight, identified");
  assertEquals(
    rulesText(rules).split("\n").filter((line) => line.startsWith("d.id")),
    [
      "d.id: unit=UNKNOWN requests_per_unit=2, shadow_mode: false, quota_mode: false, algorithm: concurrency, " +
      "lease: 60s, identifies: true, on_cache_failure: local",
    ],
  );
});
