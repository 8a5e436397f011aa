import { WireError } from "../wire/wire_format.ts";

/** Status codes of gRPC. */
export const GRPC_CODES = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

/** The name of a status code. */
export type GrpcCode = keyof typeof GRPC_CODES;

/** Options of `GrpcError`. */
interface GrpcErrorOptions extends ErrorOptions {
  readonly metadata?: ReadonlyMap<string, string>;
}

/** The failure of a call: an engine answers with its code and message, and a client throws it. */
export class GrpcError extends Error {
  override readonly name = "GrpcError";
  readonly code: GrpcCode;
  /** Metadata that a server sent with it, by name; binary values are in base64, as they were sent. */
  readonly metadata: ReadonlyMap<string, string>;

  constructor(code: GrpcCode, message: string, options: GrpcErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.metadata = options.metadata ?? new Map();
  }
}

/** The call that a handler answers. */
export interface CallContext {
  /** The headers of its trace, where the engine has them as a list; calls with equal headers may share the list. */
  readonly fields?: readonly (readonly [name: string, value: string])[] | undefined;
  /** The value of a header, by its name in lower case. */
  header(name: string): string | undefined;
  /** True if the call was cancelled, is past its deadline, or is answered. */
  readonly cancelled: boolean;
}

/** Records the calls of one method. Neither function throws or waits. */
export interface CallMetrics {
  /** The request of a call is complete, and its handler is about to be called. */
  started(): void;
  /** A call that started `ms` milliseconds ago is over: answered, refused or cancelled. */
  ended(ms: number): void;
}

/** A response that comes later: a promise, or an object that calls one of two functions once. */
export interface PendingResponse {
  then(done: (message: Uint8Array) => void, failed: (error: unknown) => void): unknown;
}

/** A response that is written where it is sent from. */
export interface DirectResponse {
  readonly maxBytes: number;
  /** Writes the message and returns where it ends. */
  write(into: Uint8Array, at: number): number;
}

/** Answers a message that lies between two positions, of a call with these headers, or returns nothing. */
type DirectHandler = (
  bytes: Uint8Array,
  start: number,
  end: number,
  fields: NonNullable<CallContext["fields"]>,
) => DirectResponse | undefined;

/** One message in, one message out. What `handle` throws or rejects with becomes the status. */
export interface UnaryMethod {
  readonly kind: "unary";
  readonly name: string;
  /** Notified of each call by the engine. */
  readonly metrics?: CallMetrics | undefined;
  handle(request: Uint8Array, call: CallContext): Uint8Array | PendingResponse;
  /** Answers the message between two positions, or leaves it to `handle` without effect. */
  readonly direct?: DirectHandler | undefined;
}

/** One message in, any number out. */
export interface ServerStreamingMethod {
  readonly kind: "server_streaming";
  readonly name: string;
  /** `send` queues one message. The returned function is called once, when the call ends for whatever reason. */
  open(request: Uint8Array, send: (message: Uint8Array) => void, call: CallContext): () => void;
}

/** The peer of a call with messages in both directions. Nothing is sent to one that has gone. */
export interface BidiPeer {
  /** Queues one message. A peer that leaves more than 1 MiB unread loses the call. */
  send(message: Uint8Array): void;
  /** Bytes of messages that the peer has not accepted yet. */
  readonly unsentBytes: number;
  /**
   * Calls back once all messages so far have arrived at the other end of the connection, unless the call ends before. False
   * if the engine cannot find out, and nothing is called.
   */
  confirm(arrived: () => void): boolean;
  /** Ends the call, in good order without an error. */
  end(error?: GrpcError): void;
}

/** A call with messages in both directions. */
export interface BidiCall {
  /** Called for each message. What it throws becomes the status. */
  receive(message: Uint8Array): void;
  /** Called once when the call ends for whatever reason. */
  ended?(): void;
}

/** Messages in both directions, at any time. The call ends when the client has sent its last one. */
export interface BidiMethod {
  readonly kind: "bidi";
  readonly name: string;
  /** Maximum size of a message of the client; 4 MiB when absent. */
  readonly maxMessageBytes?: number;
  /** Called at the latest with the first message. */
  open(peer: BidiPeer, call: CallContext): BidiCall;
}

/** A method of a service, on bytes: messages without the gRPC frame, uncompressed. */
export type GrpcMethod = UnaryMethod | ServerStreamingMethod | BidiMethod;

/** A service that any engine can carry. */
export interface GrpcService {
  /** Full name, such as `envoy.service.ratelimit.v3.RateLimitService`. */
  readonly name: string;
  readonly methods: readonly GrpcMethod[];
}

/** Reads a request; invalid protobuf becomes the status INTERNAL. */
export function decodeRequest<T>(decode: (bytes: Uint8Array) => T, bytes: Uint8Array): T {
  try {
    return decode(bytes);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    throw new GrpcError("INTERNAL", error.message, { cause: error });
  }
}

/** The same service with call metrics on its unary methods; `metricsOf` is called once for each method. */
export function withCallMetrics(
  { name, methods }: GrpcService,
  metricsOf: (method: string) => CallMetrics,
): GrpcService {
  return {
    name,
    methods: methods.map((method) =>
      method.kind === "unary" ? { ...method, metrics: metricsOf(method.name) } : method
    ),
  };
}
