import { assertEquals } from "#assert";
import { openKvCache } from "../../harness/open_kv.ts";
import { type RedisServer, startRedis } from "../../harness/redis_server.ts";
import { needs } from "../../harness/tools.ts";
import { COUNTED, playVector, vectorFixture } from "../../harness/vector_play.ts";
import { expectedCounters, type Vector } from "../../harness/vectors.ts";

Deno.test({
  ...needs(["redis-server"], "vectors on a key-value cache: counters and expiries"),
  async fn(test) {
    await using redis = await startRedis();
    for (const vector of COUNTED) {
      await test.step(vector.id, async () => {
        await redis.command("FLUSHALL");
        const begin = performance.now();
        const cache = openKvCache(redis.url);
        await cache.ready;
        await using fixture = vectorFixture(vector, cache);
        await playVector(fixture, vector);
        await checkCounters(redis, vector, begin);
      });
    }
  },
});

/** The counts since `begin`, by `performance.now()`. */
async function checkCounters(redis: RedisServer, vector: Vector, begin: number): Promise<void> {
  for (const [key, { added, expires }] of expectedCounters(vector)) {
    const count = await redis.command("GET", key);
    const ttl = Number(await redis.command("TTL", key));
    const passed = (performance.now() - begin) / 1_000;
    // Where the machine took longer than a key lives, it may be gone.
    if (added > 0 && passed >= expires) continue;
    assertEquals([key, Number(count ?? 0)], [key, added]);
    if (added > 0) assertEquals([key, ttl >= Math.floor(expires - passed) - 1], [key, true]);
  }
}
