import type { Decide } from "./tracing_decision.ts";
import type { SpanRecord } from "./tracing_span_record.ts";
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

const STATUS_CODE = "rpc.response.status_code";
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
  return {
    ...method,
    handle(request, call) {
      const span = tracer.startServer(path, call, attributes);
      if (span === undefined) return method.handle(request, call);
      return tracer.runToEnd(span, () => coded(span, call, () => method.handle(request, call)), { isFault });
    },
  };
}

/** Writes the name of the status down that a call ends with. */
function coded(
  span: SpanRecord,
  call: TracedCall,
  handle: () => Uint8Array | Promise<Uint8Array>,
): Uint8Array | Promise<Uint8Array> {
  const ok = (answer: Uint8Array): Uint8Array => {
    // Who no longer waits has been told something else, which is not known here.
    if (!call.gone) span.set(STATUS_CODE, "OK");
    return answer;
  };
  const refused = (error: unknown): never => {
    span.set(STATUS_CODE, codeOf(error));
    throw error;
  };
  try {
    const answer = handle();
    return answer instanceof Promise ? answer.then(ok, refused) : ok(answer);
  } catch (error) {
    return refused(error);
  }
}

/** The code that an engine answers with: the error's own, else that of a fault. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "INTERNAL";
}

/** A request that its caller has to change is no error of the server, whose span keeps its status unset. */
function isFault(error: unknown): boolean {
  return SERVER_ERRORS.has(codeOf(error));
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
  const attributes = { "http.route": plain.path };
  return {
    ...plain,
    handle(call: { readonly request: Request }): Response | Promise<Response> {
      const { request } = call;
      const header = (name: string) => request.headers.get(name) ?? undefined;
      const span = tracer.startServer(`${request.method} ${plain.path}`, { header }, attributes);
      if (span === undefined) return plain.handle(call);
      span.set("http.request.method", request.method);
      const own = routeFor((asked, caller) => tracer.run(span, () => decide(asked, caller)));
      return tracer.runToEnd(span, () => own.handle(call), {
        onAnswer: ({ status }) => answered(span, status),
      });
    },
  };
}

function answered(span: SpanRecord, status: number): void {
  span.set("http.response.status_code", status);
  if (status >= LOWEST_SERVER_ERROR) span.fail();
}
