import { assertEquals, assertMatch, assertThrows } from "#assert";
import { relative } from "node:path";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { type RedisCluster, startRedisCluster } from "../../harness/redis_cluster.ts";
import { startRedisSentinel } from "../../harness/redis_sentinel.ts";
import { type RedisServer, startRedis } from "../../harness/redis_server.ts";
import type { ServeFixture } from "../../harness/serve_fixture.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { eventually, until } from "../../harness/until.ts";
import { startWeir } from "../../harness/weir_process.ts";
import {
  compare,
  type Env,
  inFlight,
  noon,
  sharedTests,
  SHOP,
  shopRequest,
  startShop,
  statusOf,
  tried,
  whileStalled,
} from "./settings_bed.ts";

/** Nothing listens there, and no test can be given this port. */
const NOWHERE = "127.0.0.1:1";
const PASSWORD = "s3cret";
/** More keys than nodes, so that each node has some of them. */
const MANY_VALUES = Array.from({ length: 30 }, (_, index) => `k${index}`);

/** One of the two key-value caches: its settings, a rule that is counted there, a gauge of its connections. */
interface WhichCache {
  readonly prefix: "KV" | "KV_PERSECOND";
  readonly rule: "open" | "quick";
  readonly connections: string;
}

const MAIN: WhichCache = { prefix: "KV", rule: "open", connections: "ratelimit.kv_pool.cx_active" };
const PER_SECOND: WhichCache = {
  prefix: "KV_PERSECOND",
  rule: "quick",
  connections: "ratelimit.kv_per_second_pool.cx_active",
};

/** Settings with this cache at `url`, and more of them by the end of their names; the other cache is another server. */
function kvEnv({ prefix }: WhichCache, other: RedisServer, url: string, more: Env = {}): Env {
  const own = Object.entries(more).map(([name, value]) => [`${prefix}_${name}`, value]);
  return {
    BACKEND_TYPE: "kv",
    ...(prefix === "KV" ? {} : { KV_URL: other.url, KV_POOL_SIZE: "1", KV_PERSECOND: "true" }),
    [`${prefix}_URL`]: url,
    ...Object.fromEntries(own),
  };
}

sharedTests({
  of: "both key-value caches",
  tools: ["redis-server"],
  start: async (stack) => stack.use(await startRedis()),
  steps: {
    "KV_URL, KV_PERSECOND, KV_PERSECOND_URL: where limits are counted": (redis) =>
      compare({ KV_PERSECOND: "true" }, {
        env: {
          BACKEND_TYPE: "kv",
          KV_URL: `redis://${redis.url}/1`,
          KV_PERSECOND_URL: `redis://${redis.url}/2`,
        },
        async look(service) {
          await redis.command("FLUSHALL");
          const status = await statusOf(service, "open=a", "open=b", "quick=a");
          const keyspace = String(await redis.command("INFO", "keyspace"));
          return [status, keyspace.match(/db\d+:keys=\d+/g)?.join()];
        },
        unset: [200, "db1:keys=3"],
        set: [200, "db1:keys=2,db2:keys=1"],
      }),
    "…_TIMEOUT, …_PIPELINE_WINDOW, …_POOL_SIZE: each cache has its own": async (redis) => {
      const clock = noon();
      await using service = await startShop({
        BACKEND_TYPE: "kv",
        KV_URL: redis.url,
        KV_PERSECOND: "true",
        KV_PERSECOND_URL: redis.url,
        KV_TIMEOUT: "61s",
        KV_PIPELINE_WINDOW: "31ms",
        KV_POOL_SIZE: "2",
        KV_PERSECOND_TIMEOUT: "71s",
        KV_PERSECOND_PIPELINE_WINDOW: "32ms",
        KV_PERSECOND_POOL_SIZE: "3",
      }, clock);
      await eventually([2, 3], async () => {
        const stats = await service.stats();
        return [MAIN, PER_SECOND].map(({ connections }) => stats[connections]);
      });
      // A connection waits for the other side, and for the login.
      assertEquals([61_000, 71_000].map((ms) => clock.waits.filter((wait) => wait === ms).length), [4, 6]);
      const windows = () => [31, 32].map((ms) => clock.waits.includes(ms));
      assertEquals([await statusOf(service, "open=a"), ...windows()], [200, true, false]);
      assertEquals([await statusOf(service, "quick=a"), ...windows()], [200, true, true]);
    },
    "MAX_IN_FLIGHT: a call refused while others wait": async (redis) => {
      await using relay = await startTcpRelay(redis.port);
      const env = { BACKEND_TYPE: "kv", KV_URL: relay.url, MAX_IN_FLIGHT: "1", CACHE_ON_FAILURE: "deny" };
      await using service = await startShop(env);
      await tried(service, MAIN.connections, relay.url);
      const first = await whileStalled(relay, async () => {
        const call = statusOf(service, "open=a");
        await inFlight(service, 1);
        assertEquals(await statusOf(service, "open=b"), 429);
        return { call };
      });
      assertEquals(await first.call, 200);
    },
  },
});

for (const which of [MAIN, PER_SECOND]) {
  const { prefix, rule, connections } = which;
  sharedTests({
    of: `the cache of ${prefix}`,
    tools: ["redis-server"],
    start: async (stack) => ({
      other: stack.use(await startRedis()),
      locked: stack.use(await startRedis({ args: ["--requirepass", PASSWORD], unixSocket: true })),
      cluster: stack.use(await startRedisCluster()),
      sentinels: stack.use(await startRedisSentinel({ sentinelPassword: PASSWORD })),
    }),
    steps: {
      [`${prefix}_URL is required`]({ other }) {
        const { message } = assertThrows(() => readSettings(kvEnv(which, other, "")));
        assertEquals(message.split(":")[0], `${prefix}_URL is not set`);
        return Promise.resolve();
      },
      [`${prefix}_SOCKET_TYPE, ${prefix}_AUTH: a unix socket at a relative path, with a login`]: async (
        { locked, other },
      ) => {
        const url = relative(Deno.cwd(), locked.socketPath ?? "");
        const { message } = assertThrows(() => readSettings(kvEnv(which, other, url)));
        assertMatch(message, /URL \(value not shown\): expected host:port/);
        await compare({ [`${prefix}_AUTH`]: PASSWORD }, {
          env: kvEnv(which, other, url, { SOCKET_TYPE: "unix" }),
          async look(service) {
            await tried(service, connections, url);
            return await statusOf(service, `${rule}=a`);
          },
          unset: 503,
          set: 200,
        });
      },
      [`${prefix}_TYPE, ${prefix}_SENTINEL_AUTH: the primary found by sentinels that require a login`]: (
        { sentinels: { url }, other },
      ) =>
        compare({ [`${prefix}_SENTINEL_AUTH`]: PASSWORD }, {
          env: kvEnv(which, other, url, { TYPE: "SENTINEL" }),
          async look(service) {
            await tried(service, connections, url);
            return await statusOf(service, `${rule}=a`);
          },
          unset: 503,
          set: 200,
        }),
      [`${prefix}_CLUSTER_PIPELINE_PARALLELISM: a node asked when the previous one has answered`]: (
        { cluster, other },
      ) =>
        compare({ [`${prefix}_CLUSTER_PIPELINE_PARALLELISM`]: "1" }, {
          env: {
            ...kvEnv(which, other, cluster.url, { TYPE: "cluster", TIMEOUT: "1m", POOL_SIZE: "1" }),
            // So that no key expires meanwhile.
            EXPIRATION_JITTER_MAX_SECONDS: "100000",
          },
          look: (service) => countsBesideStalled(service, rule, cluster),
          unset: { meanwhile: 1, status: 200, after: 1 },
          set: { meanwhile: 0, status: 200, after: 1 },
        }),
      [`${prefix}_POOL_ON_EMPTY_BEHAVIOR, ${prefix}_POOL_ON_EMPTY_WAIT_DURATION: a call refused after the wait`]:
        async ({ other }) => {
          await using relay = await startTcpRelay(other.port);
          const env = {
            POOL_SIZE: "1",
            POOL_ON_EMPTY_BEHAVIOR: "error",
            POOL_ON_EMPTY_WAIT_DURATION: "50ms",
          };
          await using service = await startShop(kvEnv(which, other, relay.url, env));
          await tried(service, connections, relay.url);
          const first = await whileStalled(relay, async () => {
            const call = statusOf(service, `${rule}=a`);
            await inFlight(service, 1);
            const { status, body } = await service.ask(shopRequest(`${rule}=b`));
            assertEquals(status, 503);
            assertMatch(JSON.stringify(body), /no connection was free within 50 ms/);
            return { call };
          });
          assertEquals(await first.call, 200);
        },
    },
  });
}

/** Settings, and how many attempts to connect there are soon; without the last setting they take more than a minute. */
const ATTEMPTS: readonly (readonly [env: Env, attempts: number])[] = [
  [{ KV_STARTUP_INITIAL_INTERVAL: "10ms" }, 10],
  [{ KV_STARTUP_INITIAL_INTERVAL: "10ms", KV_STARTUP_MAX_INTERVAL: "20ms" }, 20],
];

for (const [env, attempts] of ATTEMPTS) {
  Deno.test(`settings of the first connection: ${JSON.stringify(env)}`, async () => {
    await using relay = await startTcpRelay(0);
    relay.setMode("refuse");
    await using _service = await startShop({ BACKEND_TYPE: "kv", KV_URL: relay.url, ...env });
    await until("the attempts", () => relay.accepted >= attempts);
  });
}

Deno.test("KV_STARTUP_MAX_ELAPSED_TIME: the end of the process when there is no connection in that time", async () => {
  const waits = { KV_STARTUP_INITIAL_INTERVAL: "20ms", KV_STARTUP_MAX_INTERVAL: "20ms" };
  const env = { BACKEND_TYPE: "kv", KV_URL: NOWHERE, ...waits, KV_STARTUP_MAX_ELAPSED_TIME: "60ms" };
  await using weir = await startWeir({ env, rules: SHOP, waitFor: [] });
  assertEquals((await weir.exited).code, 1);
  assertMatch(
    weir.stderrLines.join("\n"),
    /Cannot connect to key-value cache .*: no connection within KV_STARTUP_MAX_ELAPSED_TIME, 60 ms/,
  );
});

/**
 * Asks for a key of a node that stands still and for one of another, and reads the latter: when a later call for a third
 * key, on the same connection as that of the second, was answered, and in the end.
 */
async function countsBesideStalled(
  service: ServeFixture,
  rule: string,
  cluster: RedisCluster,
): Promise<{ meanwhile: number; status: number; after: number }> {
  const [live, stalled] = [cluster.node(0), cluster.node(1)];
  for (const node of cluster.nodes) await node.command("FLUSHALL");
  // All nodes are known and connected before one of them stands still.
  assertEquals(await statusOf(service, ...MANY_VALUES.map((value) => `${rule}=${value}`)), 200);
  const [liveKey = "", nextKey = ""] = String(await live.command("KEYS", "*")).split("\n");
  const [stalledKey = ""] = String(await stalled.command("KEYS", "*")).split("\n");
  await live.command("DEL", liveKey);
  const asked = (key: string) => `${rule}=${key.split("_")[2] ?? ""}`;
  const counted = async () => Number(await live.command("GET", liveKey));
  stalled.pause();
  try {
    const both = statusOf(service, asked(stalledKey), asked(liveKey));
    // The hits of a call are admitted together; without the setting, that of the live node may be counted by now.
    await until("the hits to wait", async () => {
      return ((await service.stats())["ratelimit.cache.in_flight"] ?? 0) > 0;
    });
    assertEquals(await statusOf(service, asked(nextKey)), 200);
    const meanwhile = await counted();
    stalled.resume();
    return { meanwhile, status: await both, after: await counted() };
  } finally {
    stalled.resume();
  }
}
