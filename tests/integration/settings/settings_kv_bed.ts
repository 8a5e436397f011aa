import { startRedisCluster } from "../../harness/redis_cluster.ts";
import { startRedisSentinel } from "../../harness/redis_sentinel.ts";
import { type RedisServer, startRedis } from "../../harness/redis_server.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import type { TcpRelay } from "../../harness/tcp_relay.ts";
import type { Tool } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { type Env, NOON, Shared, SHOP, shopRequest } from "./settings_case.ts";

/** What a test of a key-value cache starts. */
export const REDIS: readonly Tool[] = ["redis-server"];
/** What a test of one with TLS starts. */
export const REDIS_TLS: readonly Tool[] = ["redis-server", "openssl"];

/** Nothing listens there, and no test can be given this port. */
export const NOWHERE = "127.0.0.1:1";

/** Limits by the day, and one by the second. */
export const RULES = {
  "shop.yaml": `${SHOP["shop.yaml"]}  - key: quick
    rate_limit: { unit: second, requests_per_unit: 1000 }
`,
};

/** One of the two key-value caches: its settings, a rule that is counted there, its metrics. */
export interface WhichCache {
  readonly prefix: "KV" | "KV_PERSECOND";
  readonly rule: "open" | "quick";
  readonly metrics: string;
}

/** The cache of all limits. */
export const MAIN: WhichCache = { prefix: "KV", rule: "open", metrics: "ratelimit.kv_pool" };
/** The cache of limits per second. */
export const PER_SECOND: WhichCache = {
  prefix: "KV_PERSECOND",
  rule: "quick",
  metrics: "ratelimit.kv_per_second_pool",
};

/** The main cache of services whose second one is looked at. */
export const OTHER_REDIS = Shared.of(() => startRedis(), "redis-server");

/** Settings with this cache at `url`, and more of its own by the end of their names; the other cache is another server. */
export function kvEnv({ prefix }: WhichCache, url: string, more: Env = {}): Env {
  const own = Object.entries(more).map(([name, value]) => [`${prefix}_${name}`, value]);
  return {
    BACKEND_TYPE: "kv",
    ...(prefix === "KV" ? {} : { KV_URL: OTHER_REDIS.value.url, KV_POOL_SIZE: "1", KV_PERSECOND: "true" }),
    [`${prefix}_URL`]: url,
    ...Object.fromEntries(own),
  };
}

/** A request that is counted in this cache, with a key for each value. */
export function requestFor({ rule }: WhichCache, ...values: readonly string[]): object {
  return shopRequest(...values.map((value) => `${rule}=${value}`));
}

/** The status of one call that is counted in this cache. */
export async function statusOf(service: ServeFixture, which: WhichCache, value = "a"): Promise<number> {
  return (await service.ask(requestFor(which, value))).status;
}

/** The same, when the first attempt to connect to `url` has ended well or not. */
export async function statusOnceTried(
  service: ServeFixture,
  which: WhichCache,
  url: string,
): Promise<number> {
  await tried(service, `${which.metrics}.cx_active`, url);
  return await statusOf(service, which);
}

/** Waits until there is a connection by this gauge, or the log tells that there is none to `url`. */
export async function tried(service: ServeFixture, gauge: string, url: string): Promise<void> {
  await until("an attempt to connect", async () => {
    const isLogged = service.log.some((line) => line.includes("Cannot reach") && line.includes(url));
    return isLogged || (await gaugeOf(service, gauge)) > 0;
  });
}

/** A statistic as it is now; 0 when there is none of the name. */
export async function gaugeOf(service: ServeFixture, name: string): Promise<number> {
  return (await service.stats())[name] ?? 0;
}

/** Waits until so many hits wait for the cache. */
export async function inFlight(service: ServeFixture, hits: number): Promise<void> {
  await until(
    `${hits} hits to wait for the cache`,
    async () => (await gaugeOf(service, "ratelimit.cache.in_flight")) === hits,
  );
}

/** Starts a service whose clock goes on from noon, for what is measured by the clock. */
export async function startAtNoon(env: Env): Promise<ServeFixture> {
  const clock = FakeClock.ofMachine({ aheadMs: NOON.now() - Date.now() });
  return await ServeFixture.start({ env, rules: RULES, clock });
}

/** The redis-server of a file's tests; each begins with an empty one. */
export const SHARED_REDIS = Shared.of(() => startRedis({ unixSocket: true }), "redis-server");
/** The cluster of a file's tests. */
export const SHARED_CLUSTER = Shared.of(startRedisCluster, "redis-server");
/** The password of the sentinels. */
export const SENTINEL_PASSWORD = "s3cret";
/** A primary with sentinels, of a file's tests. */
export const SHARED_SENTINELS = Shared.of(
  () => startRedisSentinel({ sentinelPassword: SENTINEL_PASSWORD }),
  "redis-server",
);

/** Runs `work` with the redis-server of the file, which is empty. */
export async function withRedis(work: (redis: RedisServer) => Promise<void>): Promise<void> {
  await SHARED_REDIS.value.command("FLUSHALL");
  await work(SHARED_REDIS.value);
}

/** Runs `work` while the relay passes nothing on. */
export async function whileStalled<T>(relay: TcpRelay, work: () => Promise<T>): Promise<T> {
  relay.setMode("stall");
  try {
    return await work();
  } finally {
    relay.setMode("relay");
  }
}

/** Watches a call that may take a while. */
export function watched<T>(call: Promise<T>): { readonly call: Promise<T>; readonly isOver: () => boolean } {
  let over = false;
  const watching = call.finally(() => void (over = true));
  // Where the test fails before it asks for the answer, its own error is the one to tell of.
  watching.catch(() => {});
  return { call: watching, isOver: () => over };
}
