import { ROUND_TRIP_METRICS } from "../cache/metrics.ts";
import type { TlsFiles } from "../cache/tls_files.ts";
import type { QuotaShares } from "../quota/quota_shares.ts";
import type { CounterCache } from "../ratelimit/decision/counter_cache.ts";
import type { StatsStore } from "../stats/store.ts";
import { ThrottledLog } from "../base/throttled_log.ts";
import type { CacheHealth } from "./cache_health.ts";
import type { ServiceParts } from "./parts.ts";

/** Options of a cache. */
export interface OpenCacheOptions extends ServiceParts {
  /** Called when the settings end the attempts to connect, with a whole sentence. */
  readonly onGivenUp: (text: string) => void;
}

/** A shared cache whose connections are made in the background. */
export interface ConnectedCache {
  readonly cache: CounterCache;
  /** Divides quotas among instances, if the cache can do that. */
  readonly shares: QuotaShares | undefined;
  /** Settles when counters can be asked. */
  readonly ready: Promise<void>;
  /** Ends what reads its credentials; the cache is closed separately. */
  close(): Promise<void>;
}

/** Logs new and lost connections, and reports them as health; the end of an outage is a warning, like its beginning. */
export function connectionReporter(
  { logger, clock }: OpenCacheOptions,
  health: CacheHealth,
  place: { readonly kind: string; readonly address: string; readonly name?: string },
): (connected: boolean, reason: string) => void {
  const { kind, address, name = address } = place;
  health.expect(name, `no connection to ${address} yet`);
  const throttled = new ThrottledLog(logger, { clock });
  let isOutage = false;
  return (connected, reason) => {
    if (!connected) throttled.warning("lost", `Cannot reach the ${kind}; retrying`, { address, reason });
    else if (isOutage) throttled.warning("back", `Connected to the ${kind} again`, { address });
    else logger.info(`Connected to the ${kind}`, { address });
    isOutage = !connected;
    health.report(name, connected, `no connection to ${address}: ${reason}`);
  };
}

/** Logs that a server is used although it did not report its state, as behind a proxy. */
export function unknownStateReporter(
  { logger }: Pick<OpenCacheOptions, "logger">,
  kind: string,
): (address: string, reason: string) => void {
  return (address, reason) => {
    logger.warning(`The ${kind} does not report its state; counting without it`, { address, reason });
  };
}

/** The TLS files that the settings name. */
export function tlsFiles(
  { settings, logger }: Pick<ServiceParts, "settings" | "logger">,
  prefix: "KV_TLS" | "MC_TLS",
): TlsFiles {
  return {
    settings: prefix,
    authorityFile: settings[`${prefix}_CACERT`],
    certFile: settings[`${prefix}_CLIENT_CERT`],
    keyFile: settings[`${prefix}_CLIENT_KEY`],
    skipHostname: settings[`${prefix}_SKIP_HOSTNAME_VERIFICATION`],
    log: logger,
  };
}

/** Records each round trip to a shared cache. */
export function roundTripRecorder(stats: StatsStore): (ms: number) => void {
  const { round_trip: timer } = stats.addTimers(ROUND_TRIP_METRICS);
  return (ms) => timer.record(ms);
}
