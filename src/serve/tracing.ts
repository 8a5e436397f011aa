import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Settings } from "../settings/table.ts";
import type { Tracing } from "../telemetry/tracing.ts";

/** What tracing is opened with. */
export interface OpenTracingOptions {
  readonly settings: Settings;
  readonly version: string;
  readonly logger: Logger;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
}

/** Hands everything back as it is, so that calls that nobody traces pay nothing. */
const OFF: Tracing = {
  grpcService: (service) => service,
  route: (routeFor, decide) => routeFor(decide),
  decide: (decide) => decide,
  cache: (cache) => cache,
  work: () => {},
  start: () => {},
  close: () => Promise.resolve(),
};

/** Opens tracing as the settings say; it is loaded only by who wants it. */
export async function openTracing(options: OpenTracingOptions): Promise<Tracing> {
  const { settings } = options;
  if (!settings.TRACING_ENABLED) return OFF;
  const tracing = await import("../telemetry/tracing.ts");
  return tracing.beginTracing({
    protocol: settings.TRACING_EXPORTER_PROTOCOL,
    serviceName: settings.TRACING_SERVICE_NAME,
    serviceNamespace: settings.TRACING_SERVICE_NAMESPACE,
    serviceInstanceId: settings.TRACING_SERVICE_INSTANCE_ID,
    samplingRate: settings.TRACING_SAMPLING_RATE,
    otlp: settings["OTEL_EXPORTER_OTLP_<OPTION>"],
    version: options.version,
    logger: options.logger,
    clock: options.clock,
    random: options.random,
  });
}
