import { assertEquals, assertMatch, assertRejects } from "#assert";
import type { CounterCache } from "../../../src/ratelimit/decision/counter_cache.ts";
import { conditionalHit } from "../../contract/conditional_counter_cases.ts";
import { hit } from "../../contract/counter_cache_contract.ts";
import type { CacheServer } from "../../harness/cache_server.ts";
import { freePort } from "../../harness/free_port.ts";
import { openMc } from "../../harness/mc_bed.ts";
import { startMemcached } from "../../harness/memcached.ts";
import { openKvCache, openKvCluster } from "../../harness/open_kv.ts";
import { startRedisCluster } from "../../harness/redis_cluster.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { needs, type Tool } from "../../harness/tools.ts";
import { eventually, until } from "../../harness/until.ts";
import { readCounts, takeCounts, taken } from "../../harness/take.ts";

type Told = (connected: boolean, reason: string) => void;

/** A cache over its own servers. */
interface Adapter {
  readonly tool: Tool;
  /** Starts the servers. */
  start(owned: AsyncDisposableStack): Promise<readonly CacheServer[]>;
  open(ports: readonly number[], onConnection: Told): CounterCache & { readonly ready: Promise<unknown> };
  /** Beginning of the error of a call. */
  readonly begin: (port: number) => string;
}

const ADAPTERS: Readonly<Record<string, Adapter>> = {
  "kv cache": {
    tool: "redis-server",
    start: async (owned) => [owned.use(await startRedis())],
    open: ([port], onConnection) => openKvCache(`127.0.0.1:${port}`, { onConnection }),
    begin: (port) => `Cannot query key-value cache "127.0.0.1:${port}": `,
  },
  "kv cluster": {
    tool: "redis-server",
    start: async (owned) => owned.use(await startRedisCluster()).nodes,
    open: (ports, onConnection) => openKvCluster(ports, { onConnection }),
    begin: (port) => `Cannot query key-value cache "cluster": node "127.0.0.1:${port}": `,
  },
  "mc cache": {
    tool: "memcached",
    start: async (owned) => [owned.use(await startMemcached())],
    open: (ports, onConnection) => openMc(ports, { onConnection }),
    begin: (port) => `Cannot query memcached-style cache "127.0.0.1:${port}": no connection: `,
  },
};

for (const [name, { tool, start, open, begin }] of Object.entries(ADAPTERS)) {
  Deno.test(`${name}: without a server every call fails immediately, and the outage is reported once`, async () => {
    const port = freePort();
    const told: string[] = [];
    const cache = open([port], (connected, reason) => void told.push(`${connected} ${reason}`));
    await until("the outage to be reported", () => told.length > 0);
    const calls: (() => unknown)[] = [
      () => takeCounts(cache, [hit()]),
      () => readCounts(cache, [hit()]),
      () => cache.remove(["key"]),
    ];
    if (cache.isConditional) calls.push(() => taken(cache, [conditionalHit()]));
    for (const call of calls) {
      const { name, message } = await assertRejects(async () => await call());
      assertEquals([name, message.startsWith(begin(port))], ["CacheError", true], message);
    }
    await cache.close();
    assertEquals(told.length, 1);
    assertMatch(told[0] ?? "", /^false .*ECONNREFUSED/);
  });

  Deno.test({
    ...needs([tool], `${name}: goes on by itself when the servers are back, and counts nothing twice`),
    async fn() {
      await using owned = new AsyncDisposableStack();
      const servers = await start(owned);
      const told: boolean[] = [];
      const cache = open(servers.map(({ port }) => port), (connected) => void told.push(connected));
      owned.defer(() => cache.close());
      await cache.ready;
      const one = hit();
      assertEquals(await takeCounts(cache, [one]), [1]);
      for (const server of servers) await server.kill();
      await until("the outage to be reported", () => told.includes(false));
      assertEquals((await assertRejects(async () => await takeCounts(cache, [one]))).name, "CacheError");
      await Promise.all(servers.map((server) => server.restartOnSamePort()));
      await until("counting to go on", async () => (await readCounts(cache, [one])).length === 1);
      assertEquals(await takeCounts(cache, [one]), [1]);
      await eventually([true, false, true], () => told);
    },
  });
}
