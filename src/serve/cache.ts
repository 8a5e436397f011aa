import { getHeapStatistics } from "node:v8";
import { heapBytesOf, MemoryCache } from "../cache/memory_cache.ts";
import { IN_FLIGHT_METRICS, MEMORY_METRICS } from "../cache/metrics.ts";
import { type QuotaShares, wholeShares } from "../quota/quota_shares.ts";
import type { CounterCache } from "../ratelimit/decision/counter_cache.ts";
import type { Settings } from "../settings/table.ts";
import type { OpenCacheOptions } from "./cache_connections.ts";
import type { ServiceParts } from "./parts.ts";

/** Longest wait of the listeners for a cache that is about to connect, so that first calls find it. */
export const CACHE_HEAD_START_MS = 250;

/** The counters, as the settings require them. */
export interface OpenCache {
  readonly cache: CounterCache;
  /** Counts for this instance while the cache fails, where the settings require it; absent for `memory`. */
  readonly fallback: CounterCache | undefined;
  /** Divides quotas among instances; absent with memcached. */
  readonly shares: QuotaShares | undefined;
  /** Settles when counters can be asked. */
  readonly ready: Promise<void>;
  /** Closes both. */
  close(): Promise<void>;
}

/** Opens the counters of this thread, and the back end that the settings name; its connections are made in the background. */
export async function openCache(options: OpenCacheOptions): Promise<OpenCache> {
  const { settings, clock, stats, health } = options;
  const memory = new MemoryCache({ maxKeys: settings.MEMORY_MAX_KEYS, clock });
  stats.addMetrics(MEMORY_METRICS, {
    counters: { evicted_keys: () => memory.evicted },
    gauges: { keys: () => memory.size },
  });
  health.set("cache", true);
  const backend = settings.BACKEND_TYPE;
  if (backend === "memory") {
    return {
      cache: memory,
      fallback: undefined,
      shares: wholeShares,
      ready: Promise.resolve(),
      close: () => memory.close(),
    };
  }
  const { cache: shared, shares, ready, close: closeCredentials } = backend === "mc"
    ? (await import("./mc_cache.ts")).openMcCache(options)
    : await (await import("./kv_cache.ts")).openKvCache(options);
  const { InFlightCache } = await import("../cache/in_flight_cache.ts");
  const cache = new InFlightCache(shared, {
    maxInFlight: settings.MAX_IN_FLIGHT,
    backend,
    timeoutMs: backend === "mc"
      ? settings.MC_TIMEOUT
      : Math.max(settings.KV_TIMEOUT, settings.KV_PERSECOND_TIMEOUT),
    clock,
  });
  stats.addMetrics(IN_FLIGHT_METRICS, cache.metrics);
  const close = async () => void await Promise.all([cache.close(), memory.close(), closeCredentials()]);
  return { cache, fallback: memory, shares, ready, close };
}

/** The kind of the cache, for spans. */
export function cacheKind({ BACKEND_TYPE, KV_PERSECOND }: Settings): {
  readonly backend: Settings["BACKEND_TYPE"];
  readonly perSecond: boolean;
} {
  return { backend: BACKEND_TYPE, perSecond: KV_PERSECOND };
}

/** A heap that cannot hold the counters ends the process long before their limit is reached. */
export function warnOfHeap({ settings, logger }: ServiceParts): void {
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
