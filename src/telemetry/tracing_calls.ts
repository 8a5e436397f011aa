import type { Decide } from "./tracing_decision.ts";
import { SPAN_KINDS, type SpanRecord, type SpanShape } from "./tracing_span_record.ts";
import type { CallTracer } from "./tracing_spans.ts";
import type { HeaderSource } from "./trace_context.ts";

/** What is traced of a gRPC service: its methods with one message in and one out. */
export interface TracedService {
  readonly name: string;
  readonly methods: readonly TracedMethod[];
}

/** A method of such a service. */
export type TracedMethod = TracedUnaryMethod | {
  readonly kind: "server_streaming" | "bidi";
  readonly name: string;
};

/** What is asked of a call. */
export interface TracedCall extends HeaderSource {
  /** It has ended without our answer: by its deadline or its caller. */
  readonly gone: boolean;
}

/** A method that is traced. */
export interface TracedUnaryMethod {
  readonly kind: "unary";
  readonly name: string;
  handle(request: Uint8Array, call: TracedCall): Uint8Array | Promise<Uint8Array>;
}

/** What is traced of a route of HTTP. */
export interface TracedRoute {
  readonly path: string;
  readonly methods: readonly string[];
  handle(call: { readonly request: Request }): Response | Promise<Response>;
}

const RPC_STATUS_CODE = "rpc.response.status_code";
const HTTP_STATUS_CODE = "http.response.status_code";
const LOWEST_SERVER_ERROR = 500;
/** Codes that say that the server failed; with all others it did what it had to. */
const SERVER_ERRORS: ReadonlySet<string> = new Set([
  "UNKNOWN",
  "DEADLINE_EXCEEDED",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
]);

/** The same service with a span for each call of a unary method. Streams live as long as they like: no span. */
export function traceGrpcService<Service extends TracedService>(
  service: Service,
  tracer: CallTracer,
): Service {
  const methods = service.methods.map((method) =>
    method.kind === "unary" ? traceMethod(`${service.name}/${method.name}`, method, tracer) : method
  );
  return { ...service, methods };
}

function traceMethod(path: string, method: TracedUnaryMethod, tracer: CallTracer): TracedUnaryMethod {
  const attributes = { "rpc.system.name": "grpc", "rpc.method": path };
  const shape = { name: path, kind: SPAN_KINDS.server, attributes };
  return {
    ...method,
    handle(request, call) {
      const span = tracer.startServer(shape, call);
      if (span === undefined) return method.handle(request, call);
      return tracer.runToEnd(span, () => method.handle(request, call), {
        onAnswer: () => {
          // Who no longer waits has been told something else, which is not known here.
          if (!call.gone) span.set(RPC_STATUS_CODE, "OK");
        },
        onError: (error) => refused(span, error),
      });
    },
  };
}

/** Writes down what a call is refused with; answers whether the server is to blame. */
function refused(span: SpanRecord, error: unknown): boolean {
  const code = codeOf(error);
  span.set(RPC_STATUS_CODE, code);
  // A request that its caller has to change is no error of the server, whose span keeps its status unset.
  return SERVER_ERRORS.has(code);
}

/** The code that an engine answers with: the error's own, else that of a fault. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "INTERNAL";
}

/**
 * The route that `routeFor` makes of a decision, with a span for each call. A body is waited for before
 * the decision, so a traced call gets a route of its own, whose decision knows its span.
 */
export function traceRoute<Route extends TracedRoute>(
  routeFor: (decide: Decide) => Route,
  decide: Decide,
  tracer: CallTracer,
): Route {
  const plain = routeFor(decide);
  const shapeOf = (method: string): SpanShape => ({
    name: `${method} ${plain.path}`,
    kind: SPAN_KINDS.server,
    attributes: { "http.route": plain.path, "http.request.method": method },
  });
  const shapes = new Map(plain.methods.map((method) => [method, shapeOf(method)]));
  return {
    ...plain,
    handle(call: { readonly request: Request }): Response | Promise<Response> {
      const { request } = call;
      const header = (name: string) => request.headers.get(name) ?? undefined;
      const span = tracer.startServer(shapes.get(request.method) ?? shapeOf(request.method), { header });
      if (span === undefined) return plain.handle(call);
      const own = routeFor((asked, caller) => tracer.run(span, () => decide(asked, caller)));
      return tracer.runToEnd(span, () => own.handle(call), {
        onAnswer: ({ status }) => answered(span, status),
      });
    },
  };
}

function answered(span: SpanRecord, status: number): void {
  span.set(HTTP_STATUS_CODE, status);
  if (status >= LOWEST_SERVER_ERROR) span.fail();
}
