import type { Tracing } from "../telemetry/tracing.ts";
import type { ServiceParts } from "./parts.ts";

/** Returns everything unchanged, so that tracing costs nothing when it is off. */
const OFF: Tracing = {
  grpcService: (service) => service,
  route: (routeFor, decide) => routeFor(decide),
  decide: (decide) => decide,
  known: (known) => known,
  cache: (cache) => cache,
  work: () => {},
  logFields: () => ({}),
  workLogger: (logger) => logger,
  start: () => {},
  close: () => Promise.resolve(),
};

/** Opens tracing where it is enabled; its modules are loaded only then. */
export async function openTracing(
  { settings, ...options }: ServiceParts & { readonly version: string },
): Promise<Tracing> {
  if (!settings.TRACING_ENABLED) return OFF;
  const onSpan = settings.USE_PULL_METRICS && !settings.DISABLE_STATS
    ? (await import("./exemplars.ts")).addExemplars(options.stats)
    : undefined;
  const tracing = await import("../telemetry/tracing.ts");
  return tracing.beginTracing({
    protocol: settings.TRACING_EXPORTER_PROTOCOL,
    serviceName: settings.TRACING_SERVICE_NAME,
    serviceNamespace: settings.TRACING_SERVICE_NAMESPACE,
    serviceInstanceId: settings.TRACING_SERVICE_INSTANCE_ID,
    samplingRate: settings.TRACING_SAMPLING_RATE,
    otlp: settings["OTEL_EXPORTER_OTLP_<OPTION>"],
    onSpan,
    ...options,
  });
}
