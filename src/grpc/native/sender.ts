import type { DirectResponse } from "../grpc_service.ts";
import {
  ConnectionError,
  ERROR_CODES,
  type ErrorCode,
  FLAG,
  FRAME,
  FRAME_HEADER_BYTES,
  MAX_FRAME_BYTES,
  StreamError,
} from "./frames.ts";
import { FIRST_RESPONSE_HEADERS, OK_TRAILERS, RESPONSE_HEADERS } from "./header_blocks.ts";
import { LIMITS } from "./limits.ts";
import { MESSAGE_PREFIX_BYTES } from "./message_reader.ts";
import type { ServerStream } from "./server_stream.ts";

/** The window of a connection and its streams until the peer announces another one (RFC 9113, section 6.9.2). */
export const DEFAULT_WINDOW = 65_535;
/** Largest window; exceeding it is an error of the peer. */
export const MAX_WINDOW = 2 ** 31 - 1;
/** Marks a body whose last piece ends the stream. */
const NO_TRAILERS = new Uint8Array(0);

/** What a sender reports to its connection. */
export interface SenderEvents {
  /** The response of a stream is sent to its end. */
  finished(stream: ServerStream): void;
  /** More is queued than the limits allow: the stream has to be reset. */
  overflowed(stream: ServerStream): void;
}

/** Writes frames for one peer within its flow control windows. Frames of other streams never wait. */
export class Sender {
  readonly output = new Output();
  /** Bytes of DATA that the peer still accepts on the whole connection. */
  window = DEFAULT_WINDOW;
  /** The same at the start of each stream. */
  initialWindow = DEFAULT_WINDOW;
  /** Streams with queued data that wait for the connection's window, in their turn. */
  readonly #blocked = new Set<ServerStream>();
  #responseHeaders = FIRST_RESPONSE_HEADERS;
  /** Bytes queued over all streams. */
  #queuedBytes = 0;
  readonly #events: SenderEvents;

  constructor(events: SenderEvents) {
    this.#events = events;
  }

  /** Sends the whole response of a unary call. */
  unary(stream: ServerStream, message: Uint8Array): void {
    const { id, response } = stream;
    const length = MESSAGE_PREFIX_BYTES + message.length;
    if (
      length > response.window || length > this.window || length > MAX_FRAME_BYTES || response.headersSent
    ) {
      this.message(stream, message);
      if (!stream.isAnswered) this.end(stream, OK_TRAILERS);
      return;
    }
    const { output } = this;
    const headers = this.#responseHeaders;
    this.#responseHeaders = RESPONSE_HEADERS;
    output.frame(headers.length, FRAME.HEADERS, FLAG.END_HEADERS, id);
    output.bytes(headers);
    output.frame(length, FRAME.DATA, 0, id);
    output.byte(0);
    output.uint32(message.length);
    output.bytes(message);
    output.frame(OK_TRAILERS.length, FRAME.HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM, id);
    output.bytes(OK_TRAILERS);
    this.window -= length;
    response.isEnded = true;
    this.#events.finished(stream);
  }

  /** Whether the windows of a new stream have room for a whole response with a message of this length. */
  canSend(messageBytes: number): boolean {
    const length = MESSAGE_PREFIX_BYTES + messageBytes;
    return length <= this.window && length <= this.initialWindow && this.output.length < LIMITS.unsentBytes;
  }

  /** Sends the whole response of a unary call whose stream was never opened here. */
  direct(streamId: number, response: DirectResponse): void {
    const { output } = this;
    const headers = this.#responseHeaders;
    this.#responseHeaders = RESPONSE_HEADERS;
    output.frame(headers.length, FRAME.HEADERS, FLAG.END_HEADERS, streamId);
    output.bytes(headers);
    this.window -= output.message(streamId, response);
    output.frame(OK_TRAILERS.length, FRAME.HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM, streamId);
    output.bytes(OK_TRAILERS);
  }

  /** Sends one message of a response, and its headers before the first one. */
  message(stream: ServerStream, message: Uint8Array): void {
    this.#sendHeaders(stream, this.#responseHeaders);
    this.#responseHeaders = RESPONSE_HEADERS;
    const framed = new Uint8Array(MESSAGE_PREFIX_BYTES + message.length);
    new DataView(framed.buffer).setUint32(1, message.length);
    framed.set(message, MESSAGE_PREFIX_BYTES);
    this.#queue(stream, framed);
  }

  /** Ends a response with this header block; without a message before it, the block is the whole response. */
  end(stream: ServerStream, block: Uint8Array): void {
    const { response } = stream;
    response.isEnded = true;
    if (response.queued === undefined) this.#endWith(stream, block);
    else response.queued.trailers = block;
  }

  /** Sends a response that is not gRPC: headers and a body. */
  plain(stream: ServerStream, headers: Uint8Array, body: Uint8Array): void {
    stream.response.isEnded = true;
    if (body.length === 0) {
      this.#endWith(stream, headers);
      return;
    }
    this.#sendHeaders(stream, headers);
    this.#queue(stream, body, NO_TRAILERS);
  }

  /** Resets a stream. */
  reset(streamId: number, code: ErrorCode): void {
    this.output.frame(4, FRAME.RST_STREAM, 0, streamId);
    this.output.uint32(ERROR_CODES[code]);
  }

  /** Drops what a stream has queued. */
  forget(stream: ServerStream): void {
    const { response } = stream;
    if (response.queued === undefined) return;
    this.#queuedBytes -= response.queued.length;
    this.#blocked.delete(stream);
    response.queued = undefined;
  }

  /** The peer enlarges the window of the connection. */
  widen(increment: number): void {
    this.window += increment;
    if (this.window > MAX_WINDOW) throw new ConnectionError("FLOW_CONTROL_ERROR", "the window is too large");
    // A stream that blocks again moves to the end of the set, where the loop stops because the window is used up.
    for (const stream of this.#blocked) {
      if (this.window <= 0) return;
      this.#flush(stream);
    }
  }

  /** The peer enlarges the window of one stream. */
  widenStream(stream: ServerStream, increment: number): void {
    stream.response.window += increment;
    if (stream.response.window > MAX_WINDOW) {
      throw new StreamError("FLOW_CONTROL_ERROR", stream.id, "the window is too large");
    }
    this.#flush(stream);
  }

  /** The peer changes the initial window of every stream, which changes open ones by the same difference. */
  resize(initialWindow: number, streams: Iterable<ServerStream>): void {
    const change = initialWindow - this.initialWindow;
    this.initialWindow = initialWindow;
    for (const stream of [...streams]) {
      stream.response.window += change;
      if (stream.response.window > MAX_WINDOW) {
        throw new ConnectionError("FLOW_CONTROL_ERROR", "a window is too large");
      }
      this.#flush(stream);
    }
  }

  /** Lets the peer send more. Stream 0 is the connection. */
  windowUpdate(streamId: number, increment: number): void {
    this.output.frame(4, FRAME.WINDOW_UPDATE, 0, streamId);
    this.output.uint32(increment);
  }

  /** Sends a PING, whose answer returns the mark. */
  ping(mark: number): void {
    this.output.frame(8, FRAME.PING, 0, 0);
    this.output.uint32(mark);
    this.output.uint32(0);
  }

  /** Tells the peer that no stream after `lastStreamId` is accepted, and why. */
  goAway(lastStreamId: number, code: ErrorCode, text: string): void {
    const debug = new TextEncoder().encode(text);
    this.output.frame(8 + debug.length, FRAME.GOAWAY, 0, 0);
    this.output.uint32(lastStreamId);
    this.output.uint32(ERROR_CODES[code]);
    this.output.bytes(debug);
  }

  #sendHeaders(stream: ServerStream, block: Uint8Array): void {
    if (stream.response.headersSent) return;
    stream.response.headersSent = true;
    this.output.frame(block.length, FRAME.HEADERS, FLAG.END_HEADERS, stream.id);
    this.output.bytes(block);
  }

  #queue(stream: ServerStream, piece: Uint8Array, trailers?: Uint8Array): void {
    const queued = stream.response.queued ??= { pieces: [], length: 0, trailers };
    queued.pieces.push(piece);
    queued.length += piece.length;
    this.#queuedBytes += piece.length;
    this.#flush(stream);
    if (stream.response.queued === undefined) return;
    if (queued.length > LIMITS.queuedStreamBytes || this.#queuedBytes > LIMITS.queuedBytes) {
      this.#events.overflowed(stream);
    }
  }

  #flush(stream: ServerStream): void {
    const { response } = stream;
    const { queued } = response;
    if (queued === undefined) return;
    for (let piece = queued.pieces[0]; piece !== undefined; piece = queued.pieces[0]) {
      const length = Math.min(piece.length, this.window, response.window, MAX_FRAME_BYTES);
      if (length <= 0) return this.#block(stream);
      queued.length -= length;
      this.#queuedBytes -= length;
      if (length === piece.length) queued.pieces.shift();
      else queued.pieces[0] = piece.subarray(length);
      const isLast = queued.trailers === NO_TRAILERS && queued.length === 0;
      this.output.frame(length, FRAME.DATA, isLast ? FLAG.END_STREAM : 0, stream.id);
      this.output.bytes(piece.subarray(0, length));
      this.window -= length;
      response.window -= length;
      if (!isLast) continue;
      this.forget(stream);
      this.#events.finished(stream);
      return;
    }
    this.forget(stream);
    if (queued.trailers !== undefined) this.#endWith(stream, queued.trailers);
  }

  /** Only a stream that the connection's window alone blocks is retried when that window grows. */
  #block(stream: ServerStream): void {
    this.#blocked.delete(stream);
    if (stream.response.window > 0) this.#blocked.add(stream);
  }

  #endWith(stream: ServerStream, block: Uint8Array): void {
    stream.response.headersSent = true;
    this.output.frame(block.length, FRAME.HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM, stream.id);
    this.output.bytes(block);
    this.#events.finished(stream);
  }
}

const FIRST_BYTES = 4_096;
/** Larger buffers are not reused. */
const KEPT_BYTES = 262_144;

/** Collects the bytes for one peer until they are taken. Writing never fails: the caller watches `length`. */
export class Output {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(FIRST_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Writes a frame header. */
  frame(length: number, type: number, flags: number, streamId: number): void {
    const at = this.#reserve(FRAME_HEADER_BYTES);
    const bytes = this.#bytes;
    bytes[at] = length >>> 16;
    bytes[at + 1] = length >>> 8;
    bytes[at + 2] = length;
    bytes[at + 3] = type;
    bytes[at + 4] = flags;
    bytes[at + 5] = streamId >>> 24;
    bytes[at + 6] = streamId >>> 16;
    bytes[at + 7] = streamId >>> 8;
    bytes[at + 8] = streamId;
  }

  /** Writes bytes. Copying short ones in a loop is faster than a call. */
  bytes(source: Uint8Array): void {
    const { length } = source;
    const at = this.#reserve(length);
    if (length > 64) {
      this.#bytes.set(source, at);
      return;
    }
    const bytes = this.#bytes;
    for (let index = 0; index < length; index++) bytes[at + index] = source[index] ?? 0;
  }

  /** Writes a DATA frame with one message; returns the length of its payload. */
  message(streamId: number, response: DirectResponse): number {
    const at = this.#reserve(FRAME_HEADER_BYTES + MESSAGE_PREFIX_BYTES + response.maxBytes);
    const bytes = this.#bytes;
    const start = at + FRAME_HEADER_BYTES + MESSAGE_PREFIX_BYTES;
    const end = response.write(bytes, start);
    this.#length = at;
    this.frame(end - start + MESSAGE_PREFIX_BYTES, FRAME.DATA, 0, streamId);
    this.byte(0);
    this.uint32(end - start);
    this.#length = end;
    return end - start + MESSAGE_PREFIX_BYTES;
  }

  byte(value: number): void {
    const at = this.#reserve(1);
    this.#bytes[at] = value;
  }

  /** Writes a big-endian unsigned 32-bit integer. */
  uint32(value: number): void {
    const at = this.#reserve(4);
    const bytes = this.#bytes;
    bytes[at] = value >>> 24;
    bytes[at + 1] = value >>> 16;
    bytes[at + 2] = value >>> 8;
    bytes[at + 3] = value;
  }

  /** Everything collected so far, as a view that stays unchanged until `give` returns it. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#bytes = this.#spare ?? new Uint8Array(FIRST_BYTES);
    this.#spare = undefined;
    this.#length = 0;
    return taken;
  }

  /** Returns the buffer of written output for reuse. */
  give(taken: Uint8Array<ArrayBuffer>): void {
    if (taken.buffer.byteLength <= KEPT_BYTES) this.#spare = new Uint8Array(taken.buffer);
  }
  #spare: Uint8Array<ArrayBuffer> | undefined;

  #reserve(count: number): number {
    const at = this.#length;
    const needed = at + count;
    if (needed > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
      grown.set(this.#bytes.subarray(0, at));
      this.#bytes = grown;
    }
    this.#length = needed;
    return at;
  }
}
