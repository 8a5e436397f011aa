import { assertEquals, assertRejects } from "@std/assert";
import { sumInMemcached, sumInRedis } from "../../../scripts/bench/counter_sums.ts";
import { startMemcached } from "../../harness/memcached.ts";
import { startRedisCluster } from "../../harness/redis_cluster.ts";
import { redisCommands } from "../../harness/redis_command.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { needs } from "../../harness/tools.ts";

/** More than fit into one batch. */
const KEYS = 2_500;
const SUM = KEYS * (KEYS + 1) / 2;

Deno.test({
  ...needs(["redis-server"], "sumInRedis: every counter of a server, however many there are"),
  async fn() {
    await using redis = await startRedis();
    assertEquals(await sumInRedis(redis.port), 0);
    const commands = Array.from({ length: KEYS }, (_, index) => ["INCRBY", `k_${index}_é`, `${index + 1}`]);
    await redisCommands(commands, redis);
    assertEquals(await sumInRedis(redis.port), SUM);
    await redis.command("HSET", "k", "field", 1);
    await assertRejects(() => sumInRedis(redis.port));
  },
});

Deno.test({
  ...needs(["redis-server"], "sumInRedis: counters add up over the nodes of a cluster"),
  async fn() {
    await using cluster = await startRedisCluster();
    let refused = 0;
    for (const node of cluster.nodes) {
      for (let index = 0; index < 30; index++) {
        await node.command("INCRBY", `k${index}`, index).catch((error: Error) => {
          refused += error.message.includes("MOVED ") ? 1 : 0;
        });
      }
    }
    const sums = await Promise.all(cluster.nodes.map(({ port }) => sumInRedis(port)));
    assertEquals([refused, sums.every((sum) => sum > 0), sums.reduce((a, b) => a + b, 0)], [60, true, 435]);
  },
});

Deno.test({
  ...needs(["memcached"], "sumInMemcached: every counter of a server, however many there are"),
  async fn() {
    await using memcached = await startMemcached();
    assertEquals(await sumInMemcached(memcached), 0);
    const store = (key: string, text: string) => `set ${key} 0 0 ${text.length}\r\n${text}`;
    const counters = Array.from({ length: KEYS }, (_, index) => store(`k_${index}_%_1`, `${index + 1}`));
    const answers = await memcached.command(counters.join("\r\n"));
    assertEquals(answers.filter((answer) => answer === "STORED").length, KEYS);
    assertEquals(await sumInMemcached(memcached), SUM);
    await memcached.command(store("k", "text"));
    await assertRejects(() => sumInMemcached(memcached));
  },
});
