import { KvCache } from "../cache/kv/cache.ts";
import { KvConnections } from "../cache/kv/connections.ts";
import { type KvCommands, KvQuotaShares } from "../cache/kv/quota_shares.ts";
import type { CounterCache } from "../ratelimit/decision/counter_cache.ts";
import { kvClusterMetrics, kvMetrics, type KvPoolName } from "../cache/metrics.ts";
import {
  type ConnectedCache,
  connectionReporter,
  type OpenCacheOptions,
  roundTripRecorder,
  tlsFiles,
  unknownStateReporter,
} from "./cache_connections.ts";
import { CacheHealth } from "./cache_health.ts";
import { type KvPrefix, openKvCredentials } from "./kv_credentials.ts";

/** One of the two caches. */
interface OneKvCache {
  readonly cache: CounterCache & KvCommands;
  readonly ready: Promise<void>;
  close(): Promise<void>;
}

/** Opens the key-value cache, or the two of them. */
export async function openKvCache(options: OpenCacheOptions): Promise<ConnectedCache> {
  const { settings } = options;
  const health = new CacheHealth(options);
  const main = await openOne(options, {
    prefix: "KV",
    metrics: "kv_pool",
    health,
  });
  const shares = { main: main.cache, instance: crypto.randomUUID(), keyPrefix: settings.CACHE_KEY_PREFIX };
  if (!settings.KV_PERSECOND) return { ...main, shares: new KvQuotaShares(shares) };
  const perSecond = await openOne(options, {
    prefix: "KV_PERSECOND",
    metrics: "kv_per_second_pool",
    health,
  });
  const { PerSecondCache } = await import("../cache/per_second_cache.ts");
  return {
    cache: new PerSecondCache({ main: main.cache, perSecond: perSecond.cache }),
    shares: new KvQuotaShares({ ...shares, perSecond: perSecond.cache }),
    ready: Promise.all([main.ready, perSecond.ready]).then(() => {}),
    close: async () => void await Promise.all([main.close(), perSecond.close()]),
  };
}

async function openOne(options: OpenCacheOptions, { prefix, metrics, health }: {
  readonly prefix: KvPrefix;
  readonly metrics: KvPoolName;
  readonly health: CacheHealth;
}): Promise<OneKvCache> {
  const { settings, clock, random, stats, onGivenUp } = options;
  const { address, close, ...credentials } = openKvCredentials(options, { prefix, metrics });
  const shared = { timeoutMs: settings[`${prefix}_TIMEOUT`], clock, random };
  const connections = new KvConnections({
    ...shared,
    address,
    credentials,
    tls: tlsFiles(options, "KV_TLS"),
    startup: {
      initialMs: settings.KV_STARTUP_INITIAL_INTERVAL,
      maxMs: settings.KV_STARTUP_MAX_INTERVAL,
      maxElapsedMs: settings.KV_STARTUP_MAX_ELAPSED_TIME,
    },
    onGivenUp,
    onUnknownState: unknownStateReporter(options, "key-value cache"),
  });
  // Both caches may have the same address.
  const place = { kind: "key-value cache", address: address.text, name: `${prefix} ${address.text}` };
  const onConnection = connectionReporter(options, health, place);
  const node = {
    ...shared,
    poolSize: settings[`${prefix}_POOL_SIZE`],
    onEmpty: settings[`${prefix}_POOL_ON_EMPTY_BEHAVIOR`],
    onEmptyWaitMs: settings[`${prefix}_POOL_ON_EMPTY_WAIT_DURATION`],
    windowMs: settings[`${prefix}_PIPELINE_WINDOW`],
    roundTrip: roundTripRecorder(stats),
  };
  if (address.kind !== "cluster") {
    const cache = new KvCache({
      ...node,
      address: address.text,
      ...connections.server(),
      onConnection,
    });
    stats.addMetrics(kvMetrics(metrics), cache.metrics);
    return { cache, ready: cache.ready, close };
  }
  const [{ KvCluster }, { KvNode }] = await Promise.all([
    import("../cache/kv/cluster/cluster.ts"),
    import("../cache/kv/node.ts"),
  ]);
  const cache = new KvCluster({
    ...shared,
    address: address.text,
    seeds: address.nodes,
    openNode: (endpoint, onNodeConnection, placeExpiry) =>
      new KvNode({
        ...node,
        placeExpiry,
        onConnection: onNodeConnection,
        ...connections.server(endpoint),
      }),
    parallelism: settings[`${prefix}_CLUSTER_PIPELINE_PARALLELISM`],
    onConnection,
    onNodeState: (name, reason) => health.noteNode(`${prefix} ${name}`, name, reason),
  });
  stats.addMetrics(kvClusterMetrics(metrics), cache.metrics);
  return { cache, ready: cache.ready, close };
}
