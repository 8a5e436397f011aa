import { assert, assertEquals } from "@std/assert";
import { MemoryCache } from "../../../src/cache/memory_cache.ts";
import type { Hit } from "../../../src/ratelimit/counter_cache.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { heapMegabytes } from "../../harness/garbage.ts";

const NOW = 1_700_000_000;

function hit(key: string, windowEnd: number, addend = 1): Hit {
  return { key, addend, windowEnd, expiresInSeconds: windowEnd - NOW, perSecond: false };
}

function open(maxKeys: number): { cache: MemoryCache; clock: FakeClock } {
  const clock = new FakeClock(NOW * 1000);
  return { cache: new MemoryCache({ maxKeys, clock }), clock };
}

Deno.test("memory cache: counters are dropped when their window is over", async () => {
  const { cache, clock } = open(100);
  const [short, long] = [hit("short", NOW + 1), hit("long", NOW + 60)];
  cache.add([short, long]);
  clock.advance(999);
  assertEquals([cache.size, cache.read([short, long])], [2, [1, 1]]);
  clock.advance(1_001);
  assertEquals([cache.size, cache.read([short, long])], [1, [0, 1]]);
  clock.advance(60_000);
  assertEquals([cache.size, cache.evicted], [0, 0]);
  await cache.close();
  assertEquals(clock.waiting, 0);
});

Deno.test("memory cache: nothing is lost up to the bound, then those nearest their end give way", async () => {
  const { cache } = open(4);
  const hits = [
    hit("hour", NOW + 3_600),
    hit("minute1", NOW + 60),
    hit("minute2", NOW + 60),
    hit("day", NOW + 86_400),
  ];
  cache.add(hits);
  assertEquals([cache.size, cache.evicted, cache.read(hits)], [4, 0, [1, 1, 1, 1]]);
  cache.add([hit("day2", NOW + 86_400)]);
  assertEquals([cache.size, cache.evicted, cache.read(hits)], [4, 1, [1, 0, 1, 1]]);
  cache.add([hit("day3", NOW + 86_400), hit("day4", NOW + 86_400)]);
  assertEquals([cache.size, cache.evicted, cache.read(hits)], [4, 3, [0, 0, 0, 1]]);
  cache.add([hit("second", NOW + 1), hit("second2", NOW + 1)]);
  assertEquals([cache.size, cache.evicted], [4, 5]);
  assertEquals(cache.read([hit("second", NOW + 1), hit("second2", NOW + 1)]), [0, 1]);
  await cache.close();
});

Deno.test("memory cache: room is made from what is over before anything gives way", async () => {
  const { cache, clock } = open(3);
  cache.add([hit("a", NOW + 1), hit("b", NOW + 1), hit("c", NOW + 60)]);
  clock.advance(1_000);
  cache.add([hit("d", NOW + 60), hit("e", NOW + 60)]);
  assertEquals([cache.size, cache.evicted], [3, 0]);
  await cache.close();
});

Deno.test("memory cache: long keys take the room of several", async () => {
  const { cache } = open(100);
  const long = (index: number) => hit(`${index}_${"x".repeat(8_000)}`, NOW + 60);
  for (let index = 0; index < 1_000; index++) cache.add([long(index)]);
  assertEquals([cache.size, cache.evicted, cache.read([long(0), long(999)])], [3, 997, [0, 1]]);
  cache.add([hit("x".repeat(100_000), NOW + 60)]);
  assertEquals(cache.size, 1);
  await cache.close();
});

Deno.test("memory cache: a hit on a window that is just over costs no room for good", async () => {
  const { cache, clock } = open(2);
  for (let second = 0; second < 20; second++) {
    cache.add([hit(`a${second}`, NOW + second + 1), hit(`b${second}`, NOW + second + 1)]);
    clock.advance(999);
    clock.advance(2);
    cache.add([hit(`late${second}`, NOW + second + 1)]);
  }
  clock.advance(60_000);
  assertEquals([cache.size, cache.evicted], [0, 0]);
  cache.add([hit("x", NOW + 600), hit("y", NOW + 600)]);
  assertEquals([cache.size, cache.evicted, cache.read([hit("x", NOW + 600)])], [2, 0, [1]]);
  await cache.close();
});

Deno.test("memory cache: hits given back to a counter of a shorter window stop at 0 as well", async () => {
  const { cache } = open(10);
  cache.add([hit("k", NOW + 60)]);
  const long = hit("k", NOW + 3_600);
  assertEquals(cache.add([{ ...long, addend: -5 }, long]), [0, 1]);
  await cache.close();
});

Deno.test("memory cache: a counter that two windows share lives as long as the longer one", async () => {
  const { cache, clock } = open(10);
  cache.add([hit("k", NOW + 60), hit("k", NOW + 3_600)]);
  clock.advance(61_000);
  assertEquals(cache.read([hit("k", NOW + 3_600)]), [2]);
  await cache.remove(["k"]);
  assertEquals([cache.size, cache.read([hit("k", NOW + 3_600)])], [0, [0]]);
  await cache.close();
});

Deno.test("memory cache: the place of a counter keeps no other counters in memory when their window is over", async () => {
  const { cache, clock } = open(1_000_000);
  const before = heapMegabytes();
  for (let index = 0; index < 100_000; index++) cache.add([hit(`key number ${index}`, NOW + 60)]);
  const place = cache.placeOf(hit("key number 7", NOW + 60));
  assertEquals(place?.addWithin(10, 1), 2);
  const full = heapMegabytes();
  clock.advance(61_000);
  const after = heapMegabytes();
  assert(after - before < (full - before) / 4, `${before} MB, then ${full} MB, then ${after} MB`);
  assertEquals(place?.addWithin(10, 1), undefined);
  await cache.close();
});
