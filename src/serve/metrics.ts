import type { Logger } from "../base/log.ts";
import { problemText } from "../base/problem.ts";
import { type HttpPort, listenHttp } from "../http/server/http_port.ts";
import { addListenerMetrics, listenerReport } from "./listener_metrics.ts";
import type { Rules } from "../ratelimit/rules/rules.ts";
import type { Settings } from "../settings/table.ts";
import { BUCKET_BOUNDS_MS } from "../stats/timer.ts";
import type { PullReaderOptions } from "../stats/pull_reader.ts";
import type { OtlpExporter } from "../telemetry/otlp_exporter.ts";
import { NOT_OPENED } from "./lifecycle.ts";
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
  options: PullMetricsOptions,
): Promise<HttpPort | undefined> {
  const { settings, logger } = parts;
  if (!settings.USE_PULL_METRICS) return undefined;
  if (settings.DISABLE_STATS) {
    logger.warning("USE_PULL_METRICS has no effect: DISABLE_STATS is true");
    return undefined;
  }
  const { createPullHandler } = await import("../stats/pull_handler.ts");
  const handler = createPullHandler({
    path: settings.PULL_METRICS_PATH,
    ...await readerOptions(parts, options),
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

/** Starts the export of metrics over OTLP where it is enabled. Throws when a tag cannot be a label. */
export async function openMetricsExport(
  parts: ServiceParts,
  options: PullMetricsOptions,
  exporter: OtlpExporter | undefined,
): Promise<{ close(): Promise<void> }> {
  const { settings, logger, clock } = parts;
  if (settings.OTEL_METRICS_EXPORTER === "none") return NOT_OPENED;
  if (settings.DISABLE_STATS) {
    logger.warning("OTEL_METRICS_EXPORTER has no effect: DISABLE_STATS is true");
    return NOT_OPENED;
  }
  if (exporter === undefined) return NOT_OPENED;
  const [{ MetricsExport }, { PullReader }, { batchesOf }, { FlushLoop }] = await Promise.all([
    import("../telemetry/otlp_metrics_export.ts"),
    import("../stats/pull_reader.ts"),
    import("../stats/pull_batches.ts"),
    import("../stats/flush_sink.ts"),
  ]);
  const reader = new PullReader(await readerOptions(parts, options), "OTEL_METRICS_EXPORTER");
  const metricsExport = new MetricsExport({
    read: async () => batchesOf(await reader.read(), { ...reader, readAt: clock.now() }),
    send: (batch) => exporter.send(batch),
    logger,
  });
  return new FlushLoop([metricsExport], { intervalMs: settings.OTEL_METRIC_EXPORT_INTERVAL, clock });
}

/** The metrics for scrapes and for exports, under the same names. */
async function readerOptions(
  { settings, stats, logger, clock }: ServiceParts,
  { rules, refresh }: PullMetricsOptions,
): Promise<PullReaderOptions> {
  return {
    store: stats,
    mapping: await mappingOf(settings, logger),
    native: settings.PULL_METRICS_NATIVE,
    timeAsMilliseconds: settings.PULL_METRICS_RESPONSE_TIME_AS_MILLISECONDS,
    extraTags: settings.EXTRA_TAGS,
    rules,
    refresh,
    logger,
    clock,
  };
}

async function mappingOf({ PULL_METRICS_MAPPER_YAML: path }: Settings, logger: Logger) {
  if (path === undefined) return undefined;
  const { loadMetricMapping } = await import("../config/metric_mapping.ts");
  const boundsSeconds = BUCKET_BOUNDS_MS.map((bound) => bound / 1_000);
  const { mappings, problems } = await loadMetricMapping(path, { boundsSeconds });
  for (const problem of problems) logger.warning(problemText(problem));
  return mappings;
}
