import { assertEquals } from "@std/assert";
import { MemoryCache } from "../../../src/cache/memory_cache.ts";
import { bucketLimit } from "../../../src/ratelimit/algorithms/bucket.ts";
import { sliceLimit } from "../../../src/ratelimit/algorithms/slices.ts";
import type { ConditionalHit, Hit } from "../../../src/ratelimit/counter_cache.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

const NOW = 1_700_000_000;
const SECOND = sliceLimit(5, 1_000);
const MINUTE = sliceLimit(5, 60_000);
const BUCKET = bucketLimit({ burst: 5, hitsPerUnit: 5, unitSeconds: 60 });

function taking(key: string, limit: ConditionalHit["limit"], addend = 1): ConditionalHit {
  return { key, limit, addend, expiresInSeconds: 60, perSecond: false };
}

function fixed(key: string, windowEnd: number): Hit {
  return { key, addend: 1, windowEnd, expiresInSeconds: 60, perSecond: false };
}

function open(maxKeys: number): { cache: MemoryCache; clock: FakeClock } {
  const clock = new FakeClock(NOW * 1000);
  return { cache: new MemoryCache({ maxKeys, clock }), clock };
}

/** What each key has used. */
function used(cache: MemoryCache, hits: readonly ConditionalHit[]): number[] {
  return cache.take(hits.map((hit) => ({ ...hit, addend: 0 }))).map((taken) => taken.used);
}

Deno.test("memory cache: conditional counters are dropped when all has been free for 5 s", async () => {
  const { cache, clock } = open(100);
  cache.take([taking("second", SECOND), taking("minute", MINUTE), taking("bucket", BUCKET)]);
  clock.advance(6_000);
  assertEquals(cache.size, 3);
  clock.advance(1_000);
  assertEquals(cache.size, 2);
  // A hit of the bucket is refilled in 12 s.
  clock.advance(9_000);
  assertEquals([cache.size, used(cache, [taking("bucket", BUCKET)])], [2, [0]]);
  clock.advance(2_000);
  assertEquals(cache.size, 1);
  clock.advance(52_000);
  assertEquals([cache.size, cache.evicted], [0, 0]);
  await cache.close();
  assertEquals(clock.waiting, 0);
});

Deno.test("memory cache: asking, giving back and refused hits hold no key", async () => {
  const { cache } = open(100);
  const hits = [
    taking("a", MINUTE, 0),
    taking("b", MINUTE, -1),
    taking("c", BUCKET, 6),
    taking("d", BUCKET, -2),
  ];
  assertEquals(cache.take(hits).map(({ granted }) => granted), [true, true, false, true]);
  assertEquals(cache.size, 0);
  await cache.close();
});

Deno.test("memory cache: beyond the bound of keys, the counter that is free first is evicted", async () => {
  const { cache } = open(4);
  const hits = [taking("a", MINUTE), taking("b", SECOND), taking("c", MINUTE), taking("d", MINUTE)];
  cache.take(hits);
  assertEquals([cache.size, cache.evicted, used(cache, hits)], [4, 0, [1, 1, 1, 1]]);
  cache.take([taking("e", MINUTE)]);
  assertEquals([cache.size, cache.evicted, used(cache, hits)], [4, 1, [1, 0, 1, 1]]);
  await cache.close();
});

Deno.test("memory cache: what is free makes room before anything is evicted", async () => {
  const { cache, clock } = open(2);
  cache.take([taking("a", SECOND), taking("b", MINUTE)]);
  clock.aheadMs += 2_000;
  cache.take([taking("c", MINUTE)]);
  assertEquals([cache.size, cache.evicted], [2, 0]);
  assertEquals(used(cache, [taking("b", MINUTE), taking("c", MINUTE)]), [1, 1]);
  await cache.close();
});

Deno.test("memory cache: counters of both kinds share the room", async () => {
  const { cache } = open(3);
  cache.add([fixed("f1", NOW + 60), fixed("f2", NOW + 60)]);
  cache.take([taking("a", MINUTE)]);
  // Each kind evicts its own first.
  cache.take([taking("b", MINUTE)]);
  assertEquals([cache.size, used(cache, [taking("a", MINUTE), taking("b", MINUTE)])], [3, [0, 1]]);
  cache.add([fixed("f3", NOW + 60)]);
  assertEquals(cache.read([fixed("f1", NOW + 60), fixed("f3", NOW + 60)]), [0, 1]);
  await cache.remove(["f2", "f3", "b"]);
  assertEquals([cache.size, cache.evicted], [0, 2]);
  cache.take([taking("a", MINUTE), taking("b", BUCKET), taking("c", BUCKET)]);
  cache.add([fixed("f4", NOW + 60)]);
  assertEquals([cache.size, cache.evicted, cache.read([fixed("f4", NOW + 60)])], [3, 3, [1]]);
  await cache.close();
});

Deno.test("memory cache: the state of a sliding window takes room like a longer key", async () => {
  const { cache } = open(10);
  const keys = Array.from({ length: 10 }, (_, index) => `${index}`.padEnd(200, "k"));
  cache.take(keys.map((key) => taking(key, MINUTE)));
  // 2,560 characters, of which each takes 200 and 152.
  assertEquals([cache.size, cache.evicted], [7, 3]);
  await cache.remove(keys);
  cache.take(keys.map((key) => taking(key, BUCKET)));
  assertEquals([cache.size, cache.evicted], [10, 3]);
  await cache.close();
});

Deno.test("memory cache: many conditional counters are exact, whatever was removed between", async () => {
  const { cache } = open(10_000);
  const hits = Array.from(
    { length: 3_000 },
    (_, index) => taking(`k${index}`, index % 2 === 0 ? MINUTE : BUCKET),
  );
  cache.take(hits);
  await cache.remove(hits.filter((_, index) => index % 3 === 0).map(({ key }) => key));
  cache.take(hits);
  assertEquals(used(cache, hits), hits.map((_, index) => index % 3 === 0 ? 1 : 2));
  await cache.close();
});
