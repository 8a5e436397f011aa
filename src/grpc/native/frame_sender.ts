import { Fifo } from "../../base/fifo.ts";
import {
  ConnectionError,
  ERROR_CODES,
  type ErrorCode,
  FLAG,
  FRAME,
  MAX_FRAME_BYTES,
  StreamError,
} from "./frames.ts";
import { Output } from "./output.ts";

/** The window of a connection and its streams until the peer announces another one (RFC 9113, section 6.9.2). */
export const DEFAULT_WINDOW = 65_535;
/** Largest window; exceeding it is an error of the peer. */
export const MAX_WINDOW = 2 ** 31 - 1;
/** Marks a body whose last piece ends the stream. */
export const NO_TRAILERS: Uint8Array = new Uint8Array(0);

/** A part that waits on a stream until the peer grants a larger window. */
interface Queued {
  /** Payload of DATA frames, in order. */
  readonly pieces: Fifo<Uint8Array>;
  /** Bytes in `pieces`. */
  length: number;
  /** The header block that ends the stream after the pieces; absent while it goes on. */
  trailers: Uint8Array | undefined;
}

/** The output of one stream. `FrameSender` writes it. */
export class Outgoing {
  /** Bytes of DATA that the peer still accepts. */
  window: number;
  /** True if the headers are sent. */
  headersSent = false;
  /** True if its end is sent or queued. */
  isEnded = false;
  queued: Queued | undefined;

  constructor(window: number) {
    this.window = window;
  }
}

/** A stream to send on. */
export interface OutgoingStream {
  readonly id: number;
  readonly outgoing: Outgoing;
}

/** Reports of a sender to its connection. */
export interface SenderEvents<Stream> {
  /** Everything of a stream is sent to its end. */
  finished(stream: Stream): void;
  /** More is queued than the limits allow: the stream has to be reset. */
  overflowed(stream: Stream): void;
  /** A part of what was queued is sent. */
  advanced?(stream: Stream): void;
}

/** Limits of the queue of a sender. */
interface SenderLimits {
  /** Bytes that are queued on one stream, and on all of them. */
  readonly queuedStreamBytes: number;
  readonly queuedBytes: number;
  /** Bytes of output above which DATA waits for `resume`; without a limit when absent. */
  readonly outputBytes?: number;
}

/** Writes frames for one peer within its flow control windows. Frames of other streams never wait. */
export class FrameSender<Stream extends OutgoingStream> {
  readonly output = new Output();
  /** Bytes of DATA that the peer still accepts on the whole connection. */
  window = DEFAULT_WINDOW;
  /** The same at the start of each stream. */
  initialWindow = DEFAULT_WINDOW;
  protected readonly events: SenderEvents<Stream>;
  readonly #limits: SenderLimits;
  readonly #outputBytes: number;
  /** Streams with queued data that wait for the connection's window, in their turn. */
  readonly #blocked = new Set<Stream>();
  /** Bytes queued over all streams. */
  #queuedBytes = 0;

  constructor(events: SenderEvents<Stream>, limits: SenderLimits) {
    this.events = events;
    this.#limits = limits;
    this.#outputBytes = limits.outputBytes ?? Infinity;
  }

  /** Ends a stream with this header block, after what is queued; without headers before it, the block is all of it. */
  end(stream: Stream, block: Uint8Array): void {
    const { outgoing } = stream;
    outgoing.isEnded = true;
    if (outgoing.queued === undefined) this.#endWith(stream, block);
    else outgoing.queued.trailers = block;
  }

  /** Ends a stream without a header block, after what is queued. */
  finish(stream: Stream): void {
    const { outgoing } = stream;
    outgoing.isEnded = true;
    if (outgoing.queued !== undefined) outgoing.queued.trailers = NO_TRAILERS;
    else {
      this.output.frame(0, FRAME.DATA, FLAG.END_STREAM, stream.id);
      this.events.finished(stream);
    }
  }

  /** Resets a stream. */
  reset(streamId: number, code: ErrorCode): void {
    this.output.frame(4, FRAME.RST_STREAM, 0, streamId);
    this.output.uint32(ERROR_CODES[code]);
  }

  /** Drops what a stream has queued. */
  forget(stream: Stream): void {
    const { outgoing } = stream;
    if (outgoing.queued === undefined) return;
    this.#queuedBytes -= outgoing.queued.length;
    this.#blocked.delete(stream);
    outgoing.queued = undefined;
  }

  /** The peer enlarges the window of the connection. */
  widen(increment: number): void {
    this.window += increment;
    if (this.window > MAX_WINDOW) throw new ConnectionError("FLOW_CONTROL_ERROR", "the window is too large");
    this.resume();
  }

  /** Continues with streams that wait for the connection's window or for room in the output. */
  resume(): void {
    // A stream that blocks again moves to the end of the set, where the loop stops because the room is used up.
    for (const stream of this.#blocked) {
      if (this.window <= 0 || this.output.length >= this.#outputBytes) return;
      this.#flush(stream);
    }
  }

  /** The peer enlarges the window of one stream. */
  widenStream(stream: Stream, increment: number): void {
    stream.outgoing.window += increment;
    if (stream.outgoing.window > MAX_WINDOW) {
      throw new StreamError("FLOW_CONTROL_ERROR", stream.id, "the window is too large");
    }
    this.#flush(stream);
  }

  /** The peer changes the initial window of every stream, which changes open ones by the same difference. */
  resize(initialWindow: number, streams: Iterable<Stream>): void {
    const change = initialWindow - this.initialWindow;
    this.initialWindow = initialWindow;
    for (const stream of [...streams]) {
      stream.outgoing.window += change;
      if (stream.outgoing.window > MAX_WINDOW) {
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

  /** Sends the headers of a stream, unless they are sent. */
  headers(stream: Stream, block: Uint8Array): void {
    if (stream.outgoing.headersSent) return;
    stream.outgoing.headersSent = true;
    this.output.frame(block.length, FRAME.HEADERS, FLAG.END_HEADERS, stream.id);
    this.output.bytes(block);
  }

  /** Sends a part of a stream's content, now or when the windows allow it. With `NO_TRAILERS` it is the last one. */
  queue(stream: Stream, piece: Uint8Array, trailers?: Uint8Array): void {
    const queued = stream.outgoing.queued ??= { pieces: new Fifo(), length: 0, trailers };
    queued.pieces.push(piece);
    queued.length += piece.length;
    this.#queuedBytes += piece.length;
    this.#flush(stream);
    if (stream.outgoing.queued === undefined) return;
    const { queuedStreamBytes, queuedBytes } = this.#limits;
    if (queued.length > queuedStreamBytes || this.#queuedBytes > queuedBytes) this.events.overflowed(stream);
  }

  #flush(stream: Stream): void {
    const { outgoing } = stream;
    const { queued } = outgoing;
    if (queued === undefined) return;
    const { pieces } = queued;
    for (let piece = pieces.first; piece !== undefined; piece = pieces.first) {
      const length = Math.min(piece.length, this.window, outgoing.window, MAX_FRAME_BYTES);
      if (length <= 0 || this.output.length >= this.#outputBytes) return this.#block(stream);
      queued.length -= length;
      this.#queuedBytes -= length;
      if (length === piece.length) pieces.shift();
      else pieces.first = piece.subarray(length);
      const isLast = queued.trailers === NO_TRAILERS && queued.length === 0;
      this.output.frame(length, FRAME.DATA, isLast ? FLAG.END_STREAM : 0, stream.id);
      this.output.bytes(piece.subarray(0, length));
      this.window -= length;
      outgoing.window -= length;
      if (!isLast) continue;
      this.forget(stream);
      this.events.finished(stream);
      return;
    }
    this.forget(stream);
    this.events.advanced?.(stream);
    if (queued.trailers !== undefined) this.#endWith(stream, queued.trailers);
  }

  /** Only a stream that its own window does not block is retried when there is room on the connection. */
  #block(stream: Stream): void {
    this.#blocked.delete(stream);
    if (stream.outgoing.window > 0) this.#blocked.add(stream);
    this.events.advanced?.(stream);
  }

  #endWith(stream: Stream, block: Uint8Array): void {
    stream.outgoing.headersSent = true;
    this.output.frame(block.length, FRAME.HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM, stream.id);
    this.output.bytes(block);
    this.events.finished(stream);
  }
}
