import { ERROR_CODES, type ErrorCode, FLAG, FRAME, MAX_FRAME_BYTES } from "./frames.ts";
import { OK_TRAILERS, RESPONSE_HEADERS } from "./header_blocks.ts";
import { MESSAGE_PREFIX_BYTES } from "./message_reader.ts";
import { Output } from "./output.ts";
import type { ServerStream } from "./server_stream.ts";

/** What a peer lets in at first, until it says otherwise (RFC 9113, section 6.9.2). */
export const DEFAULT_WINDOW = 65_535;
/** Largest window; more is an error of the peer. */
export const MAX_WINDOW = 2 ** 31 - 1;
/** Most octets that wait on one stream for the peer to let more in. */
const MAX_QUEUED_BYTES = 1_048_576;

/** Writes frames for one peer and keeps to what the peer lets in. Frames of other streams never wait. */
export class Sender {
  readonly output = new Output();
  /** Octets of DATA that the peer still lets in on the whole connection. */
  window = DEFAULT_WINDOW;
  /** The same at the start of each stream. */
  initialWindow = DEFAULT_WINDOW;
  /** Streams with something queued. */
  readonly #blocked = new Set<ServerStream>();
  readonly #onFinished: (stream: ServerStream) => void;

  /** `onFinished` is told of each stream whose answer is out to its end. */
  constructor(onFinished: (stream: ServerStream) => void) {
    this.#onFinished = onFinished;
  }

  /** The whole answer of a unary call. */
  unary(stream: ServerStream, message: Uint8Array): void {
    const length = MESSAGE_PREFIX_BYTES + message.length;
    if (
      length > stream.sendWindow || length > this.window || length > MAX_FRAME_BYTES || stream.headersSent
    ) {
      this.message(stream, message);
      this.end(stream, OK_TRAILERS);
      return;
    }
    const { output } = this;
    const { id } = stream;
    output.frame(RESPONSE_HEADERS.length, FRAME.HEADERS, FLAG.END_HEADERS, id);
    output.bytes(RESPONSE_HEADERS);
    output.frame(length, FRAME.DATA, 0, id);
    output.byte(0);
    output.uint32(message.length);
    output.bytes(message);
    output.frame(OK_TRAILERS.length, FRAME.HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM, id);
    output.bytes(OK_TRAILERS);
    this.window -= length;
    stream.answered = true;
    this.#onFinished(stream);
  }

  /** One message of an answer; its headers go before the first one. */
  message(stream: ServerStream, message: Uint8Array): void {
    this.#sendHeaders(stream, RESPONSE_HEADERS);
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
    if (stream.queued !== undefined) this.#blocked.delete(stream);
    stream.queued = undefined;
  }

  /** Sends what was queued, as far as the windows have grown. */
  pump(stream?: ServerStream): void {
    if (stream !== undefined) {
      if (stream.queued !== undefined) this.#flush(stream);
      return;
    }
    for (const blocked of [...this.#blocked]) {
      if (this.window <= 0) return;
      this.#flush(blocked);
    }
  }

  /** Lets the peer send more. Stream 0 is the connection. */
  windowUpdate(streamId: number, increment: number): void {
    this.output.frame(4, FRAME.WINDOW_UPDATE, 0, streamId);
    this.output.uint32(increment);
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
    this.#blocked.add(stream);
    this.#flush(stream);
    if (queued.length <= MAX_QUEUED_BYTES || stream.queued === undefined) return;
    this.forget(stream);
    this.reset(stream.id, "ENHANCE_YOUR_CALM");
    stream.answered = true;
    this.#onFinished(stream);
  }

  #flush(stream: ServerStream): void {
    const { queued } = stream;
    if (queued === undefined) return;
    for (let piece = queued.pieces[0]; piece !== undefined; piece = queued.pieces[0]) {
      const length = Math.min(piece.length, this.window, stream.sendWindow, MAX_FRAME_BYTES);
      if (length <= 0) return;
      queued.length -= length;
      if (length === piece.length) queued.pieces.shift();
      else queued.pieces[0] = piece.subarray(length);
      const isLast = queued.trailers === NO_TRAILERS && queued.length === 0;
      this.output.frame(length, FRAME.DATA, isLast ? FLAG.END_STREAM : 0, stream.id);
      this.output.bytes(piece.subarray(0, length));
      this.window -= length;
      stream.sendWindow -= length;
      if (!isLast) continue;
      this.forget(stream);
      this.#onFinished(stream);
      return;
    }
    this.forget(stream);
    if (queued.trailers !== undefined) this.#endWith(stream, queued.trailers);
  }

  #endWith(stream: ServerStream, block: Uint8Array): void {
    stream.headersSent = true;
    this.output.frame(block.length, FRAME.HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM, stream.id);
    this.output.bytes(block);
    this.#onFinished(stream);
  }
}

/** Says that the last piece of a body ends the stream. */
const NO_TRAILERS = new Uint8Array(0);
