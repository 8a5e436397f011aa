import { assert, assertEquals } from "#assert";
import { MemoryCache } from "../../../src/cache/memory_cache.ts";
import { bucketLimit } from "../../../src/ratelimit/algorithms/bucket.ts";
import type { Counted, Taken } from "../../../src/ratelimit/algorithms/taken.ts";
import { sliceLimit } from "../../../src/ratelimit/algorithms/slices.ts";
import type { AnyHit, CounterCache, Hit, StateHit } from "../../../src/ratelimit/decision/counter_cache.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { heapMegabytes } from "../../harness/garbage.ts";
import { countsOf, takeHits } from "../../../src/ratelimit/decision/take_hits.ts";

/** The counts after these hits; this cache counts before it returns. */
function counts(cache: CounterCache, hits: readonly AnyHit[]): readonly Counted[] {
  const answers = takeHits(cache, hits);
  if (answers instanceof Promise) throw new Error("the cache answers later");
  return countsOf(answers);
}

function readCounts(cache: CounterCache, hits: readonly AnyHit[]): readonly Counted[] {
  return counts(cache, hits.map((one) => ({ ...one, addend: 0 })));
}

function taken(cache: CounterCache, hits: readonly AnyHit[]): Taken[] {
  return counts(cache, hits).filter((count) => typeof count !== "number");
}

const NOW = 1_700_000_000;

function hit(key: string, windowEnd: number, addend = 1): Hit {
  return { key, addend, windowEnd, expiresInSeconds: windowEnd - NOW, perSecond: false };
}

interface Bed {
  readonly cache: MemoryCache;
  readonly clock: FakeClock;
}

/** A test with a cache for so many keys; it is closed at the end, and no timer is left. */
function testMemory(name: string, maxKeys: number, run: (bed: Bed) => void | Promise<void>): void {
  Deno.test(`memory cache: ${name}`, async () => {
    const clock = new FakeClock(NOW * 1000);
    const cache = new MemoryCache({ maxKeys, clock });
    await run({ cache, clock });
    await cache.close();
    assertEquals(clock.waiting, 0);
  });
}

testMemory("counters are dropped when their window is over", 100, ({ cache, clock }) => {
  const [short, long] = [hit("short", NOW + 1), hit("long", NOW + 60)];
  counts(cache, [short, long]);
  clock.advance(999);
  assertEquals([cache.size, readCounts(cache, [short, long])], [2, [1, 1]]);
  clock.advance(1_001);
  assertEquals([cache.size, readCounts(cache, [short, long])], [1, [0, 1]]);
  clock.advance(60_000);
  assertEquals([cache.size, cache.evicted], [0, 0]);
});

testMemory("nothing is lost up to the bound, then those nearest their end are evicted", 4, ({ cache }) => {
  const hits = [
    hit("hour", NOW + 3_600),
    hit("minute1", NOW + 60),
    hit("minute2", NOW + 60),
    hit("day", NOW + 86_400),
  ];
  counts(cache, hits);
  assertEquals([cache.size, cache.evicted, readCounts(cache, hits)], [4, 0, [1, 1, 1, 1]]);
  counts(cache, [hit("day2", NOW + 86_400)]);
  assertEquals([cache.size, cache.evicted, readCounts(cache, hits)], [4, 1, [1, 0, 1, 1]]);
  counts(cache, [hit("day3", NOW + 86_400), hit("day4", NOW + 86_400)]);
  assertEquals([cache.size, cache.evicted, readCounts(cache, hits)], [4, 3, [0, 0, 0, 1]]);
  counts(cache, [hit("second", NOW + 1), hit("second2", NOW + 1)]);
  assertEquals([cache.size, cache.evicted], [4, 5]);
  assertEquals(readCounts(cache, [hit("second", NOW + 1), hit("second2", NOW + 1)]), [0, 1]);
});

testMemory("room is made from what is over before anything is evicted", 3, ({ cache, clock }) => {
  counts(cache, [hit("a", NOW + 1), hit("b", NOW + 1), hit("c", NOW + 60)]);
  clock.advance(1_000);
  counts(cache, [hit("d", NOW + 60), hit("e", NOW + 60)]);
  assertEquals([cache.size, cache.evicted], [3, 0]);
});

testMemory("long keys take the room of several", 100, ({ cache }) => {
  const long = (index: number) => hit(`${index}_${"x".repeat(8_000)}`, NOW + 60);
  for (let index = 0; index < 1_000; index++) counts(cache, [long(index)]);
  assertEquals([cache.size, cache.evicted, readCounts(cache, [long(0), long(999)])], [3, 997, [0, 1]]);
  counts(cache, [hit("x".repeat(100_000), NOW + 60)]);
  assertEquals(cache.size, 1);
});

testMemory("a hit on a window that is just over costs no room for good", 2, ({ cache, clock }) => {
  for (let second = 0; second < 20; second++) {
    counts(cache, [hit(`a${second}`, NOW + second + 1), hit(`b${second}`, NOW + second + 1)]);
    clock.advance(999);
    clock.advance(2);
    counts(cache, [hit(`late${second}`, NOW + second + 1)]);
  }
  clock.advance(60_000);
  assertEquals([cache.size, cache.evicted], [0, 0]);
  counts(cache, [hit("x", NOW + 600), hit("y", NOW + 600)]);
  assertEquals([cache.size, cache.evicted, readCounts(cache, [hit("x", NOW + 600)])], [2, 0, [1]]);
});

testMemory("hits given back to a counter of a shorter window stop at 0 as well", 10, ({ cache }) => {
  counts(cache, [hit("k", NOW + 60)]);
  const long = hit("k", NOW + 3_600);
  assertEquals(counts(cache, [{ ...long, addend: -5 }, long]), [0, 1]);
});

testMemory("two windows that share a counter keep it for the longer one", 10, async ({ cache, clock }) => {
  counts(cache, [hit("k", NOW + 60), hit("k", NOW + 3_600)]);
  clock.advance(61_000);
  assertEquals(readCounts(cache, [hit("k", NOW + 3_600)]), [2]);
  await cache.remove(["k"]);
  assertEquals([cache.size, readCounts(cache, [hit("k", NOW + 3_600)])], [0, [0]]);
});

testMemory(
  "a counter keeps no others after their window, and starts again",
  1_000_000,
  ({ cache, clock }) => {
    const before = heapMegabytes();
    for (let index = 0; index < 100_000; index++) counts(cache, [hit(`key number ${index}`, NOW + 60)]);
    const counter = cache.counterOf(hit("key number 7", NOW + 60));
    const told: Counted[] = [];
    const take = () => {
      counter.take(1, undefined, { counted: (count) => void told.push(count), failed: () => {} });
    };
    take();
    const full = heapMegabytes();
    clock.advance(61_000);
    const after = heapMegabytes();
    assert(after - before < (full - before) / 4, `${before} MB, then ${full} MB, then ${after} MB`);
    take();
    assertEquals(told, [2, 1]);
  },
);

const SECOND = sliceLimit(5, 1_000);
const MINUTE = sliceLimit(5, 60_000);
const BUCKET = bucketLimit({ burst: 5, hitsPerUnit: 5, unitSeconds: 60 });

function taking(key: string, limit: StateHit["limit"], addend = 1): StateHit {
  return { key, limit, addend, expiresInSeconds: 60, perSecond: false };
}

/** The used hits of each key. */
function used(cache: MemoryCache, hits: readonly StateHit[]): number[] {
  return taken(cache, hits.map((hit) => ({ ...hit, addend: 0 }))).map((taken) => taken.used);
}

testMemory("conditional counters are dropped when all is free", 100, ({ cache, clock }) => {
  taken(cache, [taking("second", SECOND), taking("minute", MINUTE), taking("bucket", BUCKET)]);
  assertEquals(cache.size, 3);
  clock.advance(2_000);
  assertEquals(cache.size, 2);
  // A hit of the bucket is refilled in 12 s.
  clock.advance(9_000);
  assertEquals([cache.size, used(cache, [taking("bucket", BUCKET)])], [2, [1]]);
  clock.advance(2_000);
  assertEquals(cache.size, 1);
  clock.advance(52_000);
  assertEquals([cache.size, cache.evicted], [0, 0]);
});

testMemory("asking, giving back and refused hits hold no key", 100, ({ cache }) => {
  const hits = [
    taking("a", MINUTE, 0),
    taking("b", MINUTE, -1),
    taking("c", BUCKET, 6),
    taking("d", BUCKET, -2),
  ];
  assertEquals(taken(cache, hits).map(({ granted }) => granted), [true, true, false, true]);
  assertEquals(cache.size, 0);
});

testMemory("beyond the bound of keys, the counter that is free first is evicted", 4, ({ cache }) => {
  const hits = [taking("a", MINUTE), taking("b", SECOND), taking("c", MINUTE), taking("d", MINUTE)];
  taken(cache, hits);
  assertEquals([cache.size, cache.evicted, used(cache, hits)], [4, 0, [1, 1, 1, 1]]);
  taken(cache, [taking("e", MINUTE)]);
  assertEquals([cache.size, cache.evicted, used(cache, hits)], [4, 1, [1, 0, 1, 1]]);
});

testMemory("what is free makes room before anything is evicted", 2, ({ cache, clock }) => {
  taken(cache, [taking("a", SECOND), taking("b", MINUTE)]);
  clock.aheadMs += 2_000;
  taken(cache, [taking("c", MINUTE)]);
  assertEquals([cache.size, cache.evicted], [2, 0]);
  assertEquals(used(cache, [taking("b", MINUTE), taking("c", MINUTE)]), [1, 1]);
});

testMemory("counters of both kinds share the room", 3, async ({ cache }) => {
  counts(cache, [hit("f1", NOW + 60), hit("f2", NOW + 60)]);
  taken(cache, [taking("a", MINUTE)]);
  // Each kind evicts its own first.
  taken(cache, [taking("b", MINUTE)]);
  assertEquals([cache.size, used(cache, [taking("a", MINUTE), taking("b", MINUTE)])], [3, [0, 1]]);
  counts(cache, [hit("f3", NOW + 60)]);
  assertEquals(readCounts(cache, [hit("f1", NOW + 60), hit("f3", NOW + 60)]), [0, 1]);
  await cache.remove(["f2", "f3", "b"]);
  assertEquals([cache.size, cache.evicted], [0, 2]);
  taken(cache, [taking("a", MINUTE), taking("b", BUCKET), taking("c", BUCKET)]);
  counts(cache, [hit("f4", NOW + 60)]);
  assertEquals([cache.size, cache.evicted, readCounts(cache, [hit("f4", NOW + 60)])], [3, 3, [1]]);
});

testMemory("the state of a sliding window takes room like a longer key", 10, async ({ cache }) => {
  const keys = Array.from({ length: 10 }, (_, index) => `${index}`.padEnd(200, "k"));
  taken(cache, keys.map((key) => taking(key, MINUTE)));
  // 2,560 characters, of which each takes 200 and 152.
  assertEquals([cache.size, cache.evicted], [7, 3]);
  await cache.remove(keys);
  taken(cache, keys.map((key) => taking(key, BUCKET)));
  assertEquals([cache.size, cache.evicted], [10, 3]);
});

testMemory("many conditional counters are exact, whatever was removed between", 10_000, async ({ cache }) => {
  const hits = Array.from(
    { length: 3_000 },
    (_, index) => taking(`k${index}`, index % 2 === 0 ? MINUTE : BUCKET),
  );
  taken(cache, hits);
  await cache.remove(hits.filter((_, index) => index % 3 === 0).map(({ key }) => key));
  taken(cache, hits);
  assertEquals(used(cache, hits), hits.map((_, index) => index % 3 === 0 ? 1 : 2));
});
