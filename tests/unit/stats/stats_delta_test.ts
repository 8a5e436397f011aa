import { assertEquals } from "#assert";
import { counter, gauge, timer } from "../../../src/base/metrics.ts";
import { StatsDeltas, StatsMerger } from "../../../src/stats/stats_delta.ts";
import { StatsStore } from "../../../src/stats/store.ts";

const GROUP = {
  prefix: "t.",
  metrics: {
    calls: counter("calls", "Calls."),
    reloads: counter("reloads", "Reloads.", { combined: "max" }),
    open: gauge("connections", "Connections."),
    state: gauge("0 or 1", "State.", { combined: "max" }),
    time: timer("Time.", "t_seconds"),
  },
};

/** A store with the metrics of every thread. */
function thread() {
  const stats = new StatsStore(100);
  const values = { calls: 0, open: 0, state: 0, reloads: 0 };
  stats.addMetrics(GROUP, {
    counters: { calls: () => values.calls, reloads: () => values.reloads },
    gauges: { open: () => values.open, state: () => values.state },
  });
  const { time } = stats.addTimers(GROUP);
  const deltas = new StatsDeltas(stats);
  return { stats, values, time, take: () => structuredClone(deltas.take()) };
}

Deno.test("statistics of threads: counters and gauges are sums, or the highest; durations are those of all", () => {
  const { stats, values } = thread();
  const merger = new StatsMerger(stats);
  const reader = stats.timer("t.time").reader(10);
  const [first, second] = [thread(), thread()];
  // Durations are sampled from the first report on.
  merger.add("first", first.take());
  merger.add("second", second.take());
  Object.assign(values, { calls: 1, open: 1, reloads: 1 });
  Object.assign(first.values, { calls: 2, open: 3, state: 1, reloads: 1 });
  Object.assign(second.values, { calls: 5, open: 1, state: 0, reloads: 1 });
  for (const ms of [1, 2, 3]) first.time.record(ms);
  second.time.record(7_000);
  merger.add("first", first.take());
  merger.add("second", second.take());
  const read = () => {
    const counters = Object.fromEntries(stats.counters());
    const gauges = ["t.open", "t.state"].map((name) => stats.gauges().get(name));
    return [counters["t.calls"], counters["t.reloads"], ...gauges];
  };
  assertEquals(read(), [8, 1, 5, 1]);
  const { count, sumMs } = stats.timer("t.time");
  assertEquals([count, sumMs, reader.take()], [4, 7_006, { values: [1, 2, 3, 7_000], seen: 4 }]);
  merger.end("first");
  assertEquals(read(), [8, 1, 2, 0]);
  second.values.calls = 6;
  merger.add("second", second.take());
  assertEquals(read(), [9, 1, 2, 0]);
  assertEquals(stats.timer("t.time").count, 4);
});

Deno.test("statistics of threads: hits of metric keys move, each once; those beyond the limit are of their domain", () => {
  const store = new StatsStore(1);
  const merger = new StatsMerger(store);
  const { stats, take } = thread();
  for (const key of ["shop.a", "shop.b", "shop.b"]) stats.rule(key, "shop").totalHits++;
  merger.add("thread", take());
  merger.add("thread", take());
  stats.rule("shop.a", "shop").totalHits++;
  merger.add("thread", take());
  const hits = [...store.counters()].filter(([name]) => name.endsWith("total_hits"));
  assertEquals(hits, [
    ["ratelimit.service.rate_limit.shop.a.total_hits", 2],
    ["ratelimit.service.rate_limit.shop.other.total_hits", 2],
  ]);
  assertEquals(stats.known("shop.a")?.totalHits, 0);
});

Deno.test("statistics of threads: a key beyond the limit of a thread overflows once, and not with each report", () => {
  const store = new StatsStore(1);
  const merger = new StatsMerger(store);
  const stats = new StatsStore(1);
  const deltas = new StatsDeltas(stats);
  const overflowed = () =>
    Object.fromEntries(store.counters())["ratelimit.service.rate_limit_keys_overflowed"];
  stats.rule("shop.a", "shop").totalHits++;
  const other = stats.rule("shop.b", "shop");
  const seen = [1, 2, 3].map(() => {
    other.totalHits++;
    merger.add("first", structuredClone(deltas.take()));
    return overflowed();
  });
  assertEquals(seen, [1, 1, 1]);
  // The keys of another thread have no room here.
  const second = new StatsStore(1);
  second.rule("shop.c", "shop").totalHits++;
  merger.add("second", structuredClone(new StatsDeltas(second).take()));
  assertEquals(overflowed(), 2);
});
