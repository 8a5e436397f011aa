import { assert, assertEquals } from "#assert";
import { DurationHistogram } from "../../../src/load/duration_histogram.ts";

Deno.test("DurationHistogram: percentiles are within 1 % of the exact ones, from microseconds to minutes", () => {
  for (const unitMs of [0.05, 0.3, 1, 17, 1_000]) {
    const histogram = new DurationHistogram();
    for (let index = 1; index <= 1_000; index++) histogram.add(index * unitMs);
    for (const percent of [1, 50, 90, 99, 99.9, 100]) {
      const exact = percent * 10 * unitMs;
      const found = histogram.percentile(percent);
      assert(Math.abs(found - exact) <= 0.01 * exact + 0.001, `p${percent}: ${found} instead of ${exact}`);
    }
    assertEquals({ count: histogram.count, maxMs: histogram.maxMs }, { count: 1_000, maxMs: 1_000 * unitMs });
  }
});

Deno.test("DurationHistogram: none, negative, one and longer durations than the last bucket", () => {
  const cases: readonly (readonly [string, readonly number[], readonly number[]])[] = [
    ["none", [], [0, 0, 0]],
    ["zero", [0], [0, 0, 0]],
    ["a clock that went back", [-1, 5], [5, 0, 5]],
    ["one", [0.1], [0.1, 0.1, 0.1]],
    ["hours", [1, 36_000_000], [36_000_000, 1, 2_147_484]],
  ];
  for (const [name, durations, [maxMs, least, most]] of cases) {
    const histogram = new DurationHistogram();
    for (const duration of durations) histogram.add(duration);
    assertEquals(histogram.maxMs, maxMs, name);
    assert(Math.abs(histogram.percentile(1) - (least ?? 0)) <= 0.01, `${name}: ${histogram.percentile(1)}`);
    assert(histogram.percentile(100) <= (most ?? 0), `${name}: ${histogram.percentile(100)}`);
  }
});

Deno.test("DurationHistogram: counts up to each limit, and the rest", () => {
  const histogram = new DurationHistogram();
  for (const duration of [0.05, 0.15, 0.15, 3, 700]) histogram.add(duration);
  assertEquals(histogram.countsUpTo([0.1, 0.2, 1, 5]), [1, 2, 0, 1, 1]);
  assertEquals(histogram.countsUpTo([]), [5]);
  assertEquals(new DurationHistogram().countsUpTo([1]), [0, 0]);
});
