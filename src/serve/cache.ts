import { getHeapStatistics } from "node:v8";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { heapBytesOf, MemoryCache } from "../cache/memory_cache.ts";
import type { TlsFiles } from "../cache/tls_files.ts";
import type { Health } from "../base/health.ts";
import type { CounterCache } from "../ratelimit/counter_cache.ts";
import type { Settings } from "../settings/table.ts";
import type { StatsStore } from "../stats/store.ts";
import { ThrottledLog } from "../telemetry/throttled_log.ts";

/** What a cache is opened with. */
export interface OpenCacheOptions {
  readonly settings: Settings;
  readonly logger: Logger;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly health: Health;
  readonly stats: StatsStore;
  /** Called when the settings say that attempts to connect are to end, with a whole sentence. */
  readonly onGivenUp: (text: string) => void;
}

/** The counters, as the settings say. */
export interface OpenCache {
  readonly cache: CounterCache;
  /** Counts for this instance while the cache fails, where that is asked for; absent where it is the cache. */
  readonly fallback: CounterCache | undefined;
  /** Settles when counters can be asked. */
  readonly ready: Promise<void>;
  /** Closes both. */
  close(): Promise<void>;
}

/** Opens the back end that the settings name; its connections are made in the background. */
export async function openCache(options: OpenCacheOptions): Promise<OpenCache> {
  const { settings, clock, stats, health } = options;
  health.set("cache", true);
  const memory = new MemoryCache({ maxKeys: settings.MEMORY_MAX_KEYS, clock });
  stats.addFigures("ratelimit.memory", {
    counters: { evicted_keys: () => memory.evicted },
    gauges: { keys: () => memory.size },
  });
  warnOfHeap(options);
  if (settings.BACKEND_TYPE === "memory") {
    return { cache: memory, fallback: undefined, ready: Promise.resolve(), close: () => memory.close() };
  }
  const backend = settings.BACKEND_TYPE;
  const timeoutMs = backend === "mc"
    ? settings.MC_TIMEOUT
    : Math.max(settings.KV_TIMEOUT, settings.KV_PERSECOND_TIMEOUT);
  const { cache: shared, ready } = backend === "mc" ? await openMc(options) : await openKv(options);
  const { InFlightCache } = await import("../cache/in_flight_cache.ts");
  const cache = new InFlightCache(shared, {
    maxInFlight: settings.MAX_IN_FLIGHT,
    backend,
    timeoutMs,
    clock,
  });
  stats.addFigures("ratelimit.cache", cache.figures);
  const close = async () => void await Promise.all([cache.close(), memory.close()]);
  return { cache, fallback: memory, ready, close };
}

/** What is at the other end of the cache, for spans. */
export function cacheKind({ BACKEND_TYPE, KV_PERSECOND }: Settings): {
  readonly backend: Settings["BACKEND_TYPE"];
  readonly perSecond: boolean;
} {
  return { backend: BACKEND_TYPE, perSecond: KV_PERSECOND };
}

/** A heap that cannot hold the counters ends the process long before the bound of their number. */
function warnOfHeap({ settings, logger }: OpenCacheOptions): void {
  const { BACKEND_TYPE, CACHE_ON_FAILURE, MEMORY_MAX_KEYS } = settings;
  if (BACKEND_TYPE !== "memory" && CACHE_ON_FAILURE !== "local") return;
  const [required, limit] = [heapBytesOf(MEMORY_MAX_KEYS), getHeapStatistics().heap_size_limit];
  if (required <= limit) return;
  const [requiredMb, limitMb] = [required, limit].map((bytes) => Math.round(bytes / 2 ** 20));
  logger.warning(
    `MEMORY_MAX_KEYS ${MEMORY_MAX_KEYS} may require ${requiredMb} MB of heap, and its limit is ${limitMb} MB: ` +
      "lower MEMORY_MAX_KEYS or raise --max-old-space-size",
  );
}

interface Connected {
  readonly cache: CounterCache;
  readonly ready: Promise<void>;
}

async function openKv(options: OpenCacheOptions): Promise<Connected> {
  const { settings } = options;
  const isUp = connectionsHealth(options);
  const main = await openOneKv(options, {
    prefix: "KV",
    figures: "ratelimit.kv_pool",
    isUp: (up, state) => isUp("main", up, state),
  });
  if (!settings.KV_PERSECOND) return main;
  const perSecond = await openOneKv(options, {
    prefix: "KV_PERSECOND",
    figures: "ratelimit.kv_per_second_pool",
    isUp: (up, state) => isUp("per second", up, state),
  });
  const { PerSecondCache } = await import("../cache/per_second_cache.ts");
  return {
    cache: new PerSecondCache({ main: main.cache, perSecond: perSecond.cache }),
    ready: Promise.all([main.ready, perSecond.ready]).then(() => {}),
  };
}

/** Which of the two key-value caches is meant. */
interface WhichKv {
  readonly prefix: "KV" | "KV_PERSECOND";
  readonly figures: string;
  readonly isUp: (up: boolean, state: string) => void;
}

async function openOneKv(options: OpenCacheOptions, which: WhichKv): Promise<Connected> {
  const { settings, clock, random, stats, onGivenUp } = options;
  const { prefix } = which;
  const [{ KvClients }, { parseKvAddress }] = await Promise.all([
    import("../cache/kv/connect.ts"),
    import("../cache/kv/address.ts"),
  ]);
  const type = settings[`${prefix}_TYPE`];
  const address = parseKvAddress(type, settings[`${prefix}_URL`] ?? "", {
    socketType: settings[`${prefix}_SOCKET_TYPE`],
    auth: settings[`${prefix}_AUTH`],
    sentinelAuth: settings[`${prefix}_SENTINEL_AUTH`],
    tls: settings[`${prefix}_TLS`],
    setting: `${prefix}_URL`,
  });
  const timeoutMs = settings[`${prefix}_TIMEOUT`];
  const clients = new KvClients({
    address,
    tls: tlsFiles(settings, "KV_TLS"),
    timeoutMs,
    clock,
    random,
    startup: {
      initialMs: settings.KV_STARTUP_INITIAL_INTERVAL,
      maxMs: settings.KV_STARTUP_MAX_INTERVAL,
      maxElapsedMs: settings.KV_STARTUP_MAX_ELAPSED_TIME,
    },
    onGivenUp,
  });
  const onConnection = connectionTeller(options, `key-value cache "${address.text}"`, which.isUp);
  const node = {
    database: address.database,
    timeoutMs,
    poolSize: settings[`${prefix}_POOL_SIZE`],
    onEmpty: settings[`${prefix}_POOL_ON_EMPTY_BEHAVIOR`],
    onEmptyWaitMs: settings[`${prefix}_POOL_ON_EMPTY_WAIT_DURATION`],
    windowMs: settings[`${prefix}_PIPELINE_WINDOW`],
    clock,
    random,
    roundTrip: roundTripOf(stats),
  };
  if (address.kind !== "cluster") {
    const { KvCache } = await import("../cache/kv/cache.ts");
    const createClient = () => clients.create();
    const cache = new KvCache({ ...node, address: address.text, createClient, onConnection });
    stats.addFigures(which.figures, cache.figures);
    return { cache, ready: cache.ready };
  }
  const { KvCluster } = await import("../cache/kv/cluster/cluster.ts");
  const { KvNode } = await import("../cache/kv/node.ts");
  const cache = new KvCluster({
    address: address.text,
    seeds: address.nodes,
    openNode: (endpoint, onNodeConnection, placeExpiry) =>
      new KvNode({
        ...node,
        placeExpiry,
        onConnection: onNodeConnection,
        address: `${endpoint.host}:${endpoint.port}`,
        createClient: () => clients.create(endpoint),
      }),
    parallelism: settings[`${prefix}_CLUSTER_PIPELINE_PARALLELISM`],
    timeoutMs,
    clock,
    random,
    onConnection,
  });
  stats.addFigures(which.figures, cache.figures);
  return { cache, ready: cache.ready };
}

async function openMc(options: OpenCacheOptions): Promise<Connected> {
  const { settings, logger, clock, random, stats, health } = options;
  const { McCache } = await import("../cache/mc/cache.ts");
  const { MC_SRV, MC_SRV_REFRESH, MC_HOST_PORT } = settings;
  const tellers = new Map<string, (connected: boolean, reason: string) => void>();
  const cache = new McCache({
    hosts: MC_SRV === undefined ? MC_HOST_PORT ?? [] : {
      name: MC_SRV,
      refreshMs: MC_SRV_REFRESH,
      resolveSrv: (name, { signal }) => Deno.resolveDns(name, "SRV", { signal }),
    },
    maxIdleConnections: settings.MC_MAX_IDLE_CONNS,
    tls: settings.MC_TLS ? tlsFiles(settings, "MC_TLS") : undefined,
    timeoutMs: settings.MC_TIMEOUT,
    digestPrefix: settings.MC_KEY_DIGEST ? settings.CACHE_KEY_PREFIX : undefined,
    clock,
    random,
    roundTrip: roundTripOf(stats),
    onConnection(connected, reason, node) {
      let tell = tellers.get(node);
      if (tell === undefined) {
        const isUp = (up: boolean, state: string) => {
          if (settings.KV_HEALTH_CHECK_ACTIVE_CONNECTION) health.set("cache", up || cache.connected, state);
        };
        tellers.set(node, tell = connectionTeller(options, `memcached-style cache "${node}"`, isUp));
      }
      tell(connected, reason);
    },
    onLookup(found, reason) {
      if (found) logger.warning(`Found the nodes of MC_SRV "${MC_SRV}" again`);
      else logger.warning(`Cannot look up MC_SRV "${MC_SRV}": ${reason}; trying again`);
    },
  });
  stats.addFigures("ratelimit.mc", cache.figures);
  return { cache, ready: cache.ready };
}

/** Tells of connections that are made and lost; whoever was told of an outage is told of its end. */
function connectionTeller(
  { logger, clock }: OpenCacheOptions,
  name: string,
  isUp: (up: boolean, state: string) => void,
): (connected: boolean, reason: string) => void {
  // A connection that comes and goes must not flood the log.
  const throttled = new ThrottledLog(logger, { clock });
  let isOutage = false;
  return (connected, reason) => {
    if (!connected) throttled.warning("lost", `Cannot reach ${name}: ${reason}; trying again`);
    else if (isOutage) throttled.warning("back", `Connected to ${name} again`);
    else logger.info(`Connected to ${name}`);
    isOutage = !connected;
    isUp(connected, `no connection to ${name}: ${reason}`);
  };
}

/** The cache is healthy while every key-value cache has a connection, where that is asked for. */
function connectionsHealth(
  { settings, health }: OpenCacheOptions,
): (which: string, up: boolean, state: string) => void {
  const down = new Map<string, string>();
  return (which, up, state) => {
    if (!settings.KV_HEALTH_CHECK_ACTIVE_CONNECTION) return;
    if (up) down.delete(which);
    else down.set(which, state);
    const [first = ""] = down.values();
    health.set("cache", down.size === 0, first);
  };
}

function tlsFiles(settings: Settings, prefix: "KV_TLS" | "MC_TLS"): TlsFiles {
  return {
    settings: prefix,
    authorityFile: settings[`${prefix}_CACERT`],
    certFile: settings[`${prefix}_CLIENT_CERT`],
    keyFile: settings[`${prefix}_CLIENT_KEY`],
    skipHostname: settings[`${prefix}_SKIP_HOSTNAME_VERIFICATION`],
  };
}

/** Told of each round trip to a shared cache. */
function roundTripOf(stats: StatsStore): (ms: number) => void {
  const timer = stats.timer("ratelimit.cache.round_trip");
  return (ms) => timer.record(ms);
}
