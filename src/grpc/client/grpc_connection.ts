import type { Duplex } from "node:stream";
import { type Clock, systemClock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import { GrpcError } from "../grpc_service.ts";
import { type CallStatus, errorOf, localStatus } from "./call_status.ts";
import type { CallOptions, CallTaker, ClientCall } from "./client_call.ts";
import { ClientCarrier, type Keepalive } from "./client_carrier.ts";
import type { ClientCalls } from "./client_calls.ts";
import { authorityOf, dialGrpc, type GrpcTarget } from "./dial.ts";
import { framed } from "../native/message_reader.ts";
import { GrpcStream } from "./grpc_stream.ts";
import { checkMetadata, type RequestHead, requestHead } from "./request_head.ts";

/** Options of `GrpcConnection.open`. */
export interface OpenOptions {
  /** Ends the attempt; an open connection is not affected. */
  readonly signal?: AbortSignal | undefined;
  /** Timeout for TCP, TLS and the greeting of HTTP/2; 20 s when absent. */
  readonly connectTimeoutMs?: number | undefined;
  /** PINGs to a silent server; none when absent. */
  readonly keepalive?: Keepalive | undefined;
  /** Called after received bytes were handled, for a caller that begins calls by `calls`. */
  readonly onRead?: ((now: number) => void) | undefined;
  readonly clock?: Clock | undefined;
}

interface ConnectOptions {
  readonly clock: Clock;
  readonly keepalive?: Keepalive | undefined;
  readonly onRead?: ((now: number) => void) | undefined;
  /** The server has sent its greeting. */
  readonly onReady: () => void;
}

/** Options of one call. */
export interface GrpcCallOptions {
  /** Names in lower case; values in visible ASCII, or in base64 for names that end with `-bin`. */
  readonly metadata?: Iterable<readonly [name: string, value: string]> | undefined;
  /** Timeout of the call; none when absent. */
  readonly timeoutMs?: number | undefined;
  /** Cancels the call. */
  readonly signal?: AbortSignal | undefined;
  /** Maximum size of a message of the answer; 4 MiB when absent. */
  readonly maxMessageBytes?: number | undefined;
  /** Compression of the one message of a unary call, such as `gzip`; none when absent. */
  readonly encoding?: string | undefined;
}

const CONNECT_TIMEOUT_MS = 20_000;
/** Different methods whose headers are kept. */
const MAX_HEADS = 100;
const CANCELLED = localStatus("CANCELLED", "the call was cancelled");
const CLOSED = localStatus("UNAVAILABLE", "the connection is closed");

/**
 * A connection to one gRPC server. It is not opened again when it is lost: its user opens another one. Calls share it;
 * those beyond the number that the server allows wait for their turn. All failures are `GrpcError`s.
 */
export class GrpcConnection {
  readonly #carrier: ClientCarrier;
  readonly #target: GrpcTarget;
  readonly #clock: Clock;
  readonly #heads = new Map<string, RequestHead>();
  readonly #closed = Promise.withResolvers<GrpcError | undefined>();
  #isClosedHere = false;

  /** Use `open` or `over`. */
  private constructor(socket: Duplex, target: GrpcTarget, options: ConnectOptions) {
    const { clock, keepalive, onRead, onReady } = options;
    this.#target = target;
    this.#clock = clock;
    this.#carrier = new ClientCarrier(socket, {
      clock,
      keepalive,
      onReady,
      onRead,
      onClosed: (status) => this.#closed.resolve(this.#isClosedHere ? undefined : errorOf(status)),
    });
  }

  /**
   * Connects and waits for the greeting of the server. Rejects with UNAVAILABLE and the reason as its message; with
   * CANCELLED when the signal is aborted.
   */
  static open(target: GrpcTarget, options: OpenOptions = {}): Promise<GrpcConnection> {
    return attempt(options, async (signal, clock) => {
      const socket = await dialGrpc(target, { signal, clock });
      return await GrpcConnection.#greeted(socket, target, { ...options, clock, signal });
    });
  }

  /** The same on a socket that is connected, to a server that expects what the target says. */
  static over(socket: Duplex, target: GrpcTarget, options: OpenOptions = {}): Promise<GrpcConnection> {
    return attempt(
      options,
      (signal, clock) => GrpcConnection.#greeted(socket, target, { ...options, clock, signal }),
    );
  }

  static async #greeted(
    socket: Duplex,
    target: GrpcTarget,
    options: Omit<ConnectOptions, "onReady"> & { readonly signal: AbortSignal },
  ): Promise<GrpcConnection> {
    const { signal } = options;
    const ready = Promise.withResolvers<void>();
    const connection = new GrpcConnection(socket, target, { ...options, onReady: ready.resolve });
    const onAbort = () => connection.#carrier.destroy(CLOSED);
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    void connection.closed.then((error) => ready.reject(error ?? errorOf(CLOSED)));
    try {
      await ready.promise;
      return connection;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Settles when the connection is closed and every call has ended: with the reason, unless `close` was called. */
  get closed(): Promise<GrpcError | undefined> {
    return this.#closed.promise;
  }

  /** True if calls can begin: neither side has ended the connection. */
  get isOpen(): boolean {
    return this.calls.end === undefined;
  }

  /** Calls a method with one message, such as `/package.Service/Method`, and returns the one message of the answer. */
  unary(path: string, message: Uint8Array, options: GrpcCallOptions = {}): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const taker = new UnaryTaker(resolve, reject, () => this.calls.cancel(call, TWO_MESSAGES));
      const call = this.#begin(path, taker, options);
      this.calls.send(call, framed(message, options.encoding !== undefined), true);
    });
  }

  /** Calls a method with any number of messages in each direction. */
  stream(path: string, options: Omit<GrpcCallOptions, "encoding"> = {}): GrpcStream {
    return new GrpcStream().start(this.calls, (taker) => this.#begin(path, taker, options));
  }

  /** Closes the connection; calls that run end with UNAVAILABLE. Settles when it is closed. */
  async close(): Promise<void> {
    this.#isClosedHere = true;
    this.#carrier.connection.close(CLOSED);
    await this.closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * The low level, for many calls that are alike and as few costs for each as possible: `beginWhole` begins a call whose
   * DATA frame is encoded, and hands its answer to an object that may be used again. `flush` writes what was begun
   * outside of `onRead`.
   */
  get calls(): ClientCalls {
    return this.#carrier.connection.calls;
  }

  /** Writes what is waiting, now instead of at the end of this turn. */
  flush(): void {
    this.#carrier.flush();
  }

  /** The headers of the calls of a method. */
  head(path: string): RequestHead {
    const known = this.#heads.get(path);
    if (known !== undefined) return known;
    const scheme = this.#target.tls === undefined ? "http" : "https";
    const head = requestHead({ path, scheme, authority: authorityOf(this.#target) });
    if (this.#heads.size < MAX_HEADS) this.#heads.set(path, head);
    return head;
  }

  #begin(path: string, taker: CallTaker, options: GrpcCallOptions): ClientCall {
    const { metadata = [], timeoutMs, signal, maxMessageBytes, encoding } = options;
    const given = [...metadata];
    checkMetadata(given);
    const fields = encoding === undefined ? given : [["grpc-encoding", encoding] as const, ...given];
    const deadlineAt = timeoutMs === undefined ? undefined : this.#clock.elapsed() + timeoutMs;
    const onAbort = () => this.calls.cancel(call, CANCELLED);
    const onOver = signal && (() => signal.removeEventListener("abort", onAbort));
    const own: CallOptions = { metadata: fields, deadlineAt, maxMessageBytes, onOver };
    const call: ClientCall = this.calls.begin(this.head(path), taker, own);
    if (call.isOver) return call;
    if (deadlineAt !== undefined) this.#carrier.expireAt(deadlineAt);
    signal?.addEventListener("abort", onAbort);
    if (signal?.aborted === true) onAbort();
    return call;
  }
}

/** Runs an attempt to connect until its timeout or signal; rejects with a `GrpcError`. */
async function attempt<T>(
  { signal, clock = systemClock, connectTimeoutMs = CONNECT_TIMEOUT_MS }: OpenOptions,
  connect: (signal: AbortSignal, clock: Clock) => Promise<T>,
): Promise<T> {
  const ended = new AbortController();
  const onAbort = () => ended.abort(errorOf(CANCELLED));
  const cancelTimer = clock.after(connectTimeoutMs, () => {
    ended.abort(new GrpcError("UNAVAILABLE", `no connection within ${connectTimeoutMs} ms`));
  });
  signal?.addEventListener("abort", onAbort);
  if (signal?.aborted === true) onAbort();
  try {
    return await connect(ended.signal, clock);
  } catch (error) {
    const reason: unknown = ended.signal.aborted ? ended.signal.reason : error;
    if (reason instanceof GrpcError) throw reason;
    throw new GrpcError("UNAVAILABLE", errorText(reason), { cause: reason });
  } finally {
    cancelTimer();
    signal?.removeEventListener("abort", onAbort);
  }
}

const NO_MESSAGE = localStatus("UNIMPLEMENTED", "the server answered without a message");
const TWO_MESSAGES = localStatus("UNIMPLEMENTED", "the server answered with more than one message");

/** Takes the answer of a unary call. */
class UnaryTaker implements CallTaker {
  readonly #resolve: (message: Uint8Array) => void;
  readonly #reject: (error: GrpcError) => void;
  readonly #refuse: () => void;
  #message: Uint8Array | undefined;

  constructor(
    resolve: (message: Uint8Array) => void,
    reject: (error: GrpcError) => void,
    refuse: () => void,
  ) {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#refuse = refuse;
  }

  message(bytes: Uint8Array, start: number, end: number): void {
    if (this.#message === undefined) this.#message = bytes.slice(start, end);
    else this.#refuse();
  }

  ended(status: CallStatus): void {
    if (status.code !== "OK") this.#reject(errorOf(status));
    else if (this.#message === undefined) this.#reject(errorOf(NO_MESSAGE));
    else this.#resolve(this.#message);
  }
}
