import { type HttpListener, listenHttp } from "../http/listen.ts";
import { addListenerMetrics, listenerReport } from "./listener_report.ts";
import type { Rules } from "../ratelimit/rules.ts";
import type { Settings } from "../settings/table.ts";
import { BUCKET_BOUNDS_MS } from "../stats/timer.ts";
import type { ServiceParts } from "./parts.ts";

/** Options of the metrics port. */
export interface PullMetricsOptions {
  readonly rules: () => Rules | undefined;
  /** Brings the statistics up to date; absent where they always are. */
  readonly refresh: (() => Promise<void>) | undefined;
}

/** Opens the metrics port where it is enabled. Throws for an invalid mapping file, or when it cannot listen. */
export async function openPullMetrics(
  parts: ServiceParts,
  { rules, refresh }: PullMetricsOptions,
): Promise<HttpListener | undefined> {
  const { settings, stats, logger, clock } = parts;
  if (!settings.USE_PULL_METRICS) return undefined;
  if (settings.DISABLE_STATS) {
    logger.warning("USE_PULL_METRICS has no effect: DISABLE_STATS is true");
    return undefined;
  }
  const { createPullHandler } = await import("../stats/pull_handler.ts");
  const handler = createPullHandler({
    store: stats,
    path: settings.PULL_METRICS_PATH,
    mapping: await mappingOf(settings),
    native: settings.PULL_METRICS_NATIVE,
    timeAsMilliseconds: settings.PULL_METRICS_RESPONSE_TIME_AS_MILLISECONDS,
    extraTags: settings.EXTRA_TAGS,
    rules,
    refresh,
    logger,
    clock,
  });
  const { host, port } = settings.PULL_METRICS_ADDR;
  const listener = listenHttp(handler, {
    ...listenerReport(parts, "metrics"),
    hostname: host,
    port,
    isShared: settings.LISTEN_SHARED,
  });
  addListenerMetrics(parts, "metrics", listener.accepting);
  return listener;
}

async function mappingOf({ PULL_METRICS_MAPPER_YAML: path }: Settings) {
  if (path === undefined) return undefined;
  const { loadMetricMapping } = await import("../config/metric_mapping.ts");
  return await loadMetricMapping(path, { boundsSeconds: BUCKET_BOUNDS_MS.map((bound) => bound / 1_000) });
}
