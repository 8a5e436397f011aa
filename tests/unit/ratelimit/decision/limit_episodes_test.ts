import { assert, assertEquals } from "#assert";
import { LimitEpisodes, type LimitReport } from "../../../../src/ratelimit/decision/limit_episodes.ts";
import type { LimitEventSink, LimitFact } from "../../../../src/ratelimit/decision/limit_events.ts";
import { ServiceFixture } from "../../../harness/service_fixture.ts";

const RULES = {
  "d.yaml": `domain: d
descriptors:
- key: fixed
  events: [over_limit, near_limit]
  rate_limit: { unit: minute, requests_per_unit: 5 }
- key: second
  events: [over_limit]
  rate_limit: { unit: second, requests_per_unit: 0, name: none }
- key: bucket
  events: [over_limit, near_limit]
  shadow_mode: true
  rate_limit: { unit: second, requests_per_unit: 100, algorithm: token_bucket, burst: 5 }
- key: sliding
  events: [over_limit]
  rate_limit: { unit: minute, requests_per_unit: 1, algorithm: sliding_window }
- key: flight
  events: [over_limit]
  rate_limit: { algorithm: concurrency, max_in_flight: 1, lease: 60s }
- key: hidden
  detailed_metric: true
  events: [over_limit]
  events_redact: hash
  rate_limit: { unit: minute, requests_per_unit: 0 }
`,
};

/** A multiple of a minute. */
const START = 1_699_999_980_000;

/** Decisions of a service whose facts become episodes. */
class Bed implements LimitEventSink {
  readonly episodes: LimitEpisodes;
  /** The delay of the counter of the hits. */
  latencyMs = 0;
  readonly #fixture: ServiceFixture;

  constructor(options: Partial<ConstructorParameters<typeof LimitEpisodes>[0]> = {}) {
    this.episodes = new LimitEpisodes({ maxPerSecond: 100, graceMs: 0, ...options });
    this.#fixture = new ServiceFixture({ files: RULES, at: START / 1_000, limitEvents: this });
  }

  note(facts: readonly LimitFact[], now: number): void {
    this.episodes.note(facts, now + this.latencyMs);
  }

  get now(): number {
    return this.#fixture.clock.now();
  }

  advance(ms: number): void {
    this.#fixture.clock.advance(ms);
  }

  async ask(key: string, hitsAddend = 1, value = "a"): Promise<void> {
    const descriptors = [{ entries: [{ key, value }] }];
    await this.#fixture.service.shouldRateLimit({ domain: "d", descriptors, hitsAddend });
  }

  /** The reports: event, hits, start and end in seconds since the start of the test, and `first`. */
  taken(isLast = false): string[] {
    return this.episodes.take(this.now, 100, isLast).map(shown);
  }
}

function shown({ event, hits, startedAt, endsAt, facts }: LimitReport): string {
  const [from, to] = [startedAt, endsAt].map((at) => (at - START) / 1_000);
  return `${event} ${hits} ${from}-${to}${facts === undefined ? "" : " first"}`;
}

Deno.test("an episode in a fixed window: its first report, its hits now and then, and those at its end", async () => {
  const bed = new Bed();
  bed.advance(10_000);
  await bed.ask("fixed", 5);
  await bed.ask("fixed", 2);
  assertEquals(bed.taken(), ["over_limit 2 10-60 first", "near_limit 1 10-60 first"]);
  await bed.ask("fixed");
  assertEquals(bed.taken(), []);
  bed.advance(10_000);
  await bed.ask("fixed", 3);
  assertEquals(bed.taken(), ["over_limit 4 10-60"]);
  bed.advance(29_000);
  await bed.ask("fixed");
  bed.advance(10_999);
  assertEquals(bed.taken(), ["over_limit 1 10-60"]);
  await bed.ask("fixed");
  bed.advance(1);
  assertEquals(bed.taken(), ["over_limit 1 10-60"]);
  assert(bed.episodes.isEmpty);
  await bed.ask("fixed", 6);
  assertEquals(bed.taken(), ["over_limit 1 60-120 first", "near_limit 1 60-120 first"]);
});

Deno.test("an episode whose hits were reported ends without a report", async () => {
  const bed = new Bed();
  await bed.ask("second");
  assertEquals(bed.taken(), ["over_limit 1 0-1 first"]);
  bed.advance(1_000);
  assertEquals(bed.taken(), []);
  assert(bed.episodes.isEmpty);
});

Deno.test("hits whose count comes after the end of their window belong to its episode", async () => {
  const bed = new Bed();
  bed.advance(990);
  await bed.ask("second");
  bed.latencyMs = 15;
  await bed.ask("second");
  await bed.ask("second");
  assertEquals(bed.taken(), ["over_limit 3 0.99-1 first"]);
  await bed.ask("second", 1, "b");
  await bed.ask("second", 1, "b");
  assertEquals(bed.taken(), ["over_limit 2 0.999-1 first"]);
});

Deno.test("an episode that has ended waits for other threads", async () => {
  const bed = new Bed({ graceMs: 2_000 });
  await bed.ask("second");
  assertEquals(bed.taken(), ["over_limit 1 0-1 first"]);
  bed.advance(2_999);
  assertEquals(bed.taken(), []);
  assert(!bed.episodes.isEmpty);
  bed.advance(1);
  assertEquals(bed.taken(), []);
  assert(bed.episodes.isEmpty);
});

Deno.test("an episode of a bucket lasts until it is full, and for 10 seconds without a hit", async () => {
  const bed = new Bed();
  await bed.ask("bucket", 5);
  assertEquals(bed.taken(), ["near_limit 1 0-10 first"]);
  await bed.ask("bucket");
  assertEquals(bed.taken(), ["over_limit 1 0-10 first"]);
  bed.advance(9_000);
  // The bucket is full again, so these are within the limit, and then over it.
  await bed.ask("bucket", 5);
  await bed.ask("bucket", 1);
  bed.advance(1_000);
  assertEquals(bed.taken(), ["over_limit 1 0-19", "near_limit 1 0-19"]);
  bed.advance(9_000);
  assertEquals(bed.taken(), []);
  assert(bed.episodes.isEmpty);
});

Deno.test("the next hits after an episode without windows begin another, although the first was not taken", async () => {
  const bed = new Bed();
  await bed.ask("bucket", 6);
  assertEquals(bed.taken(), ["over_limit 6 0-10 first"]);
  await bed.ask("bucket", 7);
  bed.advance(10_000);
  await bed.ask("bucket", 8);
  assertEquals(bed.taken(), ["over_limit 7 0-10", "over_limit 8 10-20 first"]);
});

for (
  const { key, ends } of [{ key: "sliding", ends: 63.75 }, { key: "flight", ends: 63.75 }]
) {
  Deno.test(`an episode of ${key} lasts until all is free again`, async () => {
    const bed = new Bed();
    await bed.ask(key);
    await bed.ask(key);
    assertEquals(bed.taken(), [`over_limit 1 0-${ends} first`]);
  });
}

Deno.test("the facts of an episode", async () => {
  const bed = new Bed();
  await bed.ask("bucket", 5);
  await bed.ask("bucket");
  await bed.ask("second");
  await bed.ask("hidden");
  await bed.ask("flight", 2);
  const facts = bed.episodes.take(bed.now, 100).map((report) => report.facts);
  const entry = (key: string) => [{ key, value: "a" }];
  const shared = { domain: "d", isShadow: false, redact: undefined };
  const bucket = {
    ...shared,
    isShadow: true,
    entries: entry("bucket"),
    rule: { at: "d.yaml:9:3", metricKey: "d.bucket" },
    limit: { requestsPerUnit: 100, unit: "SECOND", windowSeconds: 1, algorithm: "token_bucket", burst: 5 },
  } as const;
  const found = facts.map((one) => one === undefined ? undefined : { ...one, freeAt: one.freeAt - START });
  assertEquals(found, [
    { ...bucket, freeAt: 10 },
    {
      ...shared,
      entries: entry("second"),
      rule: { at: "d.yaml:6:3", metricKey: "d.second" },
      limit: { requestsPerUnit: 0, unit: "SECOND", windowSeconds: 1, name: "none" },
      freeAt: 1_000,
    },
    {
      ...shared,
      entries: entry("hidden"),
      redact: "hash",
      rule: { at: "d.yaml:19:3", metricKey: "d.hidden" },
      limit: { requestsPerUnit: 0, unit: "MINUTE", windowSeconds: 60 },
      freeAt: 60_000,
    },
    {
      ...shared,
      entries: entry("flight"),
      rule: { at: "d.yaml:16:3", metricKey: "d.flight" },
      limit: { algorithm: "concurrency", maxInFlight: 1, leaseSeconds: 60 },
      freeAt: 0,
    },
    { ...bucket, freeAt: 50 },
  ]);
});

Deno.test("episodes beyond the limit per second are counted once each, and one summary says how many", async () => {
  const bed = new Bed({ maxPerSecond: 2 });
  for (const value of ["a", "b", "c", "d", "c", "d", "a"]) await bed.ask("second", 1, value);
  assertEquals(bed.taken(), ["over_limit 2 0-1 first", "over_limit 1 0-1 first"]);
  assertEquals([bed.episodes.begun, bed.episodes.suppressed], [2, 2]);
  assertEquals(bed.episodes.takeSuppressed(bed.now), undefined);
  bed.advance(1_000);
  for (const value of ["c", "d", "e"]) await bed.ask("second", 1, value);
  bed.advance(9_000);
  assertEquals(bed.episodes.takeSuppressed(bed.now), { count: 3, from: START, to: START + 10_000 });
  assertEquals(bed.episodes.takeSuppressed(bed.now, true), undefined);
});

Deno.test("without any event per second all are suppressed", async () => {
  const bed = new Bed({ maxPerSecond: 0 });
  await bed.ask("second");
  await bed.ask("second");
  assertEquals(bed.taken(true), []);
  assertEquals(bed.episodes.takeSuppressed(bed.now, true), { count: 1, from: START, to: START });
  assert(bed.episodes.isEmpty);
});

Deno.test("a table of episodes is bounded, and so is what is remembered of suppressed ones", async () => {
  const bed = new Bed({ maxOpen: 3 });
  for (let value = 0; value < 20; value++) await bed.ask("second", 1, `${value}`);
  assertEquals(bed.taken().length, 3);
  assertEquals(bed.episodes.suppressed, 17);
  // The latest are remembered.
  for (const value of ["19", "18", "17"]) await bed.ask("second", 1, value);
  assertEquals(bed.episodes.suppressed, 17);
  await bed.ask("second", 1, "5");
  assertEquals(bed.episodes.suppressed, 18);
});

Deno.test("long keys take the place of many", async () => {
  const bed = new Bed({ maxPerSecond: Infinity });
  for (let value = 0; value < 3_000; value++) await bed.ask("second", 1, `${value}`.padEnd(8_000));
  const { begun, suppressed } = bed.episodes;
  assertEquals(begun + suppressed, 3_000);
  assert(begun > 500 && begun < 1_100, `${begun} episodes`);
  bed.advance(1_000);
  bed.episodes.take(bed.now, 10_000);
  await bed.ask("second");
  assertEquals(bed.episodes.begun, begun + 1);
});

Deno.test("an idle episode is forgotten when half of the places are taken, and its next hit is reported again", async () => {
  const cases: [number, string[]][] = [[3, ["over_limit 1 61-71 first"]], [4, ["over_limit 1 0-71"]]];
  for (const [maxOpen, reports] of cases) {
    const bed = new Bed({ maxOpen });
    await bed.ask("sliding", 1, "a");
    await bed.ask("sliding", 1, "a");
    bed.advance(1_000);
    await bed.ask("sliding", 2, "b");
    assertEquals(bed.taken().length, 2);
    bed.advance(60_000);
    assertEquals(bed.taken(), []);
    await bed.ask("sliding", 1, "a");
    assertEquals(bed.taken(), reports);
  }
});

Deno.test("at most so many reports are taken, and the rest later", async () => {
  const bed = new Bed();
  for (let value = 0; value < 5; value++) await bed.ask("second", 1, `${value}`);
  assertEquals(bed.episodes.take(bed.now, 3).length, 3);
  assertEquals(bed.episodes.take(bed.now, 3).length, 2);
  await bed.ask("second", 1, "4");
  assertEquals(bed.episodes.take(bed.now, 3).length, 0);
  assertEquals(bed.episodes.take(bed.now, 3, true).map(shown), ["over_limit 1 0-1"]);
});

Deno.test("what threads report is one episode, with the hits of all", async () => {
  const main = new LimitEpisodes({ maxPerSecond: 1, graceMs: 2_000 });
  const [one, two] = [new Bed({ maxPerSecond: Infinity }), new Bed({ maxPerSecond: Infinity })];
  const merge = (isLast = false) => {
    for (const bed of [one, two]) main.merge(bed.episodes.take(bed.now, 100, isLast), bed.now);
  };
  await one.ask("second", 2);
  await two.ask("second", 3);
  await two.ask("second", 3, "suppressed");
  merge();
  assertEquals(main.take(one.now, 100).map(shown), ["over_limit 5 0-1 first"]);
  await one.ask("second", 4);
  await two.ask("second", 1, "suppressed");
  for (const bed of [one, two]) bed.advance(1_000);
  merge();
  assertEquals(main.take(one.now + 1_000, 100).map(shown), []);
  assertEquals(main.take(one.now + 2_000, 100).map(shown), ["over_limit 4 0-1"]);
  assert(!main.isEmpty);
  assertEquals(main.takeSuppressed(one.now, true)?.count, 1);
  main.addSuppressed(3, one.now);
  assertEquals(main.takeSuppressed(one.now, true)?.count, 3);
  assert(main.isEmpty);
});

Deno.test("the hits of an episode are reported at the interval of the options, and at its end at any time", async () => {
  const bed = new Bed({ reportMs: 1_000 });
  await bed.ask("sliding", 2);
  assertEquals(bed.taken(), ["over_limit 2 0-10 first"]);
  await bed.ask("sliding", 2);
  bed.advance(999);
  assertEquals(bed.taken(), []);
  bed.advance(1);
  assertEquals(bed.taken(), ["over_limit 2 0-10"]);
  await bed.ask("sliding", 2);
  // A clock that was set back loses no hits.
  bed.advance(-1_000);
  assertEquals([bed.taken(), bed.taken(true)], [[], ["over_limit 2 0-11"]]);
  await bed.ask("sliding", 2);
  bed.advance(-3_600_000);
  assertEquals([bed.taken(), bed.episodes.isEmpty], [["over_limit 2 0-11"], true]);
});
