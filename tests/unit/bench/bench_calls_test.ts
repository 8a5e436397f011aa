import { assertEquals, assertThrows } from "#assert";
import { decodeRateLimitRequest } from "../../../src/wire/rls.ts";
import { benchCalls } from "../../harness/bench_rules.ts";

Deno.test("benchCalls: keys go round, also in batches and in strides", () => {
  const keysOf = (
    options: { keys: number; batch: number; stride: number; firstKey?: number },
    calls: number,
  ) => {
    const source = benchCalls({ load: "keys", ...options });
    return Array.from({ length: calls }, () => {
      const { descriptors } = decodeRateLimitRequest(source.next().body.slice(5));
      return descriptors.map(({ entries }) => entries[1]?.value).join(" ");
    });
  };
  assertEquals(keysOf({ keys: 2, batch: 1, stride: 1 }, 3), ["k0", "k1", "k0"]);
  assertEquals(keysOf({ keys: 6, batch: 4, stride: 1 }, 4), [
    "k0 k1 k2 k3",
    "k4 k5 k0 k1",
    "k2 k3 k4 k5",
    "k0 k1 k2 k3",
  ]);
  assertEquals(keysOf({ keys: 6, batch: 1, stride: 3 }, 3), ["k0", "k3", "k0"]);
  assertEquals(keysOf({ keys: 1_000_000, batch: 1, stride: 1 }, 2), ["k0", "k1"]);
  assertEquals(keysOf({ keys: 2, batch: 1, stride: 1, firstKey: 7 }, 3), ["k7", "k8", "k7"]);
  assertThrows(() => benchCalls({ load: "keys", keys: 100, batch: 50, stride: 1 }));
});
