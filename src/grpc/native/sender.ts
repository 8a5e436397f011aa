import {
  ConnectionError,
  ERROR_CODES,
  type ErrorCode,
  FLAG,
  FRAME,
  MAX_FRAME_BYTES,
  StreamError,
} from "./frames.ts";
import { FIRST_RESPONSE_HEADERS, OK_TRAILERS, RESPONSE_HEADERS } from "./header_blocks.ts";
import { LIMITS } from "./limits.ts";
import { MESSAGE_PREFIX_BYTES } from "./message_reader.ts";
import { Output } from "./output.ts";
import type { ServerStream } from "./server_stream.ts";

/** What a peer lets in at first, until it says otherwise (RFC 9113, section 6.9.2). */
export const DEFAULT_WINDOW = 65_535;
/** Largest window; more is an error of the peer. */
export const MAX_WINDOW = 2 ** 31 - 1;

/** What a sender tells its connection. */
export interface SenderEvents {
  /** The answer of a stream is out to its end. */
  finished(stream: ServerStream): void;
  /** More waits than the bounds allow: the stream is to be reset. */
  overflowed(stream: ServerStream): void;
}

/** Writes frames for one peer and keeps to what the peer lets in. Frames of other streams never wait. */
export class Sender {
  readonly output = new Output();
  /** Octets of DATA that the peer still lets in on the whole connection. */
  window = DEFAULT_WINDOW;
  /** The same at the start of each stream. */
  initialWindow = DEFAULT_WINDOW;
  /** Streams with something queued that wait for the connection's window, in their turn. */
  readonly #blocked = new Set<ServerStream>();
  #responseHeaders = FIRST_RESPONSE_HEADERS;
  /** Octets queued over all streams. */
  #queuedBytes = 0;
  readonly #events: SenderEvents;

  constructor(events: SenderEvents) {
    this.#events = events;
  }

  /** The whole answer of a unary call. */
  unary(stream: ServerStream, message: Uint8Array): void {
    const length = MESSAGE_PREFIX_BYTES + message.length;
    if (
      length > stream.sendWindow || length > this.window || length > MAX_FRAME_BYTES || stream.headersSent
    ) {
      this.message(stream, message);
      if (!stream.answered) this.end(stream, OK_TRAILERS);
      return;
    }
    const { output } = this;
    const { id } = stream;
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
    stream.answered = true;
    this.#events.finished(stream);
  }

  /** One message of an answer; its headers go before the first one. */
  message(stream: ServerStream, message: Uint8Array): void {
    this.#sendHeaders(stream, this.#responseHeaders);
    this.#responseHeaders = RESPONSE_HEADERS;
    const framed = new Uint8Array(MESSAGE_PREFIX_BYTES + message.length);
    new DataView(framed.buffer).setUint32(1, message.length);
    framed.set(message, MESSAGE_PREFIX_BYTES);
    this.#queue(stream, framed);
  }

  /** Ends an answer with this block of headers; without any message before it, it is the only one. */
  end(stream: ServerStream, block: Uint8Array): void {
    stream.answered = true;
    if (stream.queued !== undefined) {
      stream.queued.trailers = block;
      return;
    }
    this.#endWith(stream, block);
  }

  /** An answer that is no gRPC: headers and a body. */
  plain(stream: ServerStream, headers: Uint8Array, body: Uint8Array): void {
    stream.answered = true;
    if (body.length === 0) {
      this.#endWith(stream, headers);
      return;
    }
    this.#sendHeaders(stream, headers);
    this.#queue(stream, body, NO_TRAILERS);
  }

  /** Resets a stream; nothing of it is sent any more. */
  reset(streamId: number, code: ErrorCode): void {
    this.output.frame(4, FRAME.RST_STREAM, 0, streamId);
    this.output.uint32(ERROR_CODES[code]);
  }

  /** Drops what a stream has queued. */
  forget(stream: ServerStream): void {
    if (stream.queued === undefined) return;
    this.#queuedBytes -= stream.queued.length;
    this.#blocked.delete(stream);
    stream.queued = undefined;
  }

  /** The peer lets in more on the connection. */
  widen(increment: number): void {
    this.window += increment;
    if (this.window > MAX_WINDOW) throw new ConnectionError("FLOW_CONTROL_ERROR", "the window is too large");
    // Whoever still waits behind comes to the end of the set, which the window does not outlast.
    for (const stream of this.#blocked) {
      if (this.window <= 0) return;
      this.#flush(stream);
    }
  }

  /** The peer lets in more on one stream. */
  widenStream(stream: ServerStream, increment: number): void {
    stream.sendWindow += increment;
    if (stream.sendWindow > MAX_WINDOW) {
      throw new StreamError("FLOW_CONTROL_ERROR", stream.id, "the window is too large");
    }
    this.#flush(stream);
  }

  /** The peer gives every stream another window from its start, which changes those that are open by as much. */
  resize(initialWindow: number, streams: Iterable<ServerStream>): void {
    const change = initialWindow - this.initialWindow;
    this.initialWindow = initialWindow;
    for (const stream of [...streams]) {
      stream.sendWindow += change;
      if (stream.sendWindow > MAX_WINDOW) {
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

  /** Asks the peer for an answer, which brings the mark back. */
  ping(mark: number): void {
    this.output.frame(8, FRAME.PING, 0, 0);
    this.output.uint32(mark);
    this.output.uint32(0);
  }

  /** Tells the peer that no stream after `lastStreamId` is taken, and why. */
  goAway(lastStreamId: number, code: ErrorCode, text: string): void {
    const debug = new TextEncoder().encode(text);
    this.output.frame(8 + debug.length, FRAME.GOAWAY, 0, 0);
    this.output.uint32(lastStreamId);
    this.output.uint32(ERROR_CODES[code]);
    this.output.bytes(debug);
  }

  #sendHeaders(stream: ServerStream, block: Uint8Array): void {
    if (stream.headersSent) return;
    stream.headersSent = true;
    this.output.frame(block.length, FRAME.HEADERS, FLAG.END_HEADERS, stream.id);
    this.output.bytes(block);
  }

  #queue(stream: ServerStream, piece: Uint8Array, trailers?: Uint8Array): void {
    const queued = stream.queued ??= { pieces: [], length: 0, trailers };
    queued.pieces.push(piece);
    queued.length += piece.length;
    this.#queuedBytes += piece.length;
    this.#flush(stream);
    if (stream.queued === undefined) return;
    if (queued.length > LIMITS.queuedStreamBytes || this.#queuedBytes > LIMITS.queuedBytes) {
      this.#events.overflowed(stream);
    }
  }

  #flush(stream: ServerStream): void {
    const { queued } = stream;
    if (queued === undefined) return;
    for (let piece = queued.pieces[0]; piece !== undefined; piece = queued.pieces[0]) {
      const length = Math.min(piece.length, this.window, stream.sendWindow, MAX_FRAME_BYTES);
      if (length <= 0) return this.#wait(stream);
      queued.length -= length;
      this.#queuedBytes -= length;
      if (length === piece.length) queued.pieces.shift();
      else queued.pieces[0] = piece.subarray(length);
      const isLast = queued.trailers === NO_TRAILERS && queued.length === 0;
      this.output.frame(length, FRAME.DATA, isLast ? FLAG.END_STREAM : 0, stream.id);
      this.output.bytes(piece.subarray(0, length));
      this.window -= length;
      stream.sendWindow -= length;
      if (!isLast) continue;
      this.forget(stream);
      this.#events.finished(stream);
      return;
    }
    this.forget(stream);
    if (queued.trailers !== undefined) this.#endWith(stream, queued.trailers);
  }

  /** Only streams that the connection's window alone holds up are tried again when it grows. */
  #wait(stream: ServerStream): void {
    this.#blocked.delete(stream);
    if (stream.sendWindow > 0) this.#blocked.add(stream);
  }

  #endWith(stream: ServerStream, block: Uint8Array): void {
    stream.headersSent = true;
    this.output.frame(block.length, FRAME.HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM, stream.id);
    this.output.bytes(block);
    this.#events.finished(stream);
  }
}

/** Says that the last piece of a body ends the stream. */
const NO_TRAILERS = new Uint8Array(0);
