import { McCache } from "../cache/mc/cache.ts";
import { MC_METRICS } from "../cache/metrics.ts";
import {
  type ConnectedCache,
  connectionReporter,
  type OpenCacheOptions,
  reportConnected,
  roundTripRecorder,
  tlsFiles,
  unknownStateReporter,
} from "./cache_connections.ts";

/** Opens the memcached-style cache. */
export function openMcCache(options: OpenCacheOptions): ConnectedCache {
  const { settings, logger, clock, random, stats } = options;
  const { MC_SRV, MC_SRV_REFRESH, MC_HOST_PORT } = settings;
  const reporters = new Map<string, (connected: boolean, reason: string) => void>();
  const isUp = (up: boolean, state: string) => reportConnected(options, up || cache.connected, state);
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
    roundTrip: roundTripRecorder(stats),
    onUnknownState: unknownStateReporter(options, "memcached-style cache"),
    onConnection(connected, reason, node) {
      const report = reporters.get(node) ??
        connectionReporter(options, { kind: "memcached-style cache", address: node }, isUp);
      reporters.set(node, report);
      report(connected, reason);
    },
    onLookup(found, reason) {
      if (found) logger.warning("Found the nodes of MC_SRV again", { name: MC_SRV });
      else logger.warning("Cannot look up MC_SRV; retrying", { name: MC_SRV, reason });
    },
  });
  stats.addMetrics(MC_METRICS, cache.metrics);
  return { cache, ready: cache.ready };
}
