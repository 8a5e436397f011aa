import { assertEquals } from "@std/assert";
import { startMemcached } from "../../harness/memcached.ts";
import type { RedisServer } from "../../harness/redis_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { startTcpRelay } from "../../harness/tcp_relay.ts";
import { until } from "../../harness/until.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";
import {
  compare,
  NOON,
  type SettingCase,
  type SettingCases,
  SHOP,
  shopRequest,
  SLOW_NOON,
} from "./settings_case.ts";
import {
  gaugeOf,
  inFlight,
  NOWHERE,
  REDIS,
  SHARED_REDIS,
  tried,
  watched,
  whileStalled,
  withRedis,
} from "./settings_kv_bed.ts";

const NOON_DAY = Date.UTC(2026, 0, 1) / 1_000;
const DAY_SECONDS = 86_400;

/** Tests of the settings of the counters, whatever cache holds them. */
export const CACHE_CASES: SettingCases = {
  BACKEND_TYPE: {
    sees: "counters in one of the caches or in the process",
    tools: ["redis-server", "memcached"],
    run: countsWhereTold,
  },
  MEMORY_MAX_KEYS: {
    sees: "counters that give way",
    run: () =>
      compare({ MEMORY_MAX_KEYS: "2" }, {
        async look(service) {
          const kept = ["ratelimit.memory.keys", "ratelimit.memory.evicted_keys"];
          const before = await service.stats();
          await service.ask(shopRequest("open=kept_1", "open=kept_2", "open=kept_3"));
          const stats = await service.stats();
          return kept.map((name) => (stats[name] ?? 0) - (before[name] ?? 0));
        },
        unset: [3, 0],
        set: [2, 1],
      }),
  },
  CACHE_KEY_PREFIX: {
    sees: "the text before the key in the cache",
    tools: REDIS,
    run: () =>
      withRedis((redis) =>
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
        })
      ),
  },
  EXPIRATION_JITTER_MAX_SECONDS: {
    sees: "counters kept no longer than their window",
    tools: REDIS,
    run: () =>
      withRedis((redis) =>
        compare({ EXPIRATION_JITTER_MAX_SECONDS: "0" }, {
          env: { BACKEND_TYPE: "kv", KV_URL: redis.url },
          look: (service) => keptBeyondWindow(service, redis),
          unset: true,
          set: false,
        })
      ),
  },
  LOCAL_CACHE_SIZE_IN_BYTES: {
    sees: "a key over its limit answered without the cache",
    run: () =>
      compare({ LOCAL_CACHE_SIZE_IN_BYTES: "10000" }, {
        async look(service) {
          await service.ask(shopRequest("blocked=local"));
          await service.ask(shopRequest("blocked=local"));
          const stats = await service.stats();
          return stats["ratelimit.service.rate_limit.shop.blocked.over_limit_with_local_cache"];
        },
        unset: 0,
        set: 1,
      }),
  },
  CACHE_ON_FAILURE: { sees: "another answer while the cache cannot be reached", run: answersAllTheSame },
  MAX_IN_FLIGHT: { sees: "a call refused while others wait", tools: REDIS, run: refusesWhileOthersWait },
  KV_PIPELINE_LIMIT: withoutEffect("KV_PIPELINE_LIMIT"),
  KV_PERSECOND_PIPELINE_LIMIT: withoutEffect("KV_PERSECOND_PIPELINE_LIMIT"),
};

async function countsWhereTold(): Promise<void> {
  const redis = SHARED_REDIS.value;
  await redis.command("FLUSHALL");
  await using memcached = await startMemcached();
  const seen = [];
  // Set but empty is unset: the fixture's own value makes way for the default.
  for (const backend of ["", "memory", "mc"]) {
    const env = { BACKEND_TYPE: backend, KV_URL: redis.url, MC_HOST_PORT: memcached.url };
    await using service = await ServeFixture.start({ env, rules: SHOP, clock: SLOW_NOON });
    const { status } = await service.ask(shopRequest("open=a"));
    seen.push([status, await redis.command("DBSIZE"), await memcached.stat("curr_items")]);
    await redis.command("FLUSHALL");
  }
  assertEquals(seen, [[200, 1, 0], [200, 0, 0], [200, 0, 1]]);
}

async function answersAllTheSame(): Promise<void> {
  const seen = [];
  for (const CACHE_ON_FAILURE of ["", "error", "allow", "deny", "local"]) {
    const env = { BACKEND_TYPE: "kv", KV_URL: NOWHERE, CACHE_ON_FAILURE };
    await using service = await ServeFixture.start({ env, rules: SHOP, clock: NOON });
    const { status, body } = await service.ask(shopRequest("open=a"));
    seen.push([status, /"limitRemaining":\d+/.exec(JSON.stringify(body))?.[0]]);
  }
  const counted = '"limitRemaining":9';
  assertEquals(seen, [[503, undefined], [503, undefined], [200, undefined], [429, undefined], [
    200,
    counted,
  ]]);
}

async function refusesWhileOthersWait(): Promise<void> {
  await using relay = await startTcpRelay(SHARED_REDIS.value.port);
  await compare({ MAX_IN_FLIGHT: "1" }, {
    // Denied as well should the cache be silent for so long that it counts as away.
    env: { BACKEND_TYPE: "kv", KV_URL: relay.url, CACHE_ON_FAILURE: "deny" },
    async look(service) {
      await tried(service, "ratelimit.kv_pool.cx_active", relay.url);
      const calls = await whileStalled(relay, async () => {
        const first = watched(service.ask(shopRequest("open=a")));
        await inFlight(service, 1);
        const second = watched(service.ask(shopRequest("open=b")));
        const waits = async () => (await gaugeOf(service, "ratelimit.cache.in_flight")) === 2;
        await until("the second call to wait or to be refused", async () => second.isOver() || await waits());
        return [first, second];
      });
      return await Promise.all(calls.map(async ({ call }) => (await call).status));
    },
    unset: [200, 200],
    set: [200, 429],
  });
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

/** For settings that are accepted and do nothing but warn of that. */
function withoutEffect(name: string): SettingCase {
  return {
    sees: "the warning that it has no effect",
    run() {
      const counts = [{ [name]: "5" }, {}].map((env) => {
        const { warnings } = readSettings({ BACKEND_TYPE: "memory", ...env });
        return warnings.filter((text) => text.startsWith(`${name} has no effect: `)).length;
      });
      assertEquals(counts, [1, 0]);
      return Promise.resolve();
    },
  };
}
