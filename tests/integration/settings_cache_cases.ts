import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { relative } from "node:path";
import { readSettings } from "../../src/settings/read_settings.ts";
import { freePort } from "../support/free_port.ts";
import { type RedisOptions, type RedisServer, startRedis } from "../support/redis_server.ts";
import { ServeFixture } from "../support/serve_fixture.ts";
import type { Tool } from "../support/tools.ts";
import { until } from "../support/until.ts";
import { startWeir } from "../support/weir_process.ts";
import {
  compare,
  type Env,
  NOON,
  type SettingCase,
  type SettingCases,
  SHOP,
  shopRequest,
} from "./settings_case.ts";

const REDIS: readonly Tool[] = ["redis-server"];
const NOON_DAY = Date.UTC(2026, 0, 1) / 1_000;
const DAY_SECONDS = 86_400;

/** Tests of the settings of the counters and of the key-value cache. */
export const CACHE_CASES: SettingCases = {
  BACKEND_TYPE: {
    sees: "counters in the key-value cache or in the process",
    tools: REDIS,
    run: () =>
      withRedis({}, async (redis) => {
        const keysAfter = async (service: ServeFixture) => {
          await service.ask(shopRequest("open=a"));
          const keys = await redis.command("DBSIZE");
          await redis.command("FLUSHALL");
          return keys;
        };
        // Set but empty is unset: the fixture's own value makes way for the default.
        const env = { BACKEND_TYPE: "", KV_URL: redis.url };
        await compare({ BACKEND_TYPE: "memory" }, { env, look: keysAfter, unset: 1, set: 0 });
      }),
  },
  MEMORY_MAX_KEYS: {
    sees: "counters that give way",
    run: () =>
      compare({ MEMORY_MAX_KEYS: "2" }, {
        async look(service) {
          await service.ask(shopRequest("open=a", "open=b", "open=c"));
          const stats = await service.stats();
          return [stats["ratelimit.memory.keys"], stats["ratelimit.memory.evicted_keys"]];
        },
        unset: [3, 0],
        set: [2, 1],
      }),
  },
  CACHE_KEY_PREFIX: {
    sees: "the text before the key in the cache",
    tools: REDIS,
    run: () =>
      withRedis({}, (redis) =>
        compare({ CACHE_KEY_PREFIX: "edge:" }, {
          env: { BACKEND_TYPE: "kv", KV_URL: redis.url },
          async look(service) {
            await service.ask(shopRequest("open=a"));
            const keys = await redis.command("KEYS", "*");
            await redis.command("FLUSHALL");
            return keys;
          },
          unset: `shop_open_a_${NOON_DAY}`,
          set: `edge:shop_open_a_${NOON_DAY}`,
        })),
  },
  EXPIRATION_JITTER_MAX_SECONDS: {
    sees: "counters kept no longer than their window",
    tools: REDIS,
    run: () =>
      withRedis({}, (redis) =>
        compare({ EXPIRATION_JITTER_MAX_SECONDS: "0" }, {
          env: { BACKEND_TYPE: "kv", KV_URL: redis.url },
          look: (service) => keptBeyondWindow(service, redis),
          unset: true,
          set: false,
        })),
  },
  LOCAL_CACHE_SIZE_IN_BYTES: {
    sees: "a key over its limit answered without the cache",
    run: () =>
      compare({ LOCAL_CACHE_SIZE_IN_BYTES: "10000" }, {
        async look(service) {
          await service.ask(shopRequest("blocked=a"));
          await service.ask(shopRequest("blocked=a"));
          const stats = await service.stats();
          return stats["ratelimit.service.rate_limit.shop.blocked.over_limit_with_local_cache"];
        },
        unset: 0,
        set: 1,
      }),
  },
  KV_URL: { sees: "where the key-value cache is", tools: REDIS, run: findsTheCache },
  KV_SOCKET_TYPE: { sees: "a relative path taken as a unix socket", tools: REDIS, run: takesAPath },
  KV_AUTH: {
    sees: "calls answered by a cache that wants a login",
    tools: REDIS,
    run: () =>
      withRedis({ args: ["--requirepass", "s3cret"] }, (redis) =>
        compare({ KV_AUTH: "s3cret" }, {
          env: { BACKEND_TYPE: "kv", KV_URL: redis.url },
          look: async (service) => (await service.ask(shopRequest("open=a"))).status,
          unset: 503,
          set: 200,
        })),
  },
  KV_TIMEOUT: { sees: "a cache that does not answer given up sooner", tools: REDIS, run: givesUpSooner },
  KV_HEALTH_CHECK_ACTIVE_CONNECTION: {
    sees: "health bad while the cache cannot be reached",
    run: () =>
      compare({ KV_HEALTH_CHECK_ACTIVE_CONNECTION: "true" }, {
        env: { BACKEND_TYPE: "kv", KV_URL: `127.0.0.1:${freePort()}` },
        async look(service) {
          await until("the failed attempt", () => service.log.some((line) => line.includes("Cannot reach")));
          return (await service.page("/healthcheck")).split(" ", 1)[0];
        },
        unset: "OK",
        set: "cache:",
      }),
  },
  KV_PIPELINE_LIMIT: withoutEffect("KV_PIPELINE_LIMIT"),
  KV_PERSECOND_PIPELINE_LIMIT: withoutEffect("KV_PERSECOND_PIPELINE_LIMIT"),
};

async function withRedis(options: RedisOptions, work: (redis: RedisServer) => Promise<void>): Promise<void> {
  await using redis = await startRedis(options);
  await work(redis);
}

/** Among so many random expiries the longest is beyond the window, unless there is no jitter. */
async function keptBeyondWindow(service: ServeFixture, redis: RedisServer): Promise<boolean> {
  const names = Array.from({ length: 20 }, (_, index) => `k${index}`);
  await service.ask(shopRequest(...names.map((name) => `open=${name}`)));
  const remaining = [];
  for (const name of names) {
    remaining.push(Number(await redis.command("TTL", `shop_open_${name}_${NOON_DAY}`)));
  }
  await redis.command("FLUSHALL");
  assertEquals(remaining.every((seconds) => seconds > 0 && seconds < DAY_SECONDS + 300), true);
  return Math.max(...remaining) > DAY_SECONDS;
}

async function findsTheCache(): Promise<void> {
  const missing = assertThrows(() => readSettings({ BACKEND_TYPE: "kv" }));
  assertMatch(missing.message, /^Cannot use the key-value cache: KV_URL is not set/);
  await withRedis({}, (redis) =>
    compare({ KV_URL: `redis://${redis.url}/1` }, {
      env: { BACKEND_TYPE: "kv", KV_URL: redis.url },
      async look(service) {
        await service.ask(shopRequest("open=a"));
        const keyspace = String(await redis.command("INFO", "keyspace"));
        await redis.command("FLUSHALL");
        return /db\d+:keys=\d+/.exec(keyspace)?.[0];
      },
      unset: "db0:keys=1",
      set: "db1:keys=1",
    }));
}

async function takesAPath(): Promise<void> {
  await withRedis({ unixSocket: true }, async (redis) => {
    const path = relative(Deno.cwd(), redis.socketPath ?? "");
    const env: Env = { BACKEND_TYPE: "kv", KV_URL: path };
    const refused = assertThrows(() => readSettings(env));
    assertMatch(refused.message, /^Cannot use KV_URL \(value not shown\): host:port/);
    const asSocket = { ...env, KV_SOCKET_TYPE: "unix" };
    await using service = await ServeFixture.start({ env: asSocket, rules: SHOP, clock: NOON });
    assertEquals((await service.ask(shopRequest("open=a"))).status, 200);
    assertEquals(await redis.command("DBSIZE"), 1);
  });
}

async function givesUpSooner(): Promise<void> {
  await withRedis({}, async (redis) => {
    const env: Env = { BACKEND_TYPE: "kv", KV_URL: redis.url };
    const start = (more: Env) => ServeFixture.start({ env: { ...env, ...more }, rules: SHOP, clock: NOON });
    await using patient = await start({});
    await using hasty = await start({ KV_TIMEOUT: "200ms" });
    redis.pause();
    let isAnswered = false;
    const late = patient.ask(shopRequest("open=a")).finally(() => void (isAnswered = true));
    const soon = await hasty.ask(shopRequest("open=a"));
    assertEquals([soon.status, isAnswered], [503, false]);
    redis.resume();
    assertEquals((await late).status, 200);
  });
}

/** For settings that are accepted and do nothing: that is told at start, and nowhere else to be seen. */
function withoutEffect(name: string): SettingCase {
  return {
    sees: "the warning that it has no effect",
    async run() {
      await using told = await startWeir({ env: { [name]: "5" } });
      await using silent = await startWeir();
      const warnings = [told, silent].map(({ stderrLines }) =>
        stderrLines.filter((line) => line.includes(`${name} has no effect: `)).length
      );
      assertEquals(warnings, [1, 0]);
    },
  };
}
