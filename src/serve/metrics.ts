import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Health } from "../base/health.ts";
import { type HttpListener, listenHttp } from "../http/listen.ts";
import { addListenerMetrics, listenerReport } from "./listener_report.ts";
import type { Rules } from "../ratelimit/rules.ts";
import type { Settings } from "../settings/table.ts";
import type { StatsStore } from "../stats/store.ts";
import { BUCKET_BOUNDS_MS } from "../stats/timer.ts";

/** What the port with the metrics is opened with. */
export interface OpenPullMetricsOptions {
  readonly settings: Settings;
  readonly stats: StatsStore;
  /** The rules in force. */
  readonly rules: () => Rules | undefined;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly health: Health;
}

/** The port with the metrics. */
export interface OpenPullMetrics {
  /** Absent where the settings ask for none. */
  readonly listener: HttpListener | undefined;
  /** Loads what the first scrape would wait for. */
  load(): Promise<unknown>;
}

const CLOSED: OpenPullMetrics = { listener: undefined, load: () => Promise.resolve() };

/**
 * Opens the port with the metrics, where the settings ask for it. Throws when the mapping file has a mistake,
 * or the address cannot be had.
 */
export async function openPullMetrics(options: OpenPullMetricsOptions): Promise<OpenPullMetrics> {
  const { settings, stats, rules, logger, clock } = options;
  if (!settings.USE_PULL_METRICS) return CLOSED;
  if (settings.DISABLE_STATS) {
    logger.warning("USE_PULL_METRICS has no effect: DISABLE_STATS is true");
    return CLOSED;
  }
  // Packages are loaded only by who uses them.
  const { createPullHandler, loadPullText } = await import("../stats/pull_handler.ts");
  const handler = createPullHandler({
    store: stats,
    path: settings.PULL_METRICS_PATH,
    mapping: await mappingOf(settings),
    native: settings.PULL_METRICS_NATIVE,
    timeAsMilliseconds: settings.PULL_METRICS_RESPONSE_TIME_AS_MILLISECONDS,
    extraTags: settings.EXTRA_TAGS,
    rules,
    logger,
    clock,
  });
  const { host, port } = settings.PULL_METRICS_ADDR;
  const listener = listenHttp(handler, {
    ...listenerReport(options, "metrics"),
    hostname: host,
    port,
    isShared: settings.LISTEN_SHARED,
  });
  addListenerMetrics(options, "metrics", listener.accepting);
  return { listener, load: loadPullText };
}

async function mappingOf({ PULL_METRICS_MAPPER_YAML: path }: Settings) {
  if (path === undefined) return undefined;
  const { loadMetricMapping } = await import("../config/metric_mapping.ts");
  return await loadMetricMapping(path, { boundsSeconds: BUCKET_BOUNDS_MS.map((bound) => bound / 1_000) });
}
