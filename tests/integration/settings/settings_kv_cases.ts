import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { relative } from "node:path";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { freePort } from "../../harness/free_port.ts";
import { type RedisServer, startRedis } from "../../harness/redis_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { compare, NOON, type SettingCase, type SettingCases } from "./settings_case.ts";
import {
  gaugeOf,
  inFlight,
  kvEnv,
  MAIN,
  REDIS,
  requestFor,
  RULES,
  SENTINEL_PASSWORD,
  SHARED_CLUSTER,
  SHARED_SENTINELS,
  startAtNoon,
  statusOf,
  statusOnceTried,
  watched,
  type WhichCache,
  withRedis,
} from "./settings_kv_bed.ts";

/** No other wait of a service is as long. */
const WINDOW_MS = 7_777;

/** More keys than nodes, so that each node has some of them. */
const MANY_VALUES = Array.from({ length: 30 }, (_, index) => `k${index}`);

/** Tests of where the key-value cache is and how it is asked. */
export const KV_CASES: SettingCases = {
  KV_URL: urlCase(MAIN),
  KV_SOCKET_TYPE: socketTypeCase(MAIN),
  KV_TYPE: typeCase(MAIN),
  KV_AUTH: authCase(MAIN),
  KV_SENTINEL_AUTH: sentinelAuthCase(MAIN),
  KV_TIMEOUT: timeoutCase(MAIN),
  KV_PIPELINE_WINDOW: pipelineWindowCase(MAIN),
  KV_CLUSTER_PIPELINE_PARALLELISM: parallelismCase(MAIN),
  KV_HEALTH_CHECK_ACTIVE_CONNECTION: {
    sees: "health bad while the cache cannot be reached",
    run: () =>
      compare({ KV_HEALTH_CHECK_ACTIVE_CONNECTION: "true" }, {
        env: { BACKEND_TYPE: "kv", KV_URL: `127.0.0.1:${freePort()}` },
        async look(service) {
          await until("the failed attempt", () => service.log.some((line) => line.includes("Cannot reach")));
          return (await service.page("/healthcheck")).split(" ", 1)[0];
        },
        unset: "OK\ncache:",
        set: "cache:",
      }),
  },
};

/** `…_URL`. */
export function urlCase(which: WhichCache): SettingCase {
  const missing = which.prefix === "KV" ? /^KV_URL is not set/ : /^KV_PERSECOND_URL is not set/;
  const run = async () => {
    const refused = assertThrows(() => readSettings(kvEnv(which, "")));
    assertMatch(refused.message, missing);
    await withRedis((redis) =>
      compare({ [`${which.prefix}_URL`]: `redis://${redis.url}/1` }, {
        env: kvEnv(which, redis.url),
        rules: RULES,
        look: (service) => databaseOf(service, which, redis),
        unset: "db0:keys=1",
        set: "db1:keys=1",
      })
    );
  };
  return { sees: "where the cache is", tools: REDIS, run };
}

/** `…_SOCKET_TYPE`. */
export function socketTypeCase(which: WhichCache): SettingCase {
  const run = () =>
    withRedis(async (redis) => {
      const env = kvEnv(which, relative(Deno.cwd(), redis.socketPath ?? ""));
      const refused = assertThrows(() => readSettings(env));
      assertMatch(refused.message, /^Invalid KV_(?:PERSECOND_)?URL \(value not shown\): expected host:port/);
      const asSocket = { ...env, [`${which.prefix}_SOCKET_TYPE`]: "unix" };
      await using service = await ServeFixture.start({ env: asSocket, rules: RULES, clock: NOON });
      assertEquals(await statusOf(service, which), 200);
      assertEquals(await redis.command("DBSIZE"), 1);
    });
  return { sees: "a relative path taken as a unix socket", tools: REDIS, run };
}

/** `…_TYPE`: a node of a cluster that is taken for a single server refuses the keys of the others. */
export function typeCase(which: WhichCache): SettingCase {
  const run = async () => {
    const { url } = SHARED_CLUSTER.value.node(0);
    await compare({ [`${which.prefix}_TYPE`]: "Cluster" }, {
      env: kvEnv(which, url),
      rules: RULES,
      look: async (service) => (await service.ask(requestFor(which, ...MANY_VALUES))).status,
      unset: 503,
      set: 200,
    });
  };
  return { sees: "the other nodes of a cluster found", tools: REDIS, run };
}

/** `…_AUTH`. */
export function authCase(which: WhichCache): SettingCase {
  const run = async () => {
    await using redis = await startRedis({ args: ["--requirepass", "s3cret"] });
    await compare({ [`${which.prefix}_AUTH`]: "s3cret" }, {
      env: kvEnv(which, redis.url),
      rules: RULES,
      look: (service) => statusOnceTried(service, which, redis.url),
      unset: 503,
      set: 200,
    });
  };
  return { sees: "calls answered by a cache that wants a login", tools: REDIS, run };
}

/** `…_SENTINEL_AUTH`; the type `sentinel` is seen to work with it. */
export function sentinelAuthCase(which: WhichCache): SettingCase {
  const run = async () => {
    const group = SHARED_SENTINELS.value;
    await compare({ [`${which.prefix}_SENTINEL_AUTH`]: SENTINEL_PASSWORD }, {
      env: kvEnv(which, group.url, { TYPE: "SENTINEL" }),
      rules: RULES,
      look: (service) => statusOnceTried(service, which, group.url),
      unset: 503,
      set: 200,
    });
  };
  return { sees: "the primary found by sentinels that want a login", tools: REDIS, run };
}

/** `…_TIMEOUT`. */
export function timeoutCase(which: WhichCache): SettingCase {
  const run = () =>
    withRedis(async (redis) => {
      await using patient = await startAtNoon(kvEnv(which, redis.url));
      await using hasty = await startAtNoon(kvEnv(which, redis.url, { TIMEOUT: "100ms" }));
      redis.pause();
      const late = watched(statusOf(patient, which));
      const soon = await statusOf(hasty, which);
      const wasOver = late.isOver();
      redis.resume();
      assertEquals([soon, wasOver, await late.call], [503, false, 200]);
    });
  return { sees: "a cache that does not answer given up sooner", tools: REDIS, run };
}

/** `…_PIPELINE_WINDOW`: hits of one key that go out together are one step of its counter. */
export function pipelineWindowCase(which: WhichCache): SettingCase {
  const run = () =>
    withRedis(async (redis) => {
      // The window ends when the test says so.
      const ends: (() => void)[] = [];
      const after = (delayMs: number, run: () => void) => {
        if (delayMs !== WINDOW_MS) return NOON.after(delayMs, run);
        ends.push(run);
        return () => {};
      };
      await compare({ [`${which.prefix}_PIPELINE_WINDOW`]: `${WINDOW_MS}ms` }, {
        env: kvEnv(which, redis.url),
        rules: RULES,
        clock: { ...NOON, after },
        async look(service) {
          await redis.command("CONFIG", "RESETSTAT");
          const calls = [];
          for (const count of [1, 2]) {
            const call = watched(statusOf(service, which));
            calls.push(call);
            await until(
              "the call to wait or to be answered",
              async () => call.isOver() || (await gaugeOf(service, "ratelimit.cache.in_flight")) === count,
            );
          }
          for (const end of ends) end();
          const statuses = await Promise.all(calls.map(({ call }) => call));
          const commands = String(await redis.command("INFO", "commandstats"));
          return [...statuses, ends.length, Number(/cmdstat_incrby:calls=(\d+)/.exec(commands)?.[1])];
        },
        unset: [200, 200, 0, 2],
        set: [200, 200, 1, 1],
      });
    });
  return { sees: "calls that come one after the other sent together", tools: REDIS, run };
}

/** `…_CLUSTER_PIPELINE_PARALLELISM`: one node at a time, so that one that stands still holds up the next. */
export function parallelismCase(which: WhichCache): SettingCase {
  const run = async () => {
    const { url } = SHARED_CLUSTER.value;
    const more = { TYPE: "cluster", TIMEOUT: "1m", POOL_SIZE: "1" };
    await compare({ [`${which.prefix}_CLUSTER_PIPELINE_PARALLELISM`]: "1" }, {
      // So that no key expires meanwhile.
      env: { ...kvEnv(which, url, more), EXPIRATION_JITTER_MAX_SECONDS: "100000" },
      rules: RULES,
      look: (service) => countsBesideStalled(service, which),
      unset: { meanwhile: 1, status: 200, after: 1 },
      set: { meanwhile: 0, status: 200, after: 1 },
    });
  };
  return { sees: "a node asked when the one before has answered", tools: REDIS, run };
}

/** In which database a call is counted. */
async function databaseOf(
  service: ServeFixture,
  which: WhichCache,
  redis: RedisServer,
): Promise<string | undefined> {
  await statusOf(service, which);
  const keyspace = String(await redis.command("INFO", "keyspace"));
  await redis.command("FLUSHALL");
  return /db\d+:keys=\d+/.exec(keyspace)?.[0];
}

/**
 * Asks for a key of a node that stands still and for one of another, and reads the latter: when a later call for a third
 * key, on the same connection as that of the second, was answered, and in the end.
 */
async function countsBesideStalled(
  service: ServeFixture,
  which: WhichCache,
): Promise<{ meanwhile: number; status: number; after: number }> {
  const [live, stalled] = [SHARED_CLUSTER.value.node(0), SHARED_CLUSTER.value.node(1)];
  for (const node of SHARED_CLUSTER.value.nodes) await node.command("FLUSHALL");
  // All nodes are known and connected before one of them stands still.
  assertEquals((await service.ask(requestFor(which, ...MANY_VALUES))).status, 200);
  const [liveKey = "", nextKey = ""] = String(await live.command("KEYS", "*")).split("\n");
  const [stalledKey = ""] = String(await stalled.command("KEYS", "*")).split("\n");
  await live.command("DEL", liveKey);
  const valueOf = (key: string) => key.split("_")[2] ?? "";
  const counted = async () => Number(await live.command("GET", liveKey));
  stalled.pause();
  try {
    const asked = watched(service.ask(requestFor(which, valueOf(stalledKey), valueOf(liveKey))));
    await inFlight(service, 2);
    assertEquals(await statusOf(service, which, valueOf(nextKey)), 200);
    const meanwhile = await counted();
    stalled.resume();
    const { status } = await asked.call;
    return { meanwhile, status, after: await counted() };
  } finally {
    stalled.resume();
  }
}
