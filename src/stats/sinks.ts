import type { MetricGroup, Metrics, MetricTable } from "../base/metrics.ts";
import { pushMetrics } from "./declarations.ts";
import type { Clock } from "../base/clock.ts";
import { EpisodeLog } from "../base/episode_log.ts";
import { hostPort } from "../base/host_port.ts";
import type { ByteSink } from "../base/line_writer.ts";
import type { Logger } from "../base/log.ts";
import type { Carrier, PushOutage, StatsSource } from "./flush_ports.ts";
import { FlushLoop, FlushSink, type FlushSinkOptions } from "./flush_sink.ts";
import { type MogrifierSettings, mogrifiersOf } from "./mogrifier.ts";
import { statsdLines, taggedLines } from "./statsd_lines.ts";
import { StatsdTcp } from "./statsd_tcp.ts";
import { StatsdUdp } from "./statsd_udp.ts";
import { jsonLines, stdoutCarrier } from "./stdout_sink.ts";

/** Kinds of sinks. */
type SinkKind = "push" | "tagged" | "stdout";

/** The settings that choose the sinks. */
interface SinkChoiceSettings {
  readonly DISABLE_STATS: boolean;
  readonly USE_PUSH_STATS: boolean | undefined;
  readonly USE_TAGGED_PUSH_STATS: boolean;
  readonly USE_PULL_METRICS: boolean;
  readonly OTEL_METRICS_EXPORTER: "otlp" | "none";
}

/** The settings of the sinks. */
interface SinkSettings extends SinkChoiceSettings, MogrifierSettings {
  readonly STATS_FLUSH_INTERVAL: number;
  readonly EXTRA_TAGS: ReadonlyMap<string, string>;
  readonly PUSH_STATS_HOST: string;
  readonly PUSH_STATS_PORT: number;
  readonly PUSH_STATS_PROTOCOL: "tcp" | "udp";
}

/** Which sinks run. Plain push is off by default where there is another receiver. */
export function chooseSinks(settings: SinkChoiceSettings): readonly SinkKind[] {
  const { DISABLE_STATS, USE_PUSH_STATS, USE_TAGGED_PUSH_STATS, USE_PULL_METRICS, OTEL_METRICS_EXPORTER } =
    settings;
  if (DISABLE_STATS) return [];
  const isOther = USE_TAGGED_PUSH_STATS || USE_PULL_METRICS || OTEL_METRICS_EXPORTER === "otlp";
  const kinds: SinkKind[] = USE_TAGGED_PUSH_STATS ? ["tagged"] : [];
  if (USE_PUSH_STATS ?? !isOther) kinds.push("push");
  if (USE_PUSH_STATS === false && !isOther) kinds.push("stdout");
  return kinds;
}

/** The store that sinks read from, and in which they count lost lines. */
interface SinkStore extends StatsSource {
  addMetrics<T extends MetricTable>(group: MetricGroup<T>, metrics: Metrics<T>): void;
}

/** The parts of sinks in addition to their settings. */
interface StartSinksOptions {
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly logger: Logger;
  readonly stdout: ByteSink;
}

/** Starts the sinks that the settings choose. Nothing here throws; closing flushes a last time. */
export function startSinks(
  settings: SinkSettings,
  store: SinkStore,
  options: StartSinksOptions,
): { close(): Promise<void> } {
  const { logger, clock } = options;
  const sinks = chooseSinks(settings).map((kind) =>
    new FlushSink({ ...openSink(kind, { settings, store, options }), source: store, logger })
  );
  return new FlushLoop(sinks, { intervalMs: settings.STATS_FLUSH_INTERVAL, clock });
}

interface SinkParts {
  readonly settings: SinkSettings;
  readonly store: SinkStore;
  readonly options: StartSinksOptions;
}

function openSink(kind: SinkKind, parts: SinkParts): Pick<FlushSinkOptions, "name" | "format" | "carrier"> {
  const { settings, options: { clock, stdout } } = parts;
  const { EXTRA_TAGS: tags, PUSH_STATS_PROTOCOL: protocol } = settings;
  if (kind === "stdout") {
    return { name: "standard output", format: jsonLines(tags, clock), carrier: stdoutCarrier(stdout, clock) };
  }
  const name = hostPort({ host: settings.PUSH_STATS_HOST, port: settings.PUSH_STATS_PORT });
  if (kind === "push") {
    return { name, format: statsdLines(tags), carrier: openPush(parts, name, protocol, "push_stats") };
  }
  const format = taggedLines({ tags, mogrifiers: mogrifiersOf(settings) });
  return { name, format, carrier: openPush(parts, name, "udp", "tagged_push_stats") };
}

function openPush(
  { settings, store, options }: SinkParts,
  name: string,
  protocol: "tcp" | "udp",
  metrics: string,
): Carrier {
  const { clock, random, logger } = options;
  const outage = pushOutage(name, { clock, logger });
  const target = { host: settings.PUSH_STATS_HOST, port: settings.PUSH_STATS_PORT, clock, outage };
  const carrier = protocol === "tcp" ? new StatsdTcp({ ...target, random }) : new StatsdUdp(target);
  store.addMetrics(pushMetrics(metrics), { counters: { lines_lost: () => carrier.linesLost }, gauges: {} });
  return carrier;
}

/** Logs when a receiver, `host:port` of the settings, cannot be reached, and when it can again. */
export function pushOutage(
  receiver: string,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): PushOutage {
  const episode = new EpisodeLog(clock);
  return {
    failed: (reason) =>
      episode.begin(() => logger.warning("Cannot push statistics; retrying", { receiver, reason })),
    worked: () => episode.end(() => logger.warning("Pushing statistics again", { receiver })),
  };
}
