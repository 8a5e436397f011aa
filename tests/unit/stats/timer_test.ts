import { assertEquals } from "#assert";
import { BUCKET_BOUNDS_MS, Timer } from "../../../src/stats/timer.ts";
import { seededRandom } from "../../harness/seeded_random.ts";

/** The number of a timer's durations in each bucket, by its bound, without empty ones. */
function filled({ buckets }: Timer): Record<string, number> {
  const named = Array.from(buckets, (count, index): [string, number] => {
    return [String(BUCKET_BOUNDS_MS[index] ?? "beyond"), count];
  });
  return Object.fromEntries(named.filter(([, count]) => count > 0));
}

Deno.test("timer: buckets go from 50 µs to 10 s, each wider than the previous one", () => {
  assertEquals([BUCKET_BOUNDS_MS[0], BUCKET_BOUNDS_MS.at(-1)], [0.05, 10_000]);
  assertEquals([...BUCKET_BOUNDS_MS].sort((a, b) => a - b), [...BUCKET_BOUNDS_MS]);
  assertEquals(new Set(BUCKET_BOUNDS_MS).size, BUCKET_BOUNDS_MS.length);
  assertEquals(new Timer().buckets.length, BUCKET_BOUNDS_MS.length + 1);
});

const PLACES: readonly { name: string; ms: number; bucket: string; sumMs?: number }[] = [
  { name: "nothing at all", ms: 0, bucket: "0.05" },
  { name: "a bound itself", ms: 0.05, bucket: "0.05" },
  { name: "just beyond a bound", ms: 0.050001, bucket: "0.1" },
  { name: "a fraction", ms: 0.75, bucket: "1" },
  { name: "the last bound", ms: 10_000, bucket: "10000" },
  { name: "more than all bounds", ms: 10_000.5, bucket: "beyond" },
  { name: "for ever", ms: Infinity, bucket: "beyond" },
  { name: "less than nothing", ms: -3, bucket: "0.05", sumMs: 0 },
  { name: "no number", ms: NaN, bucket: "0.05", sumMs: 0 },
];

for (const { name, ms, bucket, sumMs = ms } of PLACES) {
  Deno.test(`timer: where ${name} is counted`, () => {
    const timer = new Timer();
    timer.record(ms);
    assertEquals([timer.count, timer.sumMs, filled(timer)], [1, sumMs, { [bucket]: 1 }]);
  });
}

Deno.test("timer: each reader takes what came since it last did, and nothing that came before it", () => {
  const timer = new Timer();
  timer.record(1);
  const [first, second] = [timer.reader(10), timer.reader(10)];
  timer.record(2);
  timer.record(-1);
  const taken = first.take();
  timer.record(4);
  assertEquals(taken, { values: [2, 0], seen: 2 });
  assertEquals(first.take(), { values: [4], seen: 1 });
  assertEquals(first.take(), { values: [], seen: 0 });
  assertEquals(second.take(), { values: [2, 0, 4], seen: 3 });
  assertEquals(timer.count, 4);
});

const MOST = [{ most: 1 }, { most: 2 }, { most: 100 }, { most: 0, kept: 1 }, { most: 2.5, kept: 2 }];

for (const { most, kept = most } of MOST) {
  Deno.test(`timer: a reader of ${most} keeps all up to that, and no more than that`, () => {
    const timer = new Timer({ random: seededRandom(7) });
    const reader = timer.reader(most);
    for (const seen of [0, kept - 1, kept, kept + 1, 10_000, kept]) {
      for (let value = 1; value <= seen; value++) timer.record(value);
      const taken = reader.take();
      assertEquals([taken.seen, taken.values.length], [seen, Math.min(seen, kept)]);
      assertEquals(new Set(taken.values).size, taken.values.length);
      if (seen <= kept) assertEquals(taken.values, Array.from({ length: seen }, (_, index) => index + 1));
    }
  });
}

Deno.test("timer: of more than a reader keeps each value has the same chance, the first, the last and those between", () => {
  const timer = new Timer({ random: seededRandom(11) });
  const [most, seen, rounds] = [10, 100, 20_000];
  const reader = timer.reader(most);
  const chosen = new Array<number>(seen).fill(0);
  for (let round = 0; round < rounds; round++) {
    for (let value = 0; value < seen; value++) timer.record(value);
    for (const value of reader.take().values) chosen[value] = (chosen[value] ?? 0) + 1;
  }
  // Each is expected 2,000 times with a standard deviation of 42; five of them are as good as never passed.
  const unfair = chosen.flatMap((times, value) => Math.abs(times - 2_000) > 215 ? [[value, times]] : []);
  assertEquals(unfair, []);
});

const ODD_CHANCES: Readonly<Record<string, () => number>> = {
  "always 0": () => 0,
  "always next to 1": () => 1 - 2 ** -53,
};

for (const [name, random] of Object.entries(ODD_CHANCES)) {
  Deno.test(`timer: a reader keeps its bound when chance is ${name}`, () => {
    const timer = new Timer({ random });
    const reader = timer.reader(3);
    for (let value = 1; value <= 1_000; value++) timer.record(value);
    const { values, seen } = reader.take();
    const known = values.filter((value) => Number.isInteger(value) && value >= 1 && value <= 1_000);
    assertEquals([known.length, seen], [3, 1_000]);
  });
}

const SPAN = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };

Deno.test("timer: the newest traced duration of each bucket is its exemplar, if it has durations", () => {
  const timer = new Timer();
  for (const ms of [1, 3]) timer.record(ms);
  for (const [ms, endedAt] of [[0.9, 1], [0.8, 2], [3, 3], [70, 4]] as const) {
    timer.addExemplar({ span: SPAN, ms, endedAt });
  }
  const seen = Array.from(timer.buckets, (_, bucket) => timer.exemplar(bucket)?.ms);
  assertEquals(seen.filter((ms) => ms !== undefined), [0.8, 3]);
});

Deno.test("timer: exemplars move with the durations of another thread", () => {
  const [from, to] = [new Timer(), new Timer()];
  from.record(1);
  from.addExemplar({ span: SPAN, ms: 1, endedAt: 7 });
  const taken = structuredClone(from.take());
  if (taken !== undefined) to.merge(taken);
  from.record(1);
  const bucket = BUCKET_BOUNDS_MS.indexOf(1);
  const moved = { span: SPAN, ms: 1, endedAt: 7 };
  assertEquals([from, to].map((timer) => timer.exemplar(bucket)), [undefined, moved]);
});
