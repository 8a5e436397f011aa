import type { Clock } from "../base/clock.ts";
import type { ByteSink } from "../base/line_writer.ts";
import type { Logger } from "../base/log.ts";
import { hostPort } from "../base/host_port.ts";
import { FlushLoop } from "./flush_loop.ts";
import type { Carrier, LineFormat, StatsSource } from "./flush_ports.ts";
import { FlushSink } from "./flush_sink.ts";
import { type MogrifierSettings, mogrifiersOf } from "./mogrifier.ts";
import { pushLines } from "./push_lines.ts";
import { PushOutage } from "./push_outage.ts";
import { PushTcp } from "./push_tcp.ts";
import { PushUdp } from "./push_udp.ts";
import { jsonLines, stdoutCarrier } from "./stdout_sink.ts";
import { taggedLines } from "./tagged_lines.ts";

/** What statistics are sent by. */
export type SinkKind = "push" | "tagged" | "stdout";

/** The settings that choose the sinks. */
export interface SinkChoiceSettings {
  readonly DISABLE_STATS: boolean;
  readonly USE_PUSH_STATS: boolean | undefined;
  readonly USE_TAGGED_PUSH_STATS: boolean;
  readonly USE_PULL_METRICS: boolean;
}

/** The settings of the sinks. */
export interface SinkSettings extends SinkChoiceSettings, MogrifierSettings {
  readonly STATS_FLUSH_INTERVAL: number;
  readonly EXTRA_TAGS: ReadonlyMap<string, string>;
  readonly PUSH_STATS_HOST: string;
  readonly PUSH_STATS_PORT: number;
  readonly PUSH_STATS_PROTOCOL: "tcp" | "udp";
}

/** Which sinks run. Plain push makes way for another receiver, unless it was asked for in so many words. */
export function chooseSinks(settings: SinkChoiceSettings): readonly SinkKind[] {
  const { DISABLE_STATS, USE_PUSH_STATS, USE_TAGGED_PUSH_STATS, USE_PULL_METRICS } = settings;
  if (DISABLE_STATS) return [];
  const isOther = USE_TAGGED_PUSH_STATS || USE_PULL_METRICS;
  const kinds: SinkKind[] = USE_TAGGED_PUSH_STATS ? ["tagged"] : [];
  if (USE_PUSH_STATS ?? !isOther) kinds.push("push");
  if (USE_PUSH_STATS === false && !isOther) kinds.push("stdout");
  return kinds;
}

/** Where sinks read from, and where they count what they lost. */
export interface SinkStore extends StatsSource {
  addCounter(name: string, read: () => number): void;
}

/** What sinks are started with beside their settings. */
export interface StartSinksOptions {
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
  const sinks = chooseSinks(settings).map((kind) => {
    const { name, format, carrier } = openSink(kind, { settings, store, options });
    return new FlushSink({ name, source: store, format, carrier, logger });
  });
  return new FlushLoop(sinks, { intervalMs: settings.STATS_FLUSH_INTERVAL, clock });
}

interface OpenSink {
  readonly name: string;
  readonly format: LineFormat;
  readonly carrier: Carrier;
}

interface SinkParts {
  readonly settings: SinkSettings;
  readonly store: SinkStore;
  readonly options: StartSinksOptions;
}

function openSink(kind: SinkKind, parts: SinkParts): OpenSink {
  const { settings, options: { clock, stdout } } = parts;
  const tags = settings.EXTRA_TAGS;
  if (kind === "stdout") {
    const format = jsonLines({ tags, now: () => clock.now() });
    return { name: "standard output", format, carrier: stdoutCarrier(stdout, clock) };
  }
  const { PUSH_STATS_HOST: host, PUSH_STATS_PORT: port } = settings;
  const name = hostPort({ host, port });
  if (kind === "tagged") {
    const format = taggedLines({ tags, mogrifiers: mogrifiersOf(settings) });
    return {
      name,
      format,
      carrier: openPush(name, parts, { protocol: "udp", figures: "tagged_push_stats" }),
    };
  }
  const protocol = settings.PUSH_STATS_PROTOCOL;
  return {
    name,
    format: pushLines(tags),
    carrier: openPush(name, parts, { protocol, figures: "push_stats" }),
  };
}

function openPush(
  name: string,
  { settings, store, options }: SinkParts,
  { protocol, figures }: { readonly protocol: "tcp" | "udp"; readonly figures: string },
): Carrier {
  const { clock, random, logger } = options;
  const outage = new PushOutage(name, logger);
  const target = { host: settings.PUSH_STATS_HOST, port: settings.PUSH_STATS_PORT, clock, outage };
  const carrier = protocol === "tcp" ? new PushTcp({ ...target, random }) : new PushUdp(target);
  store.addCounter(`ratelimit.${figures}.lines_lost`, () => carrier.linesLost);
  return carrier;
}
