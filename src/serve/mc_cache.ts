import { McCache } from "../cache/mc/cache.ts";
import { hostPort } from "../base/host_port.ts";
import { MC_METRICS } from "../cache/metrics.ts";
import {
  type ConnectedCache,
  connectionReporter,
  type OpenCacheOptions,
  roundTripRecorder,
  tlsFiles,
  unknownStateReporter,
} from "./cache_connections.ts";
import { CacheHealth } from "./cache_health.ts";

/** Opens the memcached-style cache. */
export function openMcCache(options: OpenCacheOptions): ConnectedCache {
  const { settings, logger, clock, random, stats } = options;
  const { MC_SRV, MC_SRV_REFRESH, MC_HOST_PORT } = settings;
  const reporters = new Map<string, (connected: boolean, reason: string) => void>();
  // Connections are expected before the cache exists.
  let opened: McCache | undefined = undefined;
  const health = new CacheHealth(options, () => opened?.connected === true);
  const reporterOf = (address: string) => {
    const report = reporters.get(address) ??
      connectionReporter(options, health, { kind: "memcached-style cache", address });
    reporters.set(address, report);
    return report;
  };
  for (const node of MC_HOST_PORT ?? []) reporterOf(hostPort(node));
  const cache = new McCache({
    hosts: MC_SRV === undefined ? MC_HOST_PORT ?? [] : {
      name: MC_SRV,
      refreshMs: MC_SRV_REFRESH,
      resolveSrv: (name, { signal }) => Deno.resolveDns(name, "SRV", { signal }),
    },
    maxIdleConnections: settings.MC_MAX_IDLE_CONNS,
    tls: settings.MC_TLS ? tlsFiles(options, "MC_TLS") : undefined,
    timeoutMs: settings.MC_TIMEOUT,
    digestPrefix: settings.MC_KEY_DIGEST ? settings.CACHE_KEY_PREFIX : undefined,
    clock,
    random,
    roundTrip: roundTripRecorder(stats),
    onUnknownState: unknownStateReporter(options, "memcached-style cache"),
    onConnection(connected, reason, node) {
      reporterOf(node)(connected, reason);
    },
    onLeft(node) {
      reporters.delete(node);
      health.report(node, true, "");
    },
    onLookup(found, reason) {
      health.note("MC_SRV", found ? undefined : `cannot look up MC_SRV: ${reason}`);
      if (found) logger.warning("Found the nodes of MC_SRV again", { name: MC_SRV });
      else logger.warning("Cannot look up MC_SRV; retrying", { name: MC_SRV, reason });
    },
  });
  opened = cache;
  stats.addMetrics(MC_METRICS, cache.metrics);
  return { cache, shares: undefined, ready: cache.ready, close: () => Promise.resolve() };
}
