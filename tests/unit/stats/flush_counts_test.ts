import { assertEquals } from "@std/assert";
import { FlushCounts } from "../../../src/stats/flush_counts.ts";

Deno.test("flush counts: a counter is told by what it grew, and as a whole when it began anew", () => {
  const counts = new FlushCounts();
  assertEquals([5, 5, 12, 3, 4].map((value) => counts.delta("a", value)), [5, 0, 7, 3, 1]);
});

Deno.test("flush counts: names that are gone are forgotten, and begin anew when they come back", () => {
  const counts = new FlushCounts();
  const round = (values: Readonly<Record<string, number>>) => {
    const deltas = Object.entries(values).map(([name, value]) => counts.delta(name, value));
    counts.endRound();
    return [deltas, counts.size];
  };
  assertEquals([round({ a: 1, b: 2 }), round({ b: 3 }), round({}), round({ a: 1, b: 5 })], [
    [[1, 2], 2],
    [[1], 1],
    [[], 0],
    [[1, 5], 2],
  ]);
});

Deno.test("flush counts: a round that was cut short forgets nothing", () => {
  const counts = new FlushCounts();
  counts.delta("a", 1);
  counts.delta("b", 1);
  counts.endRound();
  counts.delta("a", 2); // the round ends here for want of a receiver, and goes on with the next flush
  assertEquals([counts.delta("a", 3), counts.delta("b", 3), counts.size], [1, 2, 2]);
});
