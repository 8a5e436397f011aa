/**
 * Counts in redis-servers under random faults, and looks after each one whether every key gets an expiry.
 * Exit code 1 when one does not. `--seed` repeats the faults of another run.
 */
import { parseArgs } from "node:util";
import { runExpiryFaults } from "../tests/harness/kv_expiry_faults.ts";
import { openKvCache, openKvCluster } from "../tests/harness/open_kv.ts";
import { startRedisCluster } from "../tests/harness/redis_cluster.ts";
import { startRedisSentinel } from "../tests/harness/redis_sentinel.ts";
import { startRedis } from "../tests/harness/redis_server.ts";
import { seededRandom } from "../tests/harness/seeded_random.ts";
import { toolAvailable } from "../tests/harness/tools.ts";
import { until } from "../tests/harness/until.ts";
import { positiveInteger } from "./bench/flag_values.ts";
import { installTools, printLine } from "./install_tools.ts";

/** Short, because calls to a server that stands still end by it. */
const TIMEOUT_MS = 100;
const MAX_SEED = 2 ** 32;

type Faults = { readonly rounds: number; readonly random: () => number };

const KINDS: Readonly<Record<string, (faults: Faults) => Promise<void>>> = {
  async single(faults) {
    await using redis = await startRedis();
    await using cache = openKvCache(redis.url, { timeoutMs: TIMEOUT_MS });
    await runExpiryFaults({ ...faults, cache, primaries: () => [redis] });
  },
  async sentinel(faults) {
    await using group = await startRedisSentinel({ replicas: 2 });
    await using cache = openKvCache(group.url, { type: "sentinel", timeoutMs: TIMEOUT_MS });
    const primaries = async () => [await until("a primary", () => group.primary())];
    await runExpiryFaults({ ...faults, cache, primaries, failover: () => group.failover() });
  },
  async cluster(faults) {
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

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "100" },
      seed: { type: "string", default: String(1 + Math.floor(Math.random() * MAX_SEED)) },
    },
  });
  if (!toolAvailable("redis-server")) await installTools();
  const seed = positiveInteger("seed", values.seed);
  const rounds = positiveInteger("rounds", values.rounds);
  printLine(`seed ${seed}`);
  for (const [kind, run] of Object.entries(KINDS)) {
    await run({ rounds, random: seededRandom(seed) });
    printLine(`${kind}: every key had its expiry after each of ${rounds} faults`);
  }
}
