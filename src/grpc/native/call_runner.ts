import {
  type BidiCall,
  type BidiMethod,
  type CallMetrics,
  type GrpcCode,
  GrpcError,
  type UnaryMethod,
} from "../grpc_service.ts";
import { type ErrorCode, StreamError } from "./frames.ts";
import { plainHeaders, trailers, trailersOnly } from "./response_blocks.ts";
import { FRAME_UNIT_BITS, LIMITS } from "./limits.ts";
import { MESSAGE_PREFIX_BYTES } from "./message_reader.ts";
import type { RateGuard } from "./rate_guard.ts";
import type { HeadRefusal } from "./request_head.ts";
import type { ResponseSender } from "./response_sender.ts";
import { RequestMessages, type ServerStream } from "./server_stream.ts";

/** Reports of the calls of all connections. */
export interface CallFaults {
  /** A handler threw something other than a `GrpcError`. */
  readonly onFault: (method: string, error: unknown) => void;
  /** A call with a deadline waits for its response: `expire` has to be called in time. */
  readonly onDeadline: () => void;
}

/** Reports of the calls of one connection. */
export interface CallEvents extends CallFaults {
  /** There is output that no frame of the peer caused. */
  readonly onOutput: () => void;
  /** A call whose method has metrics is over; its request was complete at `startedAt`. */
  readonly onEnded: (metrics: CallMetrics, startedAt: number) => void;
}

/** The parts of its connection that a runner uses. */
interface CallRunnerOptions {
  readonly events: CallEvents;
  readonly sender: ResponseSender;
  /** Limits the frames of the peer; requests earn some. */
  readonly budget: Pick<RateGuard, "earn">;
  /** Limits the streams that the peer resets; calls that are over earn some. */
  readonly resets: Pick<RateGuard, "earn">;
  readonly reset: (stream: ServerStream, code: ErrorCode) => void;
}

const NOT_GRPC = new TextEncoder().encode("This port takes gRPC: POST with content-type application/grpc\n");
const LIST_TOO_LARGE = new TextEncoder().encode("The header list is too large\n");
const NO_BODY = new Uint8Array(0);

/** Runs the calls of one connection: assembles their messages, calls the methods, writes the responses. */
export class CallRunner {
  readonly #events: CallEvents;
  readonly #sender: ResponseSender;
  readonly #options: CallRunnerOptions;
  #held = 0;

  constructor(options: CallRunnerOptions) {
    this.#events = options.events;
    this.#sender = options.sender;
    this.#options = options;
  }

  /** Takes a piece of a request that arrived at `now`. */
  data(stream: ServerStream, body: Uint8Array, isLast: boolean, now: number): void {
    stream.request.add(body.length, isLast, now, stream);
    if (stream.isAnswered) return;
    const { method, refusal } = stream.head;
    if (method === undefined) {
      // A gRPC client may keep its side open until it has an answer; what others send is read and checked first.
      const isGrpc = refusal !== "content_type" && refusal !== "header_list";
      if (isLast || isGrpc) this.#refuse(stream, refusal);
      return;
    }
    if (method.kind === "unary" && isLast && stream.messages === undefined && isOneMessage(body)) {
      this.#unary(stream, method, body.subarray(MESSAGE_PREFIX_BYTES));
      return;
    }
    try {
      this.#assemble(stream, body);
      if (isLast && !stream.isAnswered) this.#onEnd(stream);
    } catch (error) {
      this.#fail(stream, error);
    }
  }

  /** Takes a unary call whose only message arrived at `now` together with its headers. */
  whole(stream: ServerStream, method: UnaryMethod, message: Uint8Array, now: number): void {
    stream.request.complete(now);
    this.#unary(stream, method, message);
  }

  /** Ends streaming calls because the server is stopping. */
  endStreams(streams: Iterable<ServerStream>): void {
    for (const stream of [...streams]) {
      if (stream.head.method?.kind === "unary" || stream.isAnswered) continue;
      this.#fail(stream, new GrpcError("UNAVAILABLE", "the server is stopping"));
    }
  }

  /** Lets go of a stream that its connection has removed. */
  forget(stream: ServerStream): void {
    const { messages, metrics, onEnd } = stream;
    if (messages !== undefined) {
      this.#held -= messages.counted;
      messages.counted = 0;
    }
    if (metrics !== undefined) this.#events.onEnded(metrics, stream.request.endedAt);
    stream.onEnd = undefined;
    onEnd?.();
  }

  /** Ends calls past their deadline and requests that take too long; returns whether a call with a deadline is left. */
  expire(streams: readonly ServerStream[], now: number): boolean {
    let waiting = false;
    for (const stream of streams) {
      if (stream.isAnswered) continue;
      const age = now - stream.openedAt;
      if (age >= stream.head.timeoutMs) {
        this.#fail(stream, new GrpcError("DEADLINE_EXCEEDED", "Deadline exceeded"));
        this.#events.onOutput();
      } else if (!stream.request.isEnded && stream.head.method?.kind !== "bidi" && age >= LIMITS.requestMs) {
        this.#options.reset(stream, "CANCEL");
      } else if (stream.head.timeoutMs < Infinity) {
        waiting = true;
      }
    }
    return waiting;
  }

  #assemble(stream: ServerStream, body: Uint8Array): void {
    const { encoding, method } = stream.head;
    const maxBytes = method?.kind === "bidi" ? method.maxMessageBytes : undefined;
    const messages = stream.messages ??= new RequestMessages(encoding, maxBytes);
    if (body.length === 0) return;
    try {
      for (const message of messages.reader.read(body)) {
        if (stream.isAnswered) return;
        this.#message(stream, message, messages);
      }
    } finally {
      this.#countHeld(stream, messages);
    }
    if (this.#held > LIMITS.heldBytes) {
      throw new GrpcError("RESOURCE_EXHAUSTED", "too many incomplete messages on this connection");
    }
  }

  #countHeld(stream: ServerStream, messages: RequestMessages): void {
    if (stream.isClosed) return;
    this.#held += messages.held - messages.counted;
    messages.counted = messages.held;
  }

  #message(stream: ServerStream, message: Uint8Array, messages: RequestMessages): void {
    const { method } = stream.head;
    messages.count++;
    if (method?.kind === "bidi") {
      this.#earn(stream, message);
      stream.bidi ??= this.#open(stream, method);
      if (!stream.isAnswered) stream.bidi.receive(message);
      return;
    }
    if (messages.count > 1) {
      throw new GrpcError("UNIMPLEMENTED", "Cannot read a request: it has more than one message");
    }
    messages.first = stream.request.isEnded ? message : detached(message);
  }

  #onEnd(stream: ServerStream): void {
    const { head: { method }, messages } = stream;
    if (messages !== undefined && messages.reader.held > 0) {
      throw new GrpcError("INTERNAL", "Cannot read a request: it ends within a message");
    }
    if (method?.kind === "bidi") {
      this.#end(stream, "OK", "");
      return;
    }
    const request = messages?.first;
    if (messages === undefined || request === undefined) {
      throw new GrpcError("UNIMPLEMENTED", "Cannot read a request: it has no message");
    }
    messages.first = undefined;
    this.#countHeld(stream, messages);
    if (method?.kind === "unary") this.#unary(stream, method, request);
    if (method?.kind !== "server_streaming") return;
    this.#earn(stream, request);
    const end = method.open(request, (message) => this.#send(stream, message), stream);
    // The very first message may have exceeded the limit of unread output.
    if (stream.isClosed) end();
    else stream.onEnd = end;
  }

  #open(stream: ServerStream, method: BidiMethod): BidiCall {
    const sender = this.#sender;
    const call = method.open({
      send: (message) => this.#send(stream, message),
      get unsentBytes() {
        return sender.output.length + (stream.outgoing.queued?.length ?? 0);
      },
      confirm: (arrived) => {
        if (stream.isAnswered || !sender.confirm(stream, arrived)) return false;
        this.#events.onOutput();
        return true;
      },
      end: (error) => {
        if (error !== undefined) this.#fail(stream, error);
        else if (!stream.isAnswered) this.#end(stream, "OK", "");
        this.#events.onOutput();
      },
    }, stream);
    const ended = () => call.ended?.();
    if (stream.isClosed) ended();
    else stream.onEnd = ended;
    return call;
  }

  #send(stream: ServerStream, message: Uint8Array): void {
    if (stream.isAnswered) return;
    this.#sender.message(stream, message);
    this.#events.onOutput();
  }

  #unary(stream: ServerStream, method: UnaryMethod, request: Uint8Array): void {
    stream.metrics = method.metrics;
    method.metrics?.started();
    this.#earn(stream, request);
    try {
      const answer = method.handle(request, stream);
      if (answer instanceof Uint8Array) {
        this.#sender.unary(stream, answer);
        this.#over();
        return;
      }
      if (stream.head.timeoutMs < Infinity) this.#events.onDeadline();
      const failed = (error: unknown) => {
        this.#fail(stream, error);
        this.#events.onOutput();
      };
      answer.then((message) => {
        this.#over();
        if (stream.isAnswered) return;
        try {
          this.#sender.unary(stream, message);
          this.#events.onOutput();
        } catch (error) {
          failed(error);
        }
      }, (error) => {
        this.#over();
        failed(error);
      });
    } catch (error) {
      this.#over();
      this.#fail(stream, error);
    }
  }

  /** The method of a unary call has ended, whatever became of its stream. */
  #over(): void {
    this.#options.resets.earn(LIMITS.resets.perCall);
  }

  #earn(stream: ServerStream, message: Uint8Array): void {
    // Twice: DATA frames may be as short as 4 KiB.
    const messageCost = 2 * (message.length >>> FRAME_UNIT_BITS);
    this.#options.budget.earn(LIMITS.frames.perRequest + messageCost + stream.headersCost);
    stream.headersCost = 0;
  }

  /** Answers a request that has no method here. */
  #refuse(stream: ServerStream, refusal: HeadRefusal | undefined): void {
    if (refusal === "content_type") {
      const body = stream.head.verb === "HEAD" ? NO_BODY : NOT_GRPC;
      this.#sender.plain(stream, plainHeaders(415, NOT_GRPC.length), body);
    } else if (refusal === "header_list") {
      this.#sender.plain(stream, plainHeaders(431, LIST_TOO_LARGE.length), LIST_TOO_LARGE);
    } else if (refusal === "timeout") {
      const text = `Invalid grpc-timeout value "${stream.head.timeout}"`;
      this.#sender.end(stream, trailersOnly("INTERNAL", text));
    } else {
      const text = `The server does not implement the method ${stream.head.path}`;
      this.#sender.end(stream, trailersOnly("UNIMPLEMENTED", text));
    }
  }

  #fail(stream: ServerStream, error: unknown): void {
    if (stream.isAnswered) return;
    if (error instanceof StreamError) {
      this.#options.reset(stream, error.code);
      return;
    }
    if (!(error instanceof GrpcError)) this.#events.onFault(stream.head.path, error);
    const [code, text] = error instanceof GrpcError
      ? [error.code, error.message] as const
      : ["INTERNAL", "internal error"] as const;
    this.#end(stream, code, text);
  }

  #end(stream: ServerStream, code: GrpcCode, text: string): void {
    const block = stream.outgoing.headersSent ? trailers(code, text) : trailersOnly(code, text);
    this.#sender.end(stream, block);
  }
}

/** True if the bytes are exactly one uncompressed message: the shape of nearly every request. */
function isOneMessage(body: Uint8Array): boolean {
  const length = body.length - MESSAGE_PREFIX_BYTES;
  return length >= 0 && body[0] === 0 && body[1] === 0 &&
    ((body[2] ?? 0) << 16 | (body[3] ?? 0) << 8 | (body[4] ?? 0)) === length;
}

/** A message that outlives its frame: copied, unless it is most of the buffer that it would keep alive. */
function detached(message: Uint8Array): Uint8Array {
  return message.length * 2 >= message.buffer.byteLength ? message : message.slice();
}
