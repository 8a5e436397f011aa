import { assertEquals } from "#assert";
import { counter, gauge, timer } from "../../../src/base/metrics.ts";
import { StatsDeltas, StatsMerger } from "../../../src/stats/stats_delta.ts";
import { StatsStore } from "../../../src/stats/store.ts";

const GROUP = {
  prefix: "t.",
  metrics: {
    calls: counter("calls", "Calls."),
    open: gauge("connections", "Connections."),
    state: gauge("0 or 1", "State.", { combined: "max" }),
    time: timer("Time.", "t_seconds"),
  },
};

/** The statistics of one thread. */
function thread() {
  const stats = new StatsStore(100);
  const values = { calls: 0, open: 0, state: 0 };
  stats.addMetrics(GROUP, {
    counters: { calls: () => values.calls },
    gauges: { open: () => values.open, state: () => values.state },
  });
  const { time } = stats.addTimers(GROUP);
  return { stats, values, time, deltas: new StatsDeltas(stats) };
}

Deno.test("statistics of threads: counters and gauges are sums, or the highest; durations are those of all", () => {
  const store = new StatsStore(100);
  const merger = new StatsMerger(store, () => undefined);
  const reader = store.timer("t.time").reader(10);
  const [first, second] = [thread(), thread()];
  Object.assign(first.values, { calls: 2, open: 3, state: 1 });
  Object.assign(second.values, { calls: 5, open: 1, state: 0 });
  for (const ms of [1, 2, 3]) first.time.record(ms);
  second.time.record(7_000);
  merger.add(1, first.deltas.take());
  merger.add(2, second.deltas.take());
  const read = () => [
    Object.fromEntries(store.counters())["t.calls"],
    ...["t.open", "t.state"].map((name) => store.gauges().get(name)),
  ];
  assertEquals(read(), [7, 4, 1]);
  const { count, sumMs } = store.timer("t.time");
  assertEquals([count, sumMs, reader.take()], [4, 7_006, { values: [1, 2, 3, 7_000], seen: 4 }]);
  merger.end(1);
  assertEquals(read(), [7, 1, 0]);
  first.values.calls = 1;
  merger.add(3, first.deltas.take());
  // A thread that did not send its metrics yet adds nothing.
  assertEquals(read(), [7, 1, 0]);
  assertEquals(store.timer("t.time").count, 4);
});

Deno.test("statistics of threads: hits of metric keys move, each once; unknown keys are those of their domain", () => {
  const store = new StatsStore(1);
  const merger = new StatsMerger(store, (key) => key.startsWith("shop.") ? "shop" : undefined);
  const { stats, deltas } = thread();
  for (const key of ["shop.a", "shop.b", "shop.b"]) stats.rule(key, "shop").totalHits++;
  merger.add(1, structuredClone(deltas.take()));
  merger.add(1, structuredClone(deltas.take()));
  stats.rule("shop.a", "shop").totalHits++;
  merger.add(1, structuredClone(deltas.take()));
  const hits = [...store.counters()].filter(([name]) => name.endsWith("total_hits"));
  assertEquals(hits, [
    ["ratelimit.service.rate_limit.shop.a.total_hits", 2],
    ["ratelimit.service.rate_limit.shop.other.total_hits", 2],
  ]);
  assertEquals(stats.known("shop.a")?.totalHits, 0);
});

Deno.test("statistics of threads: a key beyond the limit of a thread overflows once, and not with each report", () => {
  const store = new StatsStore(1);
  const merger = new StatsMerger(store, () => "shop");
  const stats = new StatsStore(1);
  const deltas = new StatsDeltas(stats);
  const overflowed = () =>
    Object.fromEntries(store.counters())["ratelimit.service.rate_limit_keys_overflowed"];
  stats.rule("shop.a", "shop").totalHits++;
  const other = stats.rule("shop.b", "shop");
  const seen = [1, 2, 3].map(() => {
    other.totalHits++;
    merger.add(1, structuredClone(deltas.take()));
    return overflowed();
  });
  assertEquals(seen, [1, 1, 1]);
  // The keys of another thread have no room here.
  const second = new StatsStore(1);
  second.rule("shop.c", "shop").totalHits++;
  merger.add(2, structuredClone(new StatsDeltas(second).take()));
  assertEquals(overflowed(), 2);
});
