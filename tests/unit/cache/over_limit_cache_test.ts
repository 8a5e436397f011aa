import { assertEquals } from "#assert";
import { OverLimitCache } from "../../../src/cache/over_limit_cache.ts";

Deno.test("local cache: remembers the count until the window ends", () => {
  const cache = new OverLimitCache(10_000);
  cache.set("a", { count: 11, windowEnd: 160 }, 100);
  assertEquals([
    cache.get("a", 100)?.count,
    cache.get("a", 159)?.count,
    cache.get("a", 160),
    cache.get("b", 100),
  ], [
    11,
    11,
    undefined,
    undefined,
  ]);
  assertEquals([cache.size, cache.bytes], [0, 0]);
  cache.set("late", { count: 11, windowEnd: 160 }, 160);
  assertEquals(cache.size, 0);
});

Deno.test("local cache: a later count takes the place of the earlier one", () => {
  const cache = new OverLimitCache(10_000);
  cache.set("a", { count: 11, windowEnd: 160 }, 100);
  const bytes = cache.bytes;
  cache.set("a", { count: 15, windowEnd: 160 }, 101);
  assertEquals([cache.get("a", 101)?.count, cache.size, cache.bytes], [15, 1, bytes]);
  cache.forget("a");
  cache.forget("a");
  assertEquals([cache.get("a", 101), cache.size, cache.bytes], [undefined, 0, 0]);
});

Deno.test("local cache: stays within its bytes; what was used longest ago is evicted", () => {
  const cache = new OverLimitCache(400);
  cache.set("a", { count: 1, windowEnd: 160 }, 100);
  cache.set("b", { count: 2, windowEnd: 160 }, 100);
  cache.set("c", { count: 3, windowEnd: 160 }, 100);
  assertEquals(cache.get("a", 100)?.count, 1);
  cache.set("d", { count: 4, windowEnd: 160 }, 100);
  assertEquals(["a", "b", "c", "d"].map((key) => cache.get(key, 100)?.count), [1, undefined, 3, 4]);
  cache.set("x".repeat(1_000), { count: 5, windowEnd: 160 }, 100);
  assertEquals([cache.size, cache.bytes <= 400], [3, true]);
  for (let index = 0; index < 10_000; index++) cache.set(`key${index}`, { count: 1, windowEnd: 160 }, 100);
  assertEquals(cache.bytes <= 400, true);
});

Deno.test("local cache: its metrics tell what became of keys and lookups", () => {
  const cache = new OverLimitCache(400);
  const metrics = () =>
    Object.fromEntries(Object.entries(cache.metrics.gauges).map(([name, read]) => [name, read()]));
  const none = {
    entryCount: 0,
    hitCount: 0,
    missCount: 0,
    lookupCount: 0,
    overwriteCount: 0,
    expiredCount: 0,
    evacuateCount: 0,
    averageAccessTime: 0,
  };
  assertEquals(metrics(), none);
  assertEquals(cache.metrics.counters, {});
  cache.set("a", { count: 1, windowEnd: 160 }, 100);
  cache.set("b", { count: 1, windowEnd: 160 }, 104);
  assertEquals(metrics(), { ...none, entryCount: 2, averageAccessTime: 102 });
  cache.get("a", 108);
  cache.get("unknown", 108);
  cache.set("b", { count: 2, windowEnd: 160 }, 110);
  const used = { entryCount: 2, hitCount: 1, missCount: 1, lookupCount: 2, overwriteCount: 1 };
  assertEquals(metrics(), { ...none, ...used, averageAccessTime: 109 });
  cache.set("c", { count: 1, windowEnd: 111 }, 110);
  cache.set("d", { count: 1, windowEnd: 160 }, 110);
  const full = { ...none, ...used, entryCount: 3, evacuateCount: 1, averageAccessTime: 110 };
  assertEquals(metrics(), full);
  cache.get("c", 111);
  const looked = { missCount: 2, lookupCount: 3, expiredCount: 1, entryCount: 2 };
  assertEquals(metrics(), { ...full, ...looked });
  for (const key of ["e", "f"]) cache.set(key, { count: 1, windowEnd: 300 }, 160);
  assertEquals(metrics(), {
    ...full,
    ...looked,
    entryCount: 3,
    expiredCount: 2,
    averageAccessTime: (110 + 160 + 160) / 3,
  });
  for (const key of ["b", "d", "e", "f"]) cache.forget(key);
  assertEquals([cache.bytes, metrics().averageAccessTime], [0, 0]);
});
