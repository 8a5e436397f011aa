import { assertEquals } from "@std/assert";
import { expiriesOf, expiryHit, runExpiryFaults } from "../../harness/kv_expiry_faults.ts";
import { testRedis } from "../../harness/kv_bed.ts";
import { openKvCache } from "../../harness/open_kv.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { until } from "../../harness/until.ts";

/** Short, because calls to a server that stands still end by it. */
const TIMEOUT_MS = 60;

testRedis("kv expiries: a counter that is new, and whose reply was lost, gets its expiry", async (redis) => {
  await using cache = openKvCache(redis.url, { timeoutMs: 500 });
  await until("the connections", () => cache.metrics.gauges.cx_active?.() === 3);
  await cache.add([expiryHit("lost", 1)]);
  await redis.command("FLUSHALL");
  redis.pause();
  const failed = await cache.add([expiryHit("lost", 1)]).then(() => false, () => true);
  redis.resume();
  assertEquals(failed, true);
  await until("the lost hit to count", async () => await redis.command("GET", "lost") === "1");
  await expiriesOf(redis);
});

testRedis("kv expiries: under random faults every key has one in the end", async (redis) => {
  await using cache = openKvCache(redis.url, { timeoutMs: TIMEOUT_MS });
  const random = seededRandom(20_261_123);
  await runExpiryFaults({ cache, primaries: () => [redis], rounds: 20, random });
});
