/** Status codes of gRPC that Weir answers with. */
export const GRPC_CODES = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;

/** The name of a status code. */
export type GrpcCode = keyof typeof GRPC_CODES;

/** A refusal that the caller is to see: an engine answers with its code and message. */
export class GrpcError extends Error {
  override readonly name = "GrpcError";
  readonly code: GrpcCode;

  constructor(code: GrpcCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** What a handler may know of its call. */
export interface CallContext {
  /** All headers, where the engine has them at hand; the list may be shared by calls with the same headers. */
  readonly fields?: readonly (readonly [name: string, value: string])[] | undefined;
  /** Request metadata: the value of a header, by its name in lower case. */
  header(name: string): string | undefined;
  /** Nobody waits for an answer any more: the call was cancelled, is past its deadline, or is answered. */
  readonly gone: boolean;
}

/** What becomes of the calls of one method. Neither function throws or waits. */
export interface CallFigures {
  /** The request of a call is there, and its handler is about to be asked. */
  started(): void;
  /** The call that started so many milliseconds ago is over, by an answer, a refusal or its caller's leaving. */
  ended(ms: number): void;
}

/** One message in, one message out. `handle` answers at once or later; what it throws becomes the status. */
export interface UnaryMethod {
  readonly kind: "unary";
  readonly name: string;
  /** Told of each call by the engine; absent where nobody counts. */
  readonly figures?: CallFigures | undefined;
  handle(request: Uint8Array, call: CallContext): Uint8Array | Promise<Uint8Array>;
}

/** One message in, any number out. */
export interface ServerStreamingMethod {
  readonly kind: "server_streaming";
  readonly name: string;
  /** `send` queues one message. The answer is called once, when the call ends for whatever reason. */
  open(request: Uint8Array, send: (message: Uint8Array) => void, call: CallContext): () => void;
}

/** Messages in both directions, each answered in its turn. */
export interface BidiMethod {
  readonly kind: "bidi";
  readonly name: string;
  /** Called for each message; the answer, if any, goes back. */
  handle(message: Uint8Array, call: CallContext): Uint8Array | undefined;
}

/** A method of a service, on bytes: messages come without the gRPC frame and uncompressed. */
export type GrpcMethod = UnaryMethod | ServerStreamingMethod | BidiMethod;

/** A service that any engine can carry. */
export interface GrpcService {
  /** Full name, such as `envoy.service.ratelimit.v3.RateLimitService`. */
  readonly name: string;
  readonly methods: readonly GrpcMethod[];
}

/** The same service, whose unary methods tell of their calls: `figuresOf` is asked once for each method. */
export function withCallFigures(
  { name, methods }: GrpcService,
  figuresOf: (method: string) => CallFigures,
): GrpcService {
  return {
    name,
    methods: methods.map((method) =>
      method.kind === "unary" ? { ...method, figures: figuresOf(method.name) } : method
    ),
  };
}
