import type { SpanExport } from "../telemetry/otlp_exporter.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import type { ServiceParts } from "./parts.ts";

/** Returns everything unchanged, so that tracing costs nothing when it is off. */
const OFF: Tracing = {
  grpcService: (service) => service,
  route: (routeFor, decide) => routeFor(decide),
  decide: (decide) => decide,
  isTraced: () => false,
  cache: (cache) => cache,
  work: () => {},
  logFields: () => ({}),
  workLogger: (logger) => logger,
  close: () => Promise.resolve(),
};

/** Opens tracing where it is enabled; its modules are loaded only then. */
export async function openTracing(
  { settings, stats, logger, clock, random }: ServiceParts,
  exported: SpanExport | undefined,
): Promise<Tracing> {
  if (exported === undefined) return OFF;
  const onSpan = settings.USE_PULL_METRICS && !settings.DISABLE_STATS
    ? (await import("./exemplars.ts")).addExemplars(stats)
    : undefined;
  const [{ beginTracing }, { SpanOutbox }, { spanLimits }] = await Promise.all([
    import("../telemetry/tracing.ts"),
    import("../telemetry/tracing_span_outbox.ts"),
    import("../telemetry/otlp_settings.ts"),
  ]);
  const spans = new SpanOutbox({
    ...exported,
    ...spanLimits(exported.protocol),
    clock,
    logger,
  });
  return beginTracing({ samplingRate: settings.TRACING_SAMPLING_RATE, spans, onSpan, clock, random });
}
