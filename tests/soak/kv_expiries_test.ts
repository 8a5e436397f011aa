import { runExpiryFaults } from "../harness/kv_expiry_faults.ts";
import { openKvCache, openKvCluster } from "../harness/open_kv.ts";
import { startRedisCluster } from "../harness/redis_cluster.ts";
import { startRedisSentinel } from "../harness/redis_sentinel.ts";
import { startRedis } from "../harness/redis_server.ts";
import { seededRandom } from "../harness/seeded_random.ts";
import { needs } from "../harness/tools.ts";
import { until } from "../harness/until.ts";
import { bySize, SOAK_SEED } from "./soak_options.ts";

/** Short, because calls to a server that stands still end by it. */
const TIMEOUT_MS = 100;

type Faults = { readonly rounds: number; readonly random: () => number };

const KINDS: Readonly<Record<string, (faults: Faults) => Promise<void>>> = {
  async "a single server"(faults) {
    await using redis = await startRedis();
    await using cache = openKvCache(redis.url, { timeoutMs: TIMEOUT_MS });
    await runExpiryFaults({ ...faults, cache, primaries: () => [redis] });
  },
  async sentinels(faults) {
    await using group = await startRedisSentinel({ replicas: 2 });
    await using cache = openKvCache(group.url, { type: "sentinel", timeoutMs: TIMEOUT_MS });
    const primaries = async () => [await until("a primary", () => group.primary())];
    await runExpiryFaults({ ...faults, cache, primaries, failover: () => group.failover() });
  },
  async "a cluster"(faults) {
    await using cluster = await startRedisCluster({ replicas: true });
    await using cache = openKvCluster(cluster.nodes.map(({ port }) => port), { timeoutMs: TIMEOUT_MS });
    // Each primary and its replica take turns.
    const halves = [cluster.nodes.slice(0, 3), cluster.nodes.slice(3)];
    const failover = async () => {
      for (const replica of halves[1] ?? []) await replica.command("CLUSTER", "FAILOVER", "TAKEOVER");
      halves.reverse();
      await cluster.settled();
    };
    await runExpiryFaults({ ...faults, cache, primaries: () => halves[0] ?? [], failover });
  },
};

for (const [name, run] of Object.entries(KINDS)) {
  Deno.test({
    ...needs(["redis-server"], `kv expiries: under random faults and failovers of ${name} every key has one`),
    fn: () => run({ rounds: bySize({ short: 6, full: 100 }), random: seededRandom(SOAK_SEED) }),
  });
}
