import { GrpcError, type UnaryMethod } from "../grpc_service.ts";
import { type ErrorCode, StreamError } from "./frames.ts";
import { plainHeaders, trailers, trailersOnly } from "./header_blocks.ts";
import { FRAME_UNIT_BITS, LIMITS } from "./limits.ts";
import { MESSAGE_PREFIX_BYTES } from "./message_reader.ts";
import type { RateGuard } from "./rate_guard.ts";
import type { HeadRefusal } from "./request_head.ts";
import type { Sender } from "./sender.ts";
import type { ServerStream } from "./server_stream.ts";

/** What a runner needs of its connection. */
export interface CallRunnerOptions {
  /** There is output that no frame of the peer brought. */
  readonly onOutput: () => void;
  /** A handler threw what is no `GrpcError`. */
  readonly onFault: (method: string, error: unknown) => void;
  /** A call that has a deadline waits for its answer. */
  readonly onDeadline: () => void;
  /** Bounds the frames of the peer; requests earn some. */
  readonly budget: Pick<RateGuard, "earn">;
  /** The stream is to be reset. */
  readonly reset: (stream: ServerStream, code: ErrorCode) => void;
}

const NOT_GRPC = new TextEncoder().encode("This port takes gRPC: POST with content-type application/grpc\n");
const LIST_TOO_LARGE = new TextEncoder().encode("The header list is too large\n");
const NO_BODY = new Uint8Array(0);

/** Runs the calls of one connection: puts their messages together, asks the methods, writes the answers. */
export class CallRunner {
  readonly #sender: Sender;
  readonly #options: CallRunnerOptions;
  #held = 0;

  constructor(sender: Sender, options: CallRunnerOptions) {
    this.#sender = sender;
    this.#options = options;
  }

  /** Takes a piece of a request that came at `now`; `ended` says that it is the last. */
  data(stream: ServerStream, body: Uint8Array, ended: boolean, now: number): void {
    stream.received += body.length;
    stream.remoteEnded = ended;
    if (ended) stream.requestedAt = now;
    checkLength(stream, ended);
    if (stream.answered) return;
    const { method } = stream.head;
    if (method === undefined) {
      // A gRPC client may keep its side open until it is answered; what others send is awaited and checked.
      if (ended || isOfGrpc(stream.head.refusal)) this.#refuse(stream);
      return;
    }
    if (
      method.kind === "unary" && ended && isOneMessage(body) && stream.messages === 0 && stream.held === 0
    ) {
      this.#unary(stream, method, body.subarray(MESSAGE_PREFIX_BYTES));
      return;
    }
    try {
      this.#messages(stream, body, ended);
      if (ended && !stream.answered) this.#onEnd(stream);
    } catch (error) {
      this.#fail(stream, error);
    }
  }

  /** Ends what the server feeds, because it is stopping. */
  endStreams(streams: Iterable<ServerStream>): void {
    for (const stream of [...streams]) {
      if (stream.head.method?.kind === "unary" || stream.answered) continue;
      this.#fail(stream, new GrpcError("UNAVAILABLE", "the server is stopping"));
    }
  }

  /** The stream is gone: what was kept of its messages counts no more. */
  forget(stream: ServerStream): void {
    this.#held -= stream.heldCounted;
    stream.heldCounted = 0;
  }

  /** The time that the caller gave is over. */
  exceedDeadline(stream: ServerStream): void {
    this.#fail(stream, new GrpcError("DEADLINE_EXCEEDED", "Deadline exceeded"));
    this.#options.onOutput();
  }

  #messages(stream: ServerStream, body: Uint8Array, ended: boolean): void {
    if (body.length === 0) return;
    try {
      for (const message of stream.reader.read(body)) {
        if (stream.answered) return;
        this.#message(stream, message, ended);
      }
    } finally {
      this.#countHeld(stream);
    }
    if (this.#held > LIMITS.heldBytes) {
      throw new GrpcError("RESOURCE_EXHAUSTED", "too many messages of this connection are not whole");
    }
  }

  #countHeld(stream: ServerStream): void {
    if (stream.closed) return;
    this.#held += stream.held - stream.heldCounted;
    stream.heldCounted = stream.held;
  }

  #message(stream: ServerStream, message: Uint8Array, ended: boolean): void {
    const { method } = stream.head;
    stream.messages++;
    if (method?.kind === "bidi") {
      this.#earn(message);
      const answer = method.handle(message, stream);
      if (answer !== undefined) this.#sender.message(stream, answer);
      return;
    }
    if (stream.messages > 1) {
      throw new GrpcError("UNIMPLEMENTED", "Cannot read a request: it has more than one message");
    }
    stream.request = ended ? message : keepable(message);
  }

  #onEnd(stream: ServerStream): void {
    const { head: { method }, request } = stream;
    if (stream.unfinished > 0) {
      throw new GrpcError("INTERNAL", "Cannot read a request: it ends within a message");
    }
    if (method?.kind === "bidi") {
      this.#sender.end(stream, trailers("OK", ""));
      return;
    }
    if (request === undefined) {
      throw new GrpcError("UNIMPLEMENTED", "Cannot read a request: it has no message");
    }
    stream.request = undefined;
    this.#countHeld(stream);
    if (method?.kind === "unary") this.#unary(stream, method, request);
    if (method?.kind !== "server_streaming") return;
    this.#earn(request);
    const end = method.open(request, (message) => {
      if (stream.answered) return;
      this.#sender.message(stream, message);
      this.#options.onOutput();
    }, stream);
    // The very first message may have been one too many for the peer.
    if (stream.closed) end();
    else stream.onEnd = end;
  }

  #unary(stream: ServerStream, method: UnaryMethod, request: Uint8Array): void {
    stream.figures = method.figures;
    method.figures?.started();
    this.#earn(request);
    try {
      const answer = method.handle(request, stream);
      if (!(answer instanceof Promise)) {
        this.#sender.unary(stream, answer);
        return;
      }
      if (stream.head.timeoutMs < Infinity) this.#options.onDeadline();
      answer.then((message) => {
        if (stream.answered) return;
        this.#sender.unary(stream, message);
        this.#options.onOutput();
      }).catch((error: unknown) => {
        this.#fail(stream, error);
        this.#options.onOutput();
      });
    } catch (error) {
      this.#fail(stream, error);
    }
  }

  #earn(request: Uint8Array): void {
    this.#options.budget.earn(LIMITS.frames.perRequest + (request.length >>> FRAME_UNIT_BITS));
  }

  /** Answers a request that is no good gRPC. */
  #refuse(stream: ServerStream): void {
    const { refusal, path } = stream.head;
    if (refusal === "content_type") {
      const body = stream.header(":method") === "HEAD" ? NO_BODY : NOT_GRPC;
      this.#sender.plain(stream, plainHeaders(415, NOT_GRPC.length), body);
    } else if (refusal === "header_list") {
      this.#sender.plain(stream, plainHeaders(431, LIST_TOO_LARGE.length), LIST_TOO_LARGE);
    } else if (refusal === "timeout") {
      const text = `Invalid grpc-timeout value "${stream.header("grpc-timeout")}"`;
      this.#sender.end(stream, trailersOnly("INTERNAL", text));
    } else {
      const text = `The server does not implement the method ${path}`;
      this.#sender.end(stream, trailersOnly("UNIMPLEMENTED", text));
    }
  }

  #fail(stream: ServerStream, error: unknown): void {
    if (stream.answered) return;
    if (error instanceof StreamError) {
      this.#options.reset(stream, error.code);
      return;
    }
    if (!(error instanceof GrpcError)) this.#options.onFault(stream.head.path, error);
    const [code, text] = error instanceof GrpcError
      ? [error.code, error.message] as const
      : ["INTERNAL", "internal error"] as const;
    const block = stream.headersSent ? trailers(code, text) : trailersOnly(code, text);
    this.#sender.end(stream, block);
  }
}

/** Whether what is refused is gRPC at least, so that its refusal is a status. */
function isOfGrpc(refusal: HeadRefusal | undefined): boolean {
  return refusal !== "content_type" && refusal !== "header_list";
}

/** Whether the octets are one message, whole and not compressed: the shape of nearly every request. */
function isOneMessage(body: Uint8Array): boolean {
  const length = body.length - MESSAGE_PREFIX_BYTES;
  return length >= 0 && body[0] === 0 && body[1] === 0 &&
    ((body[2] ?? 0) << 16 | (body[3] ?? 0) << 8 | (body[4] ?? 0)) === length;
}

/** A message that is to outlive its frame: copied, unless it is most of the octets that it would keep. */
function keepable(message: Uint8Array): Uint8Array {
  return message.length * 2 >= message.buffer.byteLength ? message : message.slice();
}

function checkLength(stream: ServerStream, ended: boolean): void {
  const { contentLength } = stream.head;
  if (contentLength === undefined) return;
  if (stream.received > contentLength || (ended && stream.received !== contentLength)) {
    throw new StreamError("PROTOCOL_ERROR", stream.id, "content-length is not the length of the content");
  }
}
