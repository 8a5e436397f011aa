import { emptyResource } from "@opentelemetry/resources";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { systemClock } from "../../src/base/clock.ts";
import type { CallContext, GrpcService, UnaryMethod } from "../../src/grpc/grpc_service.ts";
import { createRateLimitGrpcService } from "../../src/grpc/rate_limit_service.ts";
import { rateLimitRoute } from "../../src/http/routes/rate_limit_route.ts";
import { createRouter, type HttpHandler } from "../../src/http/server/router.ts";
import type { CounterCache } from "../../src/ratelimit/decision/counter_cache.ts";
import type { Policy } from "../../src/ratelimit/decision/policy.ts";
import { traceGrpcService, traceRoute } from "../../src/telemetry/tracing_calls.ts";
import { readSpans } from "../../src/telemetry/tracing_pack_reader.ts";
import { type SpanPack, SpanPacker } from "../../src/telemetry/tracing_span_pack.ts";
import type { SpanRecord } from "../../src/telemetry/tracing_span_record.ts";
import { traceCache, type TracedCache, traceDecide } from "../../src/telemetry/tracing_decision.ts";
import { CallTracer } from "../../src/telemetry/tracing_spans.ts";
import { encodeRateLimitRequest } from "../../src/wire/rls.ts";
import { RecordedLogger } from "./recorded_logger.ts";
import { FailingCache } from "./failing_cache.ts";
import { ServiceFixture } from "./service_fixture.ts";

/** Options of a `TracingBed`. */
interface TracingBedOptions {
  readonly samplingRate?: number;
  /** The random number; 0.5 when absent. */
  readonly random?: number;
  /** A scripted one that answers later when absent. */
  readonly cache?: CounterCache;
  readonly traced?: TracedCache;
  readonly policy?: Partial<Policy>;
}

/** A span as tests compare it. */
interface SeenSpan {
  readonly name: string;
  /** Name of the span above it; the id of one that is not ours; absent for none. */
  readonly above: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Text of the error; absent for none. */
  readonly error?: string;
}

const RULES = `
domain: d
descriptors:
- key: k
  rate_limit: {unit: minute, requests_per_unit: 2}
- key: fast
  rate_limit: {unit: second, requests_per_unit: 2}
`;
const ERROR = 2;
const RESOURCE = emptyResource();

/** A decision service with every part traced, whose spans are kept. */
export class TracingBed implements AsyncDisposable {
  /** The spans so far, in the order of their ends, as the exporters get them. */
  readonly finished: ReadableSpan[] = [];
  readonly grpc: GrpcService;
  readonly http: HttpHandler;
  readonly log = new RecordedLogger();
  readonly #fixture: ServiceFixture;

  constructor(options: TracingBedOptions = {}) {
    const tracer = new CallTracer({
      onEnd: (span) => void this.finished.push(exported(span)),
      clock: systemClock,
      samplingRate: options.samplingRate ?? 1,
      random: () => options.random ?? 0.5,
    });
    const cache = options.cache ?? new FailingCache([]);
    this.#fixture = new ServiceFixture({
      files: { "d.yaml": RULES },
      cache: traceCache(cache, tracer, options.traced ?? { backend: "kv", perSecond: false }),
      policy: options.policy ?? {},
    });
    const { service, clock } = this.#fixture;
    const decide = traceDecide((request, caller) => service.shouldRateLimit(request, caller), tracer);
    this.grpc = traceGrpcService(createRateLimitGrpcService(decide), tracer);
    const route = traceRoute((own) => rateLimitRoute({ decide: own, clock }), decide, tracer);
    this.http = createRouter([route], { logger: this.log, clock });
  }

  /** A call by gRPC with a descriptor for each key; answers the error's code where it is refused. */
  async ask(keys: readonly string[], headers: Readonly<Record<string, string>> = {}): Promise<string> {
    const call: CallContext = { header: (name) => headers[name], cancelled: false };
    const descriptors = keys.map((key) => ({ entries: [{ key, value: "v" }] }));
    const request = encodeRateLimitRequest({ domain: "d", hitsAddend: 0, descriptors });
    try {
      await unaryOf(this.grpc).handle(request, call);
      return "OK";
    } catch (error) {
      return error instanceof Error && "code" in error ? String(error.code) : "?";
    }
  }

  /** A call by HTTP; answers its status. */
  async post(body: string, headers: Readonly<Record<string, string>> = {}): Promise<number> {
    const request = new Request("http://127.0.0.1/json", { method: "POST", body, headers });
    const response = await this.http(request, new AbortController().signal, "127.0.0.1");
    await response.body?.cancel();
    return response.status;
  }

  /** The same, as tests compare them. */
  get spans(): SeenSpan[] {
    const names = new Map(this.finished.map((span) => [span.spanContext().spanId, span.name]));
    return this.finished.map((span) => seen(span, names));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#fixture[Symbol.asyncDispose]();
  }
}

/** A span that is over as the exporters get it, after its way to their thread. */
export function exported(record: SpanRecord): ReadableSpan {
  const [span] = exportedAll(packOf(record));
  if (span === undefined) throw new Error(`Cannot read the span ${record.start.shape.name}: nothing came`);
  return span;
}

/** The spans of a pack as the exporters get them. */
export function exportedAll(pack: SpanPack): ReadableSpan[] {
  return readSpans(pack, { resource: RESOURCE, instrumentationScope: { name: "test" } });
}

/** A pack with this one span, after its way to another thread. */
function packOf(record: SpanRecord): SpanPack {
  const packer = new SpanPacker();
  packer.add(record);
  return structuredClone(packer.take());
}

/** The one method of a service. */
export function unaryOf({ methods }: GrpcService): UnaryMethod {
  const [method] = methods;
  if (method?.kind === "unary") return method;
  throw new Error("Cannot call the service: it has no unary method");
}

function seen(span: ReadableSpan, names: ReadonlyMap<string, string>): SeenSpan {
  const above = span.parentSpanContext?.spanId;
  const { status, name, attributes } = span;
  return {
    name,
    above: above === undefined ? undefined : names.get(above) ?? above,
    attributes: { ...attributes },
    ...(status.code === ERROR ? { error: status.message ?? "" } : {}),
  };
}
