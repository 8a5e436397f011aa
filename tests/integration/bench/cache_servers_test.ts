import { assertEquals, assertRejects } from "@std/assert";
import { CacheConnection } from "../../../scripts/bench/cache_connection.ts";
import { startCluster, startMemcached, startRedis } from "../../../scripts/bench/cache_servers.ts";
import { sumInMemcached, sumInRedis } from "../../../scripts/bench/counter_sums.ts";
import { needs } from "../../harness/tools.ts";

/** More than fit into one batch. */
const KEYS = 2_500;
const SUM = KEYS * (KEYS + 1) / 2;

Deno.test({
  ...needs(["redis-server"], "sumInRedis: every counter of a server, however many there are"),
  async fn() {
    await using place = await serverPlace();
    const port = await startRedis(place);
    assertEquals(await sumInRedis(port), 0);
    using server = await CacheConnection.open(port);
    const commands = Array.from({ length: KEYS }, (_, index) => ["INCRBY", `k_${index}_é`, index + 1]);
    await server.askAll(commands);
    assertEquals(await sumInRedis(port), SUM);
    await server.ask("HSET", "k", "field", 1);
    await assertRejects(() => sumInRedis(port));
  },
});

Deno.test({
  ...needs(["redis-server"], "startCluster: every node knows all slots, and counters add up over the nodes"),
  async fn() {
    await using place = await serverPlace();
    const ports = await startCluster(place, 3);
    let refused = 0;
    for (const port of ports) {
      using node = await CacheConnection.open(port);
      for (let index = 0; index < 30; index++) {
        try {
          await node.ask("INCRBY", `k${index}`, index);
        } catch (error) {
          refused += String(error).includes(`it answered "-MOVED `) ? 1 : 0;
        }
      }
    }
    const sums = await Promise.all(ports.map(sumInRedis));
    assertEquals([refused, sums.every((sum) => sum > 0), sums.reduce((a, b) => a + b, 0)], [60, true, 435]);
  },
});

Deno.test({
  ...needs(["memcached"], "sumInMemcached: every counter of a server, however many there are"),
  async fn() {
    await using place = await serverPlace();
    const port = await startMemcached(place);
    assertEquals(await sumInMemcached(port), 0);
    using server = await CacheConnection.open(port);
    const text = Array.from({ length: KEYS }, (_, index) => {
      const count = `${index + 1}`;
      return `set k_${index}_%_1 0 0 ${count.length}\r\n${count}\r\n`;
    });
    await server.exchange(text.join(""), KEYS, storedLine);
    assertEquals(await sumInMemcached(port), SUM);
    await server.exchange("set k 0 0 4\r\ntext\r\n", 1, storedLine);
    await assertRejects(() => sumInMemcached(port));
  },
});

function storedLine(text: string, start: number): { reply: string; end: number } | undefined {
  const end = text.indexOf("\r\n", start);
  return end < 0 ? undefined : { reply: text.slice(start, end), end: end + 2 };
}

async function serverPlace(): Promise<AsyncDisposable & { owned: AsyncDisposableStack; folder: string }> {
  const folder = await Deno.makeTempDir({ prefix: "weir_bench_" });
  const owned = new AsyncDisposableStack();
  owned.defer(() => Deno.remove(folder, { recursive: true }));
  return { owned, folder, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
