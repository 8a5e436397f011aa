import { Buffer } from "node:buffer";
import http2 from "node:http2";
import * as grpc from "@grpc/grpc-js";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { type GrpcEngine, type GrpcEngineOptions, listenOptions } from "./engine.ts";
import {
  type BidiCall,
  type BidiMethod,
  type BidiPeer,
  type CallContext,
  GRPC_CODES,
  GrpcError,
  type GrpcMethod,
  type GrpcService,
  type ServerStreamingMethod,
  type UnaryMethod,
} from "./grpc_service.ts";
import { filteredSocket } from "./http2_filter.ts";
import { type AcceptedSocket, listen } from "./listener.ts";
import { longHeadersLog } from "./long_headers_log.ts";

/** Maximum size of a request message. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** Bytes that may wait for a peer that does not read its stream. */
const MAX_UNREAD_BYTES = 65_536;
const MAX_UNREAD_BIDI_BYTES = 1_048_576;
/** Longest timer delay, less the jitter of the library. */
const MAX_AGE_MS = Math.floor((2 ** 31 - 1) / 1.1);

/** Serves gRPC by grpc-js on our own listener, so that ports can be shared and drained. */
export async function startGrpcJs(options: GrpcEngineOptions): Promise<GrpcEngine> {
  // Deno lacks this constant of Node, without which the library answers other protocols with 200.
  Object.assign(http2.constants, { HTTP_STATUS_UNSUPPORTED_MEDIA_TYPE: 415 });
  const server = new grpc.Server({
    "grpc.max_receive_message_length": Math.max(
      ...options.services.flatMap(({ methods }) => methods.map(maxBytesOf)),
    ),
    ...(options.maxConnectionAgeMs === 0 ? {} : ageOptions(options)),
  });
  const streams = new Set<() => void>();
  const carrier: Carrier = { logger: options.logger, clock: options.clock, streams };
  for (const service of options.services) {
    server.addService(definitionOf(service), handlersOf(service, carrier));
  }
  const injector = server.createConnectionInjector(grpc.ServerCredentials.createInsecure());
  const sockets = new Set<AcceptedSocket>();
  const onLongHeaders = longHeadersLog(options);
  const now = () => options.clock.elapsed();
  const listener = await listen(options.target, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    const { remoteAddress } = socket;
    injector.injectConnection(
      filteredSocket(socket, { onLongHeaders: (bytes) => onLongHeaders(bytes, remoteAddress), now }),
    );
  }, { ...listenOptions(options), needsNodeSockets: true });
  let closed: Promise<void> | undefined;
  const close = async (graceMs: number) => {
    await listener.close();
    for (const endStream of [...streams]) endStream();
    // A client that has sent nothing has no call to lose.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    injector.destroy();
    await socketsClosed(sockets, graceMs, options.clock, () => server.forceShutdown());
  };
  return {
    address: listener.address,
    acceptor: listener.acceptor,
    get connections() {
      return sockets.size;
    },
    close: (graceMs) => closed ??= close(graceMs),
  };
}

function maxBytesOf(method: GrpcMethod): number {
  return method.kind === "bidi" && method.maxMessageBytes !== undefined
    ? method.maxMessageBytes
    : MAX_MESSAGE_BYTES;
}

function ageOptions({ maxConnectionAgeMs, maxConnectionAgeGraceMs }: GrpcEngineOptions): grpc.ServerOptions {
  return {
    "grpc.max_connection_age_ms": Math.min(maxConnectionAgeMs, MAX_AGE_MS),
    "grpc.max_connection_age_grace_ms": Math.min(maxConnectionAgeGraceMs, MAX_AGE_MS),
  };
}

/** Shared by the handlers of one engine. */
interface Carrier {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Each ends one open stream, which could otherwise delay the stop forever. */
  readonly streams: Set<() => void>;
}

/** Waits until every socket is closed; after the grace, `force` closes the rest. */
async function socketsClosed(
  sockets: ReadonlySet<AcceptedSocket>,
  graceMs: number,
  clock: Clock,
  force: () => void,
): Promise<void> {
  const deadline = Promise.withResolvers<void>();
  const cancel = clock.after(graceMs, deadline.resolve);
  const closed = Promise.all(
    [...sockets].map((socket) =>
      new Promise<void>((resolve) => socket.destroyed ? resolve() : socket.once("close", () => resolve()))
    ),
  );
  await Promise.race([closed, deadline.promise]);
  cancel();
  force();
  for (const socket of sockets) socket.destroy();
  await closed;
}

/** The library has one limit for all methods: that of the longest messages. */
function checkLength({ length }: Uint8Array, method: GrpcMethod): void {
  const max = maxBytesOf(method);
  if (length <= max) return;
  throw new GrpcError("RESOURCE_EXHAUSTED", `Received message larger than max (${length} vs ${max})`);
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function definitionOf(service: GrpcService): grpc.ServiceDefinition {
  const methods = service.methods.map((method) => [method.name, {
    path: `/${service.name}/${method.name}`,
    requestStream: method.kind === "bidi",
    responseStream: method.kind !== "unary",
    requestSerialize: asBuffer,
    requestDeserialize: (bytes: Buffer): Uint8Array => bytes,
    responseSerialize: asBuffer,
    responseDeserialize: (bytes: Buffer): Uint8Array => bytes,
  }]);
  return Object.fromEntries(methods);
}

function handlersOf(service: GrpcService, carrier: Carrier): grpc.UntypedServiceImplementation {
  return Object.fromEntries(service.methods.map((method) => [method.name, handlerOf(method, carrier)]));
}

function handlerOf(method: GrpcMethod, carrier: Carrier): grpc.UntypedHandleCall {
  if (method.kind === "unary") return unaryHandler(method, carrier);
  if (method.kind === "server_streaming") return streamingHandler(method, carrier);
  return bidiHandler(method, carrier);
}

function unaryHandler(
  method: UnaryMethod,
  carrier: Carrier,
): grpc.handleUnaryCall<Uint8Array, Uint8Array> {
  const { metrics } = method;
  return (call, callback) => {
    try {
      checkLength(call.request, method);
    } catch (error) {
      return callback(statusOf(error, method.name, carrier));
    }
    const startedAt = metrics === undefined ? 0 : carrier.clock.elapsed();
    metrics?.started();
    const end: typeof callback = (error, bytes) => {
      metrics?.ended(carrier.clock.elapsed() - startedAt);
      callback(error, bytes);
    };
    const fail = (error: unknown) => end(statusOf(error, method.name, carrier));
    try {
      const answer = method.handle(call.request, contextOf(call, carrier));
      if (answer instanceof Uint8Array) end(null, answer);
      else answer.then((bytes) => end(null, bytes), fail);
    } catch (error) {
      fail(error);
    }
  };
}

function streamingHandler(
  method: ServerStreamingMethod,
  carrier: Carrier,
): grpc.handleServerStreamingCall<Uint8Array, Uint8Array> {
  return (call) => {
    try {
      checkLength(call.request, method);
      const send = (message: Uint8Array) => sendTo(call, message, MAX_UNREAD_BYTES);
      own(call, carrier, method.open(call.request, send, contextOf(call, carrier)));
    } catch (error) {
      call.on("error", () => {});
      call.emit("error", statusOf(error, method.name, carrier));
    }
  };
}

function bidiHandler(
  method: BidiMethod,
  carrier: Carrier,
): grpc.handleBidiStreamingCall<Uint8Array, Uint8Array> {
  return (call) => {
    let opened: BidiCall | undefined;
    let isOver = false;
    const over = own(call, carrier, () => {
      isOver = true;
      opened?.ended?.();
    });
    const end = (error?: GrpcError) => {
      if (isOver) return;
      over();
      if (error === undefined) call.end();
      else call.emit("error", statusOf(error, method.name, carrier));
    };
    const peer: BidiPeer = {
      send: (message) => {
        if (!isOver) sendTo(call, message, MAX_UNREAD_BIDI_BYTES);
      },
      get unsentBytes() {
        return call.writableLength;
      },
      // The library has no access to the connection.
      confirm: () => false,
      end,
    };
    call.on("end", () => end());
    call.on("data", (message: Uint8Array) => {
      try {
        checkLength(message, method);
        opened ??= method.open(peer, contextOf(call, carrier));
        if (!isOver) opened.receive(message);
      } catch (error) {
        over();
        call.emit("error", statusOf(error, method.name, carrier));
      }
      if (!call.writableNeedDrain) return;
      // Reads nothing more from a peer that does not read the responses.
      call.pause();
      call.once("drain", () => call.resume());
    });
  };
}

type StreamingCall =
  | grpc.ServerWritableStream<Uint8Array, Uint8Array>
  | grpc.ServerDuplexStream<Uint8Array, Uint8Array>;

/** Sends a message, unless the peer leaves too much unread. */
function sendTo(call: StreamingCall, message: Uint8Array, maxUnreadBytes: number): void {
  if (call.writableLength < maxUnreadBytes) return void call.write(message);
  const details = "the messages of this stream are not read";
  call.emit("error", { code: GRPC_CODES.RESOURCE_EXHAUSTED, details });
}

/** Calls `onEnd` once when the stream ends for any reason; the returned function does that too. */
function own(call: StreamingCall, { streams }: Carrier, onEnd: () => void): () => void {
  const end = () => {
    if (streams.delete(stop)) onEnd();
  };
  const stop = () => {
    end();
    call.emit("error", { code: GRPC_CODES.UNAVAILABLE, details: "the server is stopping" });
  };
  streams.add(stop);
  call.on("error", end);
  call.once("cancelled", end);
  call.once("close", end);
  if (call.cancelled) end();
  return end;
}

function contextOf(
  call: grpc.ServerUnaryCall<Uint8Array, Uint8Array> | StreamingCall,
  { clock }: Carrier,
): CallContext {
  return {
    header(name) {
      const [value] = call.metadata.get(name);
      return typeof value === "string" ? value : undefined;
    },
    get cancelled() {
      // The library reports a call as cancelled only when its stream is closed on both sides.
      return call.cancelled || clock.now() >= Number(call.getDeadline());
    },
  };
}

function statusOf(error: unknown, method: string, { logger }: Carrier): grpc.StatusObject {
  if (error instanceof GrpcError) {
    return { code: GRPC_CODES[error.code], details: error.message, metadata: new grpc.Metadata() };
  }
  logger.error("Cannot answer a gRPC call: unexpected error", { method, error });
  return { code: GRPC_CODES.INTERNAL, details: "internal error", metadata: new grpc.Metadata() };
}
