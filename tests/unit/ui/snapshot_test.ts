import { assertEquals } from "#assert";
import {
  busiest,
  type ConfigurationLoad,
  type RuleStatistics,
  Snapshots,
  type SnapshotSources,
} from "../../../src/ui/snapshot.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { seededRandom } from "../../harness/seeded_random.ts";

const RULE: RuleStatistics = {
  name: "d.k",
  domain: "d",
  entries: [{ key: "k", value: "" }],
  limit: "1 per DAY",
  at: "/rules/d.yaml:3",
  shadowMode: false,
  quotaMode: false,
  hits: 0,
  overLimit: 0,
  nearLimit: 0,
  withinLimit: 0,
};

/** The sources of the snapshots of a test, which it may set. */
class Bed {
  readonly clock = new FakeClock(1_700_000_000_000);
  decisions = { total: 0, overLimit: 0 };
  rules: RuleStatistics[] = [];
  readonly snapshots: Snapshots;

  constructor(sources: Partial<SnapshotSources> = {}) {
    this.snapshots = new Snapshots({
      clock: this.clock,
      constants: {
        version: "1.2.3",
        startedAt: 5,
        administration: true,
        webhooks: false,
        debugToken: true,
        cache: "memory",
        boundsMs: [1, 2],
      },
      health: { state: "ok", failing: () => [], degraded: () => [] },
      decisions: () => this.decisions,
      rules: () => ({
        count: this.rules.length,
        hits: (index) => this.rules[index]?.hits ?? 0,
        at: (index) => this.rules[index],
      }),
      history: () => ({ decisions: [3, 0] }),
      topOverLimited: () => [],
      configuration: () => ({ loadedAt: null, version: "", loaded: 0, failed: 0, error: null, loads: [] }),
      metrics: () => ({ "a.b": 7 }),
      timers: () => ({ "a.time": [1, 0, 2] }),
      ...sources,
    });
  }
}

Deno.test("a snapshot of a service that has done nothing yet", () => {
  const { snapshots } = new Bed();
  assertEquals(snapshots.make(), {
    at: 1_700_000_000_000,
    version: "1.2.3",
    startedAt: 5,
    health: { state: "ok", failing: [], degraded: [] },
    decisions: { total: 0, overLimit: 0, perSecond: null, overLimitShare: null },
    history: { decisions: [3, 0] },
    rules: [],
    rulesTotal: 0,
    topOverLimited: [],
    configuration: { loadedAt: null, version: "", loaded: 0, failed: 0, error: null, loads: [] },
    metrics: { "a.b": 7 },
    timers: { "a.time": [1, 0, 2] },
    administration: true,
    webhooks: false,
    debugToken: true,
    cache: "memory",
    boundsMs: [1, 2],
  });
});

/** Time that passes, decisions after it, and the rates that are shown. */
const RATES: readonly [
  passedMs: number,
  total: number,
  overLimit: number,
  perSecond: number | null,
  overLimitShare: number | null,
][] = [
  [0, 10, 1, null, null],
  [1_000, 30, 6, 20, 0.25],
  [500, 31, 6, 2, 0],
  [2_000, 31, 6, 0, null],
  [3_000, 32, 7, 0.3333, 1],
  [5_001, 40, 8, null, null],
  [1_000, 41, 8, 1, 0],
  [0, 42, 8, null, null],
];

Deno.test("rates are of the time since the snapshot before, and none where that is long ago", () => {
  const bed = new Bed();
  for (const [passedMs, total, overLimit, perSecond, overLimitShare] of RATES) {
    bed.clock.advance(passedMs);
    bed.decisions = { total, overLimit };
    const { decisions } = bed.snapshots.make();
    assertEquals(decisions, { total, overLimit, perSecond, overLimitShare });
  }
});

Deno.test("health shows what is wrong, and what is to be known of what is not", () => {
  const { snapshots } = new Bed({
    health: {
      state: "failing",
      failing: () => [{ name: "config", reason: "no rules" }],
      degraded: () => [{ name: "cache", reason: "slow" }],
    },
  });
  assertEquals(snapshots.make()["health"], {
    state: "failing",
    failing: [{ component: "config", reason: "no rules" }],
    degraded: [{ component: "cache", reason: "slow" }],
  });
});

Deno.test("of many rules those with most hits are shown, and how many there are", () => {
  const bed = new Bed();
  bed.rules = Array.from(
    { length: 1_000 },
    (_, index) => ({ ...RULE, name: `r${index}`, hits: index % 500 }),
  );
  const { rules, rulesTotal } = bed.snapshots.make();
  const shown = Array.isArray(rules) ? rules : [];
  assertEquals([shown.length, rulesTotal], [200, 1_000]);
  assertEquals(shown.slice(0, 3), [
    { ...RULE, name: "r499", hits: 499 },
    { ...RULE, name: "r999", hits: 499 },
    { ...RULE, name: "r498", hits: 498 },
  ]);
});

Deno.test("counts of keys are whole numbers, and no more keys are asked for than are shown", () => {
  let asked = 0;
  const { snapshots } = new Bed({
    topOverLimited(limit) {
      asked = limit;
      return [{ key: "k", count: 2.5, errorAtMost: 0.25 }];
    },
  });
  assertEquals(snapshots.make()["topOverLimited"], [{ key: "k", count: 3, errorAtMost: 1 }]);
  assertEquals(asked, 20);
});

/** A rejected load with this text everywhere. */
function load(text: string, problems: number): ConfigurationLoad {
  return {
    at: 1,
    ok: false,
    changed: [text],
    limits: 0,
    version: text,
    problemCount: 5,
    problems: new Array<string>(problems).fill(text),
  };
}

Deno.test("long names and texts are cut", () => {
  const long = "x".repeat(2_000);
  const bed = new Bed({
    health: {
      state: "failing",
      failing: () => [{ name: "config", reason: long }],
      degraded: () => [{ name: "cache", reason: long }],
    },
    configuration: () => ({
      loadedAt: 1,
      version: long,
      loaded: 1,
      failed: 1,
      error: long,
      loads: [load(long, 5)],
    }),
  });
  bed.rules = [{ ...RULE, name: long, at: long }];
  const cut = `${"x".repeat(999)}…`;
  const { health, rules, configuration } = bed.snapshots.make();
  assertEquals([health, rules, configuration], [
    {
      state: "failing",
      failing: [{ component: "config", reason: cut }],
      degraded: [{ component: "cache", reason: cut }],
    },
    [{ ...RULE, name: cut, at: cut }],
    { loadedAt: 1, version: cut, loaded: 1, failed: 1, error: cut, loads: [load(`${"x".repeat(299)}…`, 3)] },
  ]);
});

const random = seededRandom(3);
const MANY = 10_000;

const LISTS: readonly { name: string; hits: readonly number[] }[] = [
  { name: "nothing", hits: [] },
  { name: "fewer than requested", hits: [1, 3, 2, 3] },
  { name: "all without hits", hits: new Array(MANY).fill(0) },
  { name: "few with hits", hits: Array.from({ length: MANY }, (_, index) => index % 997 === 0 ? index : 0) },
  { name: "more and more hits", hits: Array.from({ length: MANY }, (_, index) => index) },
  { name: "fewer and fewer hits", hits: Array.from({ length: MANY }, (_, index) => MANY - index) },
  { name: "any hits", hits: Array.from({ length: MANY }, () => Math.floor(random() * 500)) },
];

for (const { name, hits } of LISTS) {
  Deno.test(`the busiest of ${name} are those that a sort of all puts first`, () => {
    const sorted = [...hits.keys()].sort((a, b) => (hits[b] ?? 0) - (hits[a] ?? 0) || a - b);
    for (const limit of [1, 200]) {
      assertEquals(busiest(hits.length, (index) => hits[index] ?? 0, limit), sorted.slice(0, limit));
    }
  });
}
