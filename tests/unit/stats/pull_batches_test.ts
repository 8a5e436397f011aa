import { assertEquals } from "#assert";
import type { MetricBatch } from "../../../src/base/metric_batch.ts";
import { batchesOf } from "../../../src/stats/pull_batches.ts";
import { Families } from "../../../src/stats/pull_families.ts";
import { Timer } from "../../../src/stats/timer.ts";

const READ = { constantLabels: { zone: "z", own: "constant" }, startedAtSeconds: 5, readAt: 7_500 };

function batches(fill: (families: Families) => void): MetricBatch[] {
  const families = new Families(() => {});
  fill(families);
  return [...batchesOf(families, READ)];
}

Deno.test("metric batches: numbers have their labels and those of every metric; infinite ones are left out", () => {
  const seen = batches((families) => {
    const counter = { name: "hits", kind: "counter", help: "Hits." } as const;
    families.add(counter, { own: "a" }, 3);
    families.add(counter, {}, 4);
    families.add({ name: "size", kind: "gauge", help: "Size." }, {}, NaN);
  });
  const points = [{ labels: { zone: "z", own: "a" }, value: 3 }, { labels: READ.constantLabels, value: 4 }];
  const metrics = [{ name: "hits", help: "Hits.", kind: "counter" as const, points }];
  assertEquals(seen, [{ startedAt: 5_000, readAt: 7_500, metrics }]);
});

Deno.test("metric batches: a histogram has a point for each set of labels, its buckets counted apart", () => {
  const timer = new Timer();
  for (const ms of [0.2, 900, 900, 20_000]) timer.record(ms);
  const [batch] = batches((families) => {
    const family = { name: "took", kind: "histogram", help: "Took." } as const;
    for (const method of ["a", "b"]) {
      families.addTimer(family, { method }, timer, { factor: 0.001, bounds: [0.00025, 1] });
    }
  });
  const point = { bounds: [0.00025, 1], counts: [1, 2, 1], count: 4, sum: 21.8002 };
  const points = ["a", "b"].map((method) => ({ labels: { ...READ.constantLabels, method }, ...point }));
  assertEquals(batch?.metrics, [{ name: "took", help: "Took.", kind: "histogram", points }]);
});

Deno.test("metric batches: at most a thousand points, also of one metric", () => {
  const seen = batches((families) => {
    for (const [name, count] of [["a", 600], ["b", 2_500]] as const) {
      for (let key = 0; key < count; key++) {
        families.add({ name, kind: "counter", help: "" }, { key: String(key) }, key);
      }
    }
  });
  const sizes = seen.map(({ metrics }) => metrics.map(({ name, points }) => [name, points.length]));
  assertEquals(sizes, [[["a", 600], ["b", 400]], [["b", 1_000]], [["b", 1_000]], [["b", 100]]]);
  const keys = seen.flatMap(({ metrics }) =>
    metrics.flatMap(({ name, points }) => points.map(({ labels }) => `${name}${labels["key"]}`))
  );
  assertEquals([keys.length, new Set(keys).size], [3_100, 3_100]);
});

Deno.test("metric batches: without metrics there is none", () => assertEquals(batches(() => {}), []));
