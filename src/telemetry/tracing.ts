import type { Clock } from "../base/clock.ts";
import type { LogFields, Logger } from "../base/log.ts";
import type { CounterCache } from "../ratelimit/decision/counter_cache.ts";
import { type TracedRoute, type TracedService, traceGrpcService, traceRoute } from "./tracing_calls.ts";
import { type Decide, traceCache, type TracedCache, traceDecide } from "./tracing_decision.ts";
import type { TracedWork } from "../base/traced_work.ts";
import type { SpanRecord } from "./tracing_span_record.ts";
import { CallTracer } from "./tracing_spans.ts";

/** Takes ended spans and exports them. */
interface SpanTarget {
  add(span: SpanRecord): void;
  /** Sends the remaining spans to the export. */
  close(): void;
}

/** Options of `beginTracing`. */
interface TracingOptions {
  /** Share of the calls that are traced where the caller has not decided, 0 to 1. */
  readonly samplingRate: number;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly spans: SpanTarget;
  /** Called with each ended span in addition to its export. */
  readonly onSpan?: ((span: SpanRecord) => void) | undefined;
}

/** Puts spans around the parts of the service and exports them. */
export interface Tracing {
  /** A span for each unary call. */
  grpcService<Service extends TracedService>(service: Service): Service;
  /** A span for each call of the route that `routeFor` returns for a decision. */
  route<Route extends TracedRoute>(routeFor: (decide: Decide) => Route, decide: Decide): Route;
  /** A span for each decision, below that of its call; pass the result to `route` and the gRPC service. */
  decide(decide: Decide): Decide;
  /** True while the current call is traced: its decision has a span, made in `decide`. */
  isTraced(): boolean;
  /** A span for each round trip, below that of its decision. */
  cache(cache: CounterCache, traced: TracedCache): CounterCache;
  /** A span for finished work of another thread. */
  work(work: TracedWork): void;
  /** The fields `trace_id` and `span_id` of log lines about a gRPC call or an HTTP request; none if it is not traced. */
  logFields(call: WeakKey): LogFields;
  /** The logger with `trace_id` in lines about a traced delivery or execution. */
  workLogger(logger: Logger): Logger;
  /** Sends the remaining spans to the export, whose end waits for them. */
  close(): Promise<void>;
}

/** Starts tracing. Load this module only where tracing is on. */
export function beginTracing(options: TracingOptions): Tracing {
  const { clock, random, samplingRate, spans, onSpan } = options;
  const onEnd = (span: SpanRecord) => {
    spans.add(span);
    onSpan?.(span);
  };
  const tracer = new CallTracer({ onEnd, samplingRate, random, clock });
  return {
    grpcService: (service) => traceGrpcService(service, tracer),
    route: (routeFor, decide) => traceRoute(routeFor, decide, tracer),
    decide: (decide) => traceDecide(decide, tracer),
    isTraced: () => tracer.current !== undefined,
    cache: (cache, traced) => traceCache(cache, tracer, traced),
    work: (work) => tracer.record(work),
    logFields: (call) => tracer.logFields(call),
    workLogger: (workLog) => tracedWorkLogger(workLog, tracer),
    close: () => Promise.resolve(spans.close()),
  };
}

/** Fields whose values are the ids of traced work. */
const WORK_FIELDS = ["delivery", "execution"];

function tracedWorkLogger(logger: Logger, tracer: CallTracer): Logger {
  const traced = (fields: LogFields = {}) => {
    const [id] = WORK_FIELDS.map((name) => fields[name]).filter((value) => typeof value === "string");
    const traceId = id === undefined ? undefined : tracer.traceOfWork(id);
    return traceId === undefined ? fields : { ...fields, trace_id: traceId };
  };
  return {
    debug: (message, fields) => logger.debug(message, traced(fields)),
    info: (message, fields, shownUpTo) => logger.info(message, traced(fields), shownUpTo),
    warning: (message, fields) => logger.warning(message, traced(fields)),
    error: (message, fields) => logger.error(message, traced(fields)),
  };
}
