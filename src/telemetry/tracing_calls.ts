import type { Decide } from "./tracing_decision.ts";
import { SPAN_KINDS, type SpanRecord, type SpanShape } from "./tracing_span_record.ts";
import type { CallTracer } from "./tracing_spans.ts";
import type { HeaderSource } from "../base/trace_context.ts";

/** A gRPC service whose unary methods are traced. */
export interface TracedService {
  readonly name: string;
  readonly methods: readonly TracedMethod[];
}

/** A method of such a service. */
type TracedMethod = TracedUnaryMethod | {
  readonly kind: "server_streaming" | "bidi";
  readonly name: string;
};

/** A call as tracing reads it. */
interface TracedCall extends HeaderSource {
  /** It ended without our answer: by its deadline or its caller. */
  readonly cancelled: boolean;
}

/** A message that comes later: a promise, or an object that calls one of two functions once. */
interface PendingMessage {
  then(done: (message: Uint8Array) => void, failed: (error: unknown) => void): unknown;
}

/** The result of `direct`. */
interface TracedDirectResponse {
  readonly maxBytes: number;
  write(into: Uint8Array, at: number): number;
}

type Fields = readonly (readonly [name: string, value: string])[];

/** A traced method. */
interface TracedUnaryMethod {
  readonly kind: "unary";
  readonly name: string;
  handle(request: Uint8Array, call: TracedCall): Uint8Array | PendingMessage;
  /** Answers a message between two positions without effect if it returns nothing; has no span. */
  readonly direct?:
    | ((bytes: Uint8Array, start: number, end: number, fields: Fields) => TracedDirectResponse | undefined)
    | undefined;
}

/** A traced HTTP route. */
export interface TracedRoute {
  readonly path: string;
  readonly methods: readonly string[];
  handle(call: { readonly request: Request }): Response | Promise<Response>;
}

const RPC_STATUS_CODE = "rpc.response.status_code";
const HTTP_STATUS_CODE = "http.response.status_code";
const LOWEST_SERVER_ERROR = 500;
/** Codes of failures of the server; all others are its caller's. */
const SERVER_ERRORS: ReadonlySet<string> = new Set([
  "UNKNOWN",
  "DEADLINE_EXCEEDED",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
]);

/** The service with a span for each call of a unary method; streams have none, because they may last for days. */
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
    direct: method.direct === undefined ? undefined : (bytes, start, end, fields) => {
      if (!tracer.skipsNext(fields)) return undefined;
      const response = method.direct?.(bytes, start, end, fields);
      if (response !== undefined) tracer.skip();
      return response;
    },
    handle(request, call) {
      const span = tracer.startServer(shape, call);
      if (span === undefined) return method.handle(request, call);
      tracer.noteCall(call, span);
      return tracer.runToEnd(span, () => asPromise(method.handle(request, call)), {
        onAnswer: () => {
          // Otherwise the caller received another code, which is unknown here.
          if (!call.cancelled) span.set(RPC_STATUS_CODE, "OK");
        },
        onError: (error) => noteError(span, error),
      });
    },
  };
}

function asPromise(message: Uint8Array | PendingMessage): Uint8Array | Promise<Uint8Array> {
  if (message instanceof Uint8Array || message instanceof Promise) return message;
  return new Promise((resolve, reject) => void message.then(resolve, reject));
}

/** Sets the code that an engine answers an error with; returns whether it is the server's fault. */
function noteError(span: SpanRecord, error: unknown): boolean {
  const own = error instanceof Error && "code" in error ? error.code : undefined;
  const code = typeof own === "string" ? own : "INTERNAL";
  span.set(RPC_STATUS_CODE, code);
  return SERVER_ERRORS.has(code);
}

/**
 * The route that `routeFor` returns for a decision, with a span for each call. The body is awaited before the
 * decision, so a traced call gets its own route, whose decision knows the span.
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
      tracer.noteCall(request, span);
      const own = routeFor((asked, caller) => tracer.run(span, () => decide(asked, caller)));
      return tracer.runToEnd(span, () => own.handle(call), {
        onAnswer: ({ status }) => {
          span.set(HTTP_STATUS_CODE, status);
          if (status >= LOWEST_SERVER_ERROR) span.fail();
        },
      });
    },
  };
}
