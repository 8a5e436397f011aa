import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { startRedis } from "../../harness/redis_server.ts";
import { needs } from "../../harness/tools.ts";

Deno.test({
  ...needs(["redis-server"], "a redis-server of a test answers every kind of reply"),
  async fn() {
    await using redis = await startRedis({ unixSocket: true });
    const replies = [
      await redis.command("SET", "key", "grüße"),
      await redis.command("GET", "key"),
      await redis.command("GET", "nothing"),
      await redis.command("INCRBY", "count", 3),
      await redis.command("MGET", "key", "count"),
    ];
    assertEquals(replies, ["OK", "grüße", null, 3, "grüße\n3"]);
    assertEquals((await Deno.lstat(redis.socketPath ?? "")).isSocket, true);
    assertMatch((await assertRejects(() => redis.command("NO_SUCH"))).message, /unknown command/);
  },
});

Deno.test({
  ...needs(["redis-server"], "a redis-server of a test is paused, killed and started again"),
  async fn() {
    await using redis = await startRedis({ args: ["--requirepass", "pass word"] });
    await redis.command("SET", "key", "value");
    redis.pause();
    const waiting = redis.command("GET", "key");
    redis.resume();
    assertEquals(await waiting, "value");
    await redis.kill();
    await assertRejects(() => redis.command("GET", "key"));
    await redis.restartOnSamePort();
    assertEquals(await redis.command("GET", "key"), null);
    await redis.stop();
    await assertRejects(() => redis.command("GET", "key"));
  },
});
