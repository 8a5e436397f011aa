import { counter, gauge, timer } from "../../../src/base/metrics.ts";
import { assertEquals } from "#assert";
import type { RuleCounters } from "../../../src/ratelimit/stats_sink.ts";
import { sanitizeStatName } from "../../../src/base/stat_name.ts";
import { serverCalls, StatsStore, statsText } from "../../../src/stats/store.ts";

const NAMES: readonly [string, string][] = [
  ["d.k_v", "d.k_v"],
  ["a:b|c.k", "a_b_c.k"],
  ["d.ip_10.1.2.3", "d.ip_10_1_2_3"],
  ["d.v_1.2.3", "d.v_1.2.3"],
  ["d.p_/api/* x", "d.p_/api/* x"],
  ["d.k_a\nb\r\x00c", "d.k_a_b__c"],
];

for (const [name, printed] of NAMES) {
  Deno.test(`statistics name: ${JSON.stringify(name)}`, () => assertEquals(sanitizeStatName(name), printed));
}

/** A counter of rules; its name goes on after `ratelimit.service.rate_limit.`. */
function counterOf(store: StatsStore, name: string): number | undefined {
  return new Map(store.counters()).get(`ratelimit.service.rate_limit.${name}`);
}

/** The hits of the rules that have any. */
function totals(store: StatsStore): Record<string, number> {
  const hits = [...store.counters()].filter(([name, value]) => value > 0 && name.endsWith("total_hits"));
  return Object.fromEntries(hits.map(([name, value]) => [name.split(".").slice(3, -1).join("."), value]));
}

/** Begins to load rules of the domain `d` with these keys; the steps that are left. */
function beginLoad(store: StatsStore, keys: readonly string[]): Iterable<void> {
  return store.loadedRules(new Map(keys.map((key) => [key, "d"])));
}

/** Loads rules of the domain `d` with these keys. */
function load(store: StatsStore, keys: readonly string[]): RuleCounters[] {
  Array.from(beginLoad(store, keys));
  return keys.map((key) => store.rule(key, "d"));
}

Deno.test("statistics: the number of keys is bounded, loaded rules are never evicted", () => {
  const store = new StatsStore(2);
  for (const key of ["d.a_1", "d.a_2", "d.a_3", "d.a_4", "d.a_1"]) store.rule(key, "d").totalHits++;
  for (const counters of load(store, ["d.rule"])) counters.totalHits++;
  store.rule("d.rule", "d").totalHits++;
  store.rule("e.f.a_1", "e.f").totalHits++;
  store.rule("nowhere").domainNotFound++;
  assertEquals(totals(store), { "d.a_1": 2, "d.a_2": 1, "d.rule": 2, "d.other": 2, "e.f.other": 1 });
  const counters = new Map(store.counters());
  assertEquals(counters.get("ratelimit.service.rate_limit.other.domain_not_found"), 1);
  assertEquals(counters.get("ratelimit.service.rate_limit_keys_overflowed"), 4);
});

Deno.test("statistics: keys of rules take no room from others, and those of rules that are gone fall under the bound", () => {
  const store = new StatsStore(2);
  for (let reload = 0; reload < 1_000; reload++) {
    for (const counters of load(store, ["d.stays", `d.rule${reload}`])) counters.totalHits++;
  }
  const expected = { "d.stays": 1_000, "d.rule997": 1, "d.rule998": 1, "d.rule999": 1, "d.other": 997 };
  assertEquals(totals(store), expected);
  store.rule("d".repeat(1_025), "d").totalHits++;
  assertEquals(counterOf(store, "d.other.total_hits"), 998);
  const fresh = new StatsStore(1);
  load(fresh, ["d.a", "d.b"]);
  fresh.rule("d.c").totalHits++;
  assertEquals(counterOf(fresh, "d.c.total_hits"), 1);
});

for (const steps of [0, 1, 2, 3, 4, 5, 6]) {
  Deno.test(`statistics: keys that get counters after ${steps} steps of a load count once, and loaded rules fall under no bound`, () => {
    const store = new StatsStore(3);
    load(store, ["d.leaves", "d.stays"]);
    beginLoad(store, ["d.leaves", "d.stays", "d.leaves unused"]);
    store.rule("d.comes", "d");
    const rest = beginLoad(store, ["d.stays", "d.comes", "d.comes unused"])[Symbol.iterator]();
    for (let step = 0; step < steps; step++) rest.next();
    for (const key of ["d.leaves", "d.leaves unused", "d.stays", "d.comes", "d.comes unused"]) {
      store.rule(key, "d");
    }
    while (rest.next().done === false);
    const isKnown = (key: string) => {
      store.rule(key, "d");
      return store.known(key) !== undefined;
    };
    // Two of the three places are taken by the rules that left.
    assertEquals([isKnown("d.third"), isKnown("d.fourth")], [true, false]);
    assertEquals(["d.stays", "d.comes", "d.comes unused"].map(isKnown), [true, true, true]);
  });
}

Deno.test("statistics: a rule whose key is that of the others shares its counters, and loses none", () => {
  const store = new StatsStore(0);
  for (const counters of load(store, ["d.other"])) counters.totalHits += 5;
  store.rule("d.a_1", "d").totalHits += 2;
  load(store, []);
  store.rule("d.a_2", "d").totalHits += 1;
  assertEquals(counterOf(store, "d.other.total_hits"), 8);
});

Deno.test("statistics: keys that print alike share their counters", () => {
  const store = new StatsStore(10);
  store.rule("d.a:b").overLimit += 2;
  store.rule("d.a_b").overLimit += 3;
  assertEquals(counterOf(store, "d.a_b.over_limit"), 5);
});

Deno.test("statistics: the page is sorted and has every counter and gauge", () => {
  const store = new StatsStore(10);
  store.addGauge("ratelimit.process.b", () => 7);
  store.addCounter("ratelimit.process.a", () => 3);
  load(store, ["d.k"]);
  store.rule("nowhere").domainNotFound++;
  const prefix = "ratelimit.service.rate_limit.";
  assertEquals(statsText(store).split("\n"), [
    "ratelimit.process.a: 3",
    "ratelimit.process.b: 7",
    "ratelimit.service.cache_failure.allow: 0",
    "ratelimit.service.cache_failure.deny: 0",
    "ratelimit.service.cache_failure.error: 0",
    "ratelimit.service.cache_failure.local: 0",
    "ratelimit.service.call.should_rate_limit.kv_error: 0",
    "ratelimit.service.call.should_rate_limit.mc_error: 0",
    "ratelimit.service.call.should_rate_limit.service_error: 0",
    "ratelimit.service.config_load_error: 0",
    "ratelimit.service.config_load_success: 0",
    "ratelimit.service.global_shadow_mode: 0",
    `${prefix}d.k.near_limit: 0`,
    `${prefix}d.k.over_limit: 0`,
    `${prefix}d.k.over_limit_with_local_cache: 0`,
    `${prefix}d.k.shadow_mode: 0`,
    `${prefix}d.k.total_hits: 0`,
    `${prefix}d.k.within_limit: 0`,
    `${prefix}nowhere.domain_not_found: 1`,
    "ratelimit.service.rate_limit_keys_overflowed: 0",
    "",
  ]);
});

Deno.test("statistics: a timer is created once, and has two lines on the page", () => {
  const store = new StatsStore(10);
  const timer = store.timer("ratelimit.a.round_trip");
  timer.record(0.5);
  store.timer("ratelimit.a.round_trip").record(2);
  store.timer("ratelimit.b");
  assertEquals([...store.timers().keys()], ["ratelimit.a.round_trip", "ratelimit.b"]);
  assertEquals(store.timers().get("ratelimit.a.round_trip"), timer);
  assertEquals(statsText(store).split("\n").filter((line) => /\.[ab]\./.test(line)), [
    "ratelimit.a.round_trip.count: 2",
    "ratelimit.a.round_trip.sum_ms: 2.5",
    "ratelimit.b.count: 0",
    "ratelimit.b.sum_ms: 0",
  ]);
});

Deno.test("statistics: metrics of a part have its prefix and are read when statistics are", () => {
  const store = new StatsStore(10);
  let size = 1;
  const metrics = {
    made: counter("things", "Made."),
    size: gauge("things", "Size."),
    time: timer("Time.", "t"),
  };
  const group = { prefix: "ratelimit.part.", metrics };
  store.addMetrics(group, { counters: { made: () => 7 }, gauges: { size: () => size } });
  store.addTimers(group).time.record(3);
  size = 2;
  assertEquals(new Map(store.counters()).get("ratelimit.part.made"), 7);
  assertEquals(store.gauges(), new Map([["ratelimit.part.size", 2]]));
  assertEquals(store.timers().get("ratelimit.part.time")?.sumMs, 3);
  const declared = ["made", "size", "time"].map((name) =>
    store.declared(`ratelimit.part.${name}`)?.declaration
  );
  assertEquals(declared, Object.values(metrics));
});

Deno.test("statistics: rules that are replaced while a walk has a pause get no counters any more", () => {
  const store = new StatsStore(2);
  beginLoad(store, ["d.a", "d.b"]);
  const walk = store.counters();
  for (let next = walk.next(); next.value?.[0].includes(".d.a.") !== true; next = walk.next());
  Array.from(beginLoad(store, ["d.c"]));
  const rest = [...walk].map(([name]) => name);
  assertEquals([rest.some((name) => name.includes(".d.b.")), store.known("d.b")], [false, undefined]);
});

Deno.test("statistics: many former rules are evicted in parts, and all of them in the end", () => {
  const store = new StatsStore(1);
  const keysOf = (name: string) => Array.from({ length: 5_000 }, (_, index) => `d.${name}${index}`);
  const named = (name: string) => {
    const entries = [...store.counters()].map(([key]) => key);
    return entries.filter((key) => key.startsWith(`ratelimit.service.rate_limit.d.${name}`)).length / 6;
  };
  beginLoad(store, keysOf("a"));
  assertEquals(named("a"), 5_000);
  Array.from(beginLoad(store, keysOf("b")));
  assertEquals([named("a"), named("a"), named("a"), named("b")], [1_000, 1, 1, 5_000]);
});

Deno.test("statistics: a former rule that is loaded again is not evicted before the load reaches it", () => {
  const store = new StatsStore(1);
  const keys = Array.from({ length: 3_000 }, (_, index) => `d.k${index}`);
  for (const counters of load(store, keys)) counters.totalHits++;
  // Evicts some of them.
  load(store, []);
  const key = "d.k2500";
  const rest = beginLoad(store, [key]);
  const counters = store.rule(key, "d");
  const total = () => counterOf(store, `${key}.total_hits`);
  assertEquals(total(), 1);
  counters.totalHits++;
  Array.from(rest);
  assertEquals([total(), store.rule(key, "d") === counters], [2, true]);
  assertEquals(new Map(store.counters()).get("ratelimit.service.rate_limit_keys_overflowed"), 2_998);
});

Deno.test("server calls: each method has its total and its response time from the start, services of one method share them", () => {
  const stats = new StatsStore(10);
  const of = serverCalls(stats);
  const [check, again] = [of("Check"), of("Check")];
  of("ShouldRateLimit");
  check.started();
  again.started();
  check.ended(0.25);
  again.ended(1.5);
  again.started();
  assertEquals(new Map(stats.counters()).get("ratelimit_server.Check.total_requests"), 3);
  assertEquals(new Map(stats.counters()).get("ratelimit_server.ShouldRateLimit.total_requests"), 0);
  assertEquals([...stats.timers()].map(([name, { count, sumMs }]) => [name, count, sumMs]), [
    ["ratelimit_server.Check.response_time", 2, 1.75],
    ["ratelimit_server.ShouldRateLimit.response_time", 0, 0],
  ]);
});
