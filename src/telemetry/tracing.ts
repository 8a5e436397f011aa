import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { CounterCache } from "../ratelimit/counter_cache.ts";
import { type TracedRoute, type TracedService, traceGrpcService, traceRoute } from "./tracing_calls.ts";
import { type Decide, traceCache, type TracedCache, traceDecide } from "./tracing_decision.ts";
import { checkOtlp } from "./tracing_exporter.ts";
import type { SpanRecord } from "./tracing_span_record.ts";
import { CallTracer } from "./tracing_spans.ts";
import { recordWork, type TracedWork } from "./tracing_work.ts";
import { type ExporterLine, WorkerExport } from "./tracing_worker_export.ts";

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
  /** Starts the worker that exports; our own when absent. */
  readonly startWorker?: () => ExporterLine;
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
  /** A span for work of another thread that is over. */
  work(work: TracedWork): void;
  /** Starts what exports, unless the first span did. */
  start(): void;
  /** Exports what is left, for at most 5 seconds. */
  close(): Promise<void>;
}

/**
 * Begins to trace, or throws when that cannot be done as the settings say. What exports is started by `start` or the first span.
 * This module is to be loaded only by who traces.
 */
export function beginTracing(options: TracingOptions): Tracing {
  const { otlp, protocol, logger, clock, random, samplingRate, version, startWorker } = options;
  checkOtlp({ protocol, otlp });
  const attributes = attributesOf(options);
  const exporter = new WorkerExport({
    ...{ protocol, otlp, attributes, version, logger, clock, startWorker },
  });
  const onEnd = (span: SpanRecord) => exporter.add(span);
  const tracer = new CallTracer({ onEnd, samplingRate, random, clock });
  return {
    grpcService: (service) => traceGrpcService(service, tracer),
    route: (routeFor, decide) => traceRoute(routeFor, decide, tracer),
    decide: (decide) => traceDecide(decide, tracer),
    cache: (cache, traced) => traceCache(cache, tracer, traced),
    work: (work) => recordWork(work, { samplingRate, onEnd }),
    start: () => exporter.start(),
    close: () => exporter.close(),
  };
}

/** What all spans say of the instance, whatever worker exports them. */
function attributesOf(options: TracingOptions): Record<string, string> {
  const { serviceName, serviceNamespace, serviceInstanceId, version } = options;
  return {
    "service.name": serviceName,
    ...(serviceNamespace === "" ? {} : { "service.namespace": serviceNamespace }),
    "service.instance.id": serviceInstanceId ?? crypto.randomUUID(),
    "service.version": version,
  };
}
