import { diag, DiagLogLevel } from "@opentelemetry/api";
import {
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import { BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { settledWithin } from "../base/wait.ts";
import type { CounterCache } from "../ratelimit/counter_cache.ts";
import { type TracedRoute, type TracedService, traceGrpcService, traceRoute } from "./tracing_calls.ts";
import { type Decide, traceCache, type TracedCache, traceDecide } from "./tracing_decision.ts";
import { createSpanExporter } from "./tracing_exporter.ts";
import { createSdkLog } from "./tracing_sdk_log.ts";
import { CallTracer } from "./tracing_spans.ts";

/** What is traced and where the spans go. */
export interface TracingOptions {
  readonly protocol: "http" | "grpc";
  readonly serviceName: string;
  /** Empty for none. */
  readonly serviceNamespace: string;
  /** A random UUID when absent. */
  readonly serviceInstanceId?: string | undefined;
  /** Share of the calls that are traced where the caller has not decided, 0 to 1. */
  readonly samplingRate: number;
  /** The values of `OTEL_EXPORTER_OTLP_<OPTION>` by option. */
  readonly otlp: ReadonlyMap<string, string>;
  readonly version: string;
  readonly logger: Logger;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
}

/** Puts spans around the parts of the service and exports them. */
export interface Tracing {
  /** A span for each unary call. */
  grpcService<Service extends TracedService>(service: Service): Service;
  /** A span for each call of the route that `routeFor` makes of a decision. */
  route<Route extends TracedRoute>(routeFor: (decide: Decide) => Route, decide: Decide): Route;
  /** A span for each decision, below that of its call; what it answers is for `route` and the gRPC service. */
  decide(decide: Decide): Decide;
  /** A span for each round trip, below that of its decision. */
  cache(cache: CounterCache, traced: TracedCache): CounterCache;
  /** Exports what is left, for at most 5 seconds. */
  close(): Promise<void>;
}

/** Longest time that the last spans get to be exported. */
const FLUSH_MS = 5_000;

/** Starts tracing; this module and its packages are to be loaded only by who does. */
export async function openTracing(options: TracingOptions): Promise<Tracing> {
  const { otlp, protocol, logger, clock, random, samplingRate, version } = options;
  // Before anything else, because the exporters tell what they cannot use while they are made.
  diag.setLogger(createSdkLog(options), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const exporter = await createSpanExporter({ protocol, otlp, logger }).catch((error: unknown) => {
    diag.disable();
    throw error;
  });
  // At most 2,048 spans wait, and further ones are dropped, unless OTEL_BSP_MAX_QUEUE_SIZE says otherwise.
  const spans = new BatchSpanProcessor(exporter);
  const tracer = new CallTracer({
    resource: resourceOf(options),
    scope: { name: "weir", version },
    onEnd: (span) => spans.onEnd(span),
    ...{ samplingRate, random, clock },
  });
  return {
    grpcService: (service) => traceGrpcService(service, tracer),
    route: (routeFor, decide) => traceRoute(routeFor, decide, tracer),
    decide: (decide) => traceDecide(decide, tracer),
    cache: (cache, traced) => traceCache(cache, tracer, traced),
    async close() {
      let isFlushed = false;
      const flushed = spans.shutdown().then(() => void (isFlushed = true)).catch((error: unknown) => {
        isFlushed = true;
        logger.warning("Cannot export the last spans", { error });
      });
      await settledWithin(flushed, FLUSH_MS, clock);
      if (!isFlushed) logger.warning(`Cannot export the last spans: not done after ${FLUSH_MS} ms`);
      diag.disable();
    },
  };
}

/** Settings win over `OTEL_RESOURCE_ATTRIBUTES`, which may add any other attribute. */
function resourceOf(options: TracingOptions): Resource {
  const { serviceName, serviceNamespace, serviceInstanceId, version } = options;
  const own = resourceFromAttributes({
    "service.name": serviceName,
    ...(serviceNamespace === "" ? {} : { "service.namespace": serviceNamespace }),
    "service.instance.id": serviceInstanceId ?? crypto.randomUUID(),
    "service.version": version,
  });
  return detectResources({ detectors: [envDetector] }).merge(own);
}
