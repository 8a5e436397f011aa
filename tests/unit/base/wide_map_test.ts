import { assertEquals } from "#assert";
import { WideMap } from "../../../src/base/wide_map.ts";

Deno.test("wide map: is a map", () => {
  const map = new WideMap<number>();
  const keys = Array.from({ length: 5_000 }, (_, index) => `key ${index}`);
  for (const [index, key] of keys.entries()) map.set(key, index);
  map.set("key 7", -7);
  map.delete("key 8");
  map.delete("another");
  assertEquals(map.size, 4_999);
  assertEquals(["key 6", "key 7", "key 8"].map((key) => map.get(key)), [6, -7, undefined]);
  const sorted = [...map.values()].sort((a, b) => a - b);
  assertEquals(sorted, [-7, ...keys.keys().filter((index) => index !== 7 && index !== 8)]);
});
