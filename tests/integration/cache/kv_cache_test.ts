import { assertEquals, assertMatch, assertRejects } from "#assert";
import { hit } from "../../contract/counter_cache_contract.ts";
import { expiriesOf, expiryHit, runExpiryFaults } from "../../harness/kv_expiry_faults.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { testKv, testRedis } from "../../harness/kv_bed.ts";
import { openKvCache as open } from "../../harness/open_kv.ts";
import { until } from "../../harness/until.ts";
import { readCounts, takeCounts } from "../../harness/take.ts";

testRedis("kv cache: an expiry is set once, for a new counter, and for a longer window", async (redis) => {
  const cache = open(redis.url);
  await cache.ready;
  // A further connection might lead to another server, so each one has expiries set again.
  await until("the connections", () => cache.metrics.gauges.cx_active?.() === 3);
  const one = hit({ expiresInSeconds: 777 });
  const ttl = async () => Number(await redis.command("TTL", one.key));
  await takeCounts(cache, [one]);
  assertEquals(await ttl() > 700, true);
  await redis.command("PERSIST", one.key);
  await takeCounts(cache, [one]);
  assertEquals([await ttl(), await redis.command("GET", one.key)], [-1, "2"]);
  await takeCounts(cache, [{ ...one, windowEnd: one.windowEnd + 3_540, expiresInSeconds: 3_600 }]);
  assertEquals(await ttl() > 3_500, true);
  await takeCounts(cache, [one]);
  assertEquals([await ttl() > 3_500, await redis.command("GET", one.key)], [true, "4"]);
  await redis.command("DEL", one.key);
  assertEquals(await takeCounts(cache, [one]), [1]);
  await until("the counter that is new to expire", async () => await ttl() > 700);
  await redis.command("FLUSHALL");
  await redis.command("CLIENT", "KILL", "TYPE", "normal");
  await until("counting to go on", async () => (await takeCounts(cache, [{ ...one, addend: 5 }]))[0] === 5);
  assertEquals(await ttl() > 700, true);
  await takeCounts(cache, [hit({ key: "century", expiresInSeconds: 31_536_000 * 4_294_967_295 })]);
  assertEquals(Number(await redis.command("TTL", "century")) > 3e11, true);
  await cache.close();
});

testKv("kv cache: what is no counter fails its own call only; below 0 is read as 0", async (redis) => {
  await using cache = open(redis.url);
  await cache.ready;
  const [good, bad] = [hit(), hit()];
  await redis.command("SET", bad.key, "-100");
  const negative = await assertRejects(() => takeCounts(cache, [bad]));
  assertMatch(negative.message, /: it answered -99 to INCRBY 1$/);
  assertEquals(await readCounts(cache, [bad]), [0]);
  for (const text of ["1.5", "", "text"]) {
    await redis.command("SET", bad.key, text);
    const error = await assertRejects(() => readCounts(cache, [bad]));
    assertMatch(error.message, /which is not a whole number$/);
  }
  const [first, failed, last] = await Promise.allSettled([
    takeCounts(cache, [good]),
    takeCounts(cache, [bad]),
    takeCounts(cache, [good]),
  ]);
  assertEquals([first, last], [{ status: "fulfilled", value: [1] }, { status: "fulfilled", value: [2] }]);
  const message =
    `Cannot query key-value cache "127.0.0.1:${redis.port}": ERR value is not an integer or out of range`;
  assertEquals(failed?.status === "rejected" && failed.reason.message, message);
});

testRedis("kv cache: counts in the database that is named, and in no other", async (redis) => {
  const third = open(`redis://${redis.url}/3`);
  await third.ready;
  const one = hit();
  await takeCounts(third, [one]);
  assertEquals(await redis.command("GET", one.key), null);
  await redis.command("CLIENT", "KILL", "TYPE", "normal");
  await until(
    "the connection to be back in its database",
    async () => (await takeCounts(third, [one]))[0] === 2,
  );
  await third.close();
  const told: string[] = [];
  const none = open(`redis://${redis.url}/99`, { onConnection: (_, reason) => void told.push(reason) });
  await until("the refusal to be logged", () => told.length > 0);
  const error = await assertRejects(async () => await takeCounts(none, [one]));
  assertMatch(error.message, /database 99 was refused: ERR DB index is out of range/);
  await none.close();
});

/** Short, because calls to a server that stands still end by it. */
const TIMEOUT_MS = 60;

testRedis("kv expiries: a counter that is new, and whose reply was lost, gets its expiry", async (redis) => {
  await using cache = open(redis.url, { timeoutMs: 500 });
  await until("the connections", () => cache.metrics.gauges.cx_active?.() === 3);
  await takeCounts(cache, [expiryHit("lost", 1)]);
  await redis.command("FLUSHALL");
  redis.pause();
  const failed = await takeCounts(cache, [expiryHit("lost", 1)]).then(() => false, () => true);
  redis.resume();
  assertEquals(failed, true);
  await until("the lost hit to count", async () => await redis.command("GET", "lost") === "1");
  await expiriesOf(redis);
});

testRedis("kv expiries: under random faults every key has one in the end", async (redis) => {
  await using cache = open(redis.url, { timeoutMs: TIMEOUT_MS });
  const random = seededRandom(20_261_123);
  await runExpiryFaults({ cache, primaries: () => [redis], rounds: 20, random });
});
