import type { TlsFiles } from "../cache/tls_files.ts";
import type { CounterCache } from "../ratelimit/counter_cache.ts";
import type { Settings } from "../settings/table.ts";
import type { StatsStore } from "../stats/store.ts";
import { ThrottledLog } from "../telemetry/throttled_log.ts";
import type { ServiceParts } from "./parts.ts";

/** What a cache is opened with. */
export interface OpenCacheOptions extends ServiceParts {
  /** Called when the settings end the attempts to connect, with a whole sentence. */
  readonly onGivenUp: (text: string) => void;
}

/** A shared cache whose connections are made in the background. */
export interface ConnectedCache {
  readonly cache: CounterCache;
  /** Settles when counters can be asked. */
  readonly ready: Promise<void>;
}

/** Logs connections that are made and lost; the end of an outage is logged as a warning, as its begin is. */
export function connectionReporter(
  { logger, clock }: OpenCacheOptions,
  name: string,
  isUp: (up: boolean, state: string) => void,
): (connected: boolean, reason: string) => void {
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

/** The TLS files that the settings name. */
export function tlsFiles(settings: Settings, prefix: "KV_TLS" | "MC_TLS"): TlsFiles {
  return {
    settings: prefix,
    authorityFile: settings[`${prefix}_CACERT`],
    certFile: settings[`${prefix}_CLIENT_CERT`],
    keyFile: settings[`${prefix}_CLIENT_KEY`],
    skipHostname: settings[`${prefix}_SKIP_HOSTNAME_VERIFICATION`],
  };
}

/** Records each round trip to a shared cache. */
export function roundTripRecorder(stats: StatsStore): (ms: number) => void {
  const timer = stats.timer("ratelimit.cache.round_trip");
  return (ms) => timer.record(ms);
}
