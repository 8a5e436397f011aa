import type { GrpcMethod } from "../grpc_service.ts";
import { responseBytes } from "../responses.ts";
import { CallFrames } from "./call_frames.ts";
import { type CallEvents, type CallFaults, CallRunner } from "./call_runner.ts";
import { checkReset, ControlFrames, greet } from "./control_frames.ts";
import { Drain } from "./drain.ts";
import {
  ConnectionError,
  type ErrorCode,
  FLAG,
  FRAME,
  FRAME_HEADER_BYTES,
  FrameReader,
  type OtherProtocol,
  StreamError,
  unpadded,
} from "./frames.ts";
import { HeaderReader } from "./header_reader.ts";
import { FRAME_UNIT_BITS, HEADERS_COST, LIMITS } from "./limits.ts";
import { MESSAGE_PREFIX_BYTES } from "./message_reader.ts";
import { RateGuard } from "./rate_guard.ts";
import { ConnectionWindow } from "./receive_window.ts";
import { ResponseSender } from "./response_sender.ts";
import { ServerStream } from "./server_stream.ts";
import { StreamIds } from "./stream_ids.ts";

/** The methods of a connection, and the receivers of the reports that are the same for all connections. */
export interface ConnectionServices extends CallFaults {
  /** Methods by their path, such as `/package.Service/Method`. */
  readonly methods: ReadonlyMap<string, GrpcMethod>;
  /** Milliseconds; only differences count. */
  readonly now: () => number;
  /** A header block of a request is unusually long. */
  readonly onLongHeaders: (bytes: number) => void;
  /** The peer speaks this instead of HTTP/2. */
  readonly onOtherProtocol: (protocol: OtherProtocol) => void;
}

const NO_BYTES = new Uint8Array(0);
/** The cost of HEADERS and DATA that are short. */
const WHOLE_COST = HEADERS_COST + 1;

/**
 * The server side of one HTTP/2 connection that carries gRPC, without a socket: `receive` takes bytes, `output`
 * collects bytes. It never throws. Once `isClosing` is true, the caller writes what is in `output` and closes the
 * connection.
 */
export class Connection {
  readonly sender: ResponseSender;
  readonly streams = new Map<number, ServerStream>();
  readonly #options: ConnectionServices & CallEvents;
  readonly #headers: HeaderReader;
  readonly #runner: CallRunner;
  readonly #budget: RateGuard;
  readonly #noise: RateGuard;
  readonly #pings: RateGuard;
  readonly #resets: RateGuard;
  readonly #frames: FrameReader;
  readonly #ids = new StreamIds();
  readonly #call = new CallFrames();
  readonly #window: ConnectionWindow;
  readonly #drain: Drain;
  readonly #control: ControlFrames<ServerStream>;
  #isStalled = false;
  #isClosing = false;
  /** True if the connection is closed because the peer broke a rule or exceeded a limit. */
  isRefused = false;
  /** When bytes last arrived, in milliseconds. */
  lastReceivedAt: number;
  /** Since when a PING of ours waits for its answer; absent when none does. */
  pingSentAt: number | undefined;

  constructor(options: ConnectionServices & CallEvents) {
    this.#options = options;
    const now = options.now();
    this.lastReceivedAt = now;
    this.#budget = new RateGuard(LIMITS.frames, now);
    this.#noise = new RateGuard(LIMITS.noise, now);
    this.#pings = new RateGuard(LIMITS.pings, now);
    this.#resets = new RateGuard(LIMITS.resets, now);
    this.#headers = new HeaderReader(options.methods);
    this.sender = new ResponseSender({
      finished: (stream) => this.#finished(stream),
      overflowed: (stream) => this.#resetStream(stream.id, "ENHANCE_YOUR_CALM"),
    });
    this.#drain = new Drain(this.sender);
    this.#window = new ConnectionWindow(this.sender);
    this.#frames = new FrameReader({
      take: (...frame) => this.#frame(...frame),
      takeCall: (...call) => this.#whole(...call),
      goesOn: () => {
        if (this.sender.output.length >= LIMITS.unsentBytes) this.#isStalled = true;
        return !this.#isStalled && !this.#isClosing;
      },
    });
    this.#control = new ControlFrames({
      sender: this.sender,
      streams: this.streams,
      lastId: () => this.#ids.last,
      noise: this.#noise,
      pings: this.#pings,
      onPong: (payload) => this.#onPong(payload),
    });
    this.#runner = new CallRunner({
      events: options,
      sender: this.sender,
      budget: this.#budget,
      resets: this.#resets,
      reset: (stream, code) => this.#resetStream(stream.id, code),
    });
    greet(this.sender);
  }

  /** True if `output` is the last of this connection and nothing more is read. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** True if the peer has proved that it speaks HTTP/2. */
  get isEstablished(): boolean {
    return this.#control.hasSettings;
  }

  /** True if received frames wait until the output is taken: `readOn` continues with them. */
  get isStalled(): boolean {
    return this.#isStalled;
  }

  /** Takes bytes from the peer. */
  receive(chunk: Uint8Array): void {
    if (this.#isClosing) return;
    const now = this.#options.now();
    this.lastReceivedAt = now;
    this.#read(chunk, now);
  }

  /** Continues with frames that arrived while the output was full. */
  readOn(): void {
    if (this.#isStalled && !this.#isClosing) this.#read(NO_BYTES, this.#options.now());
  }

  /** Ends every call: the peer is disconnected. */
  abandon(): void {
    this.#isClosing = true;
    for (const stream of [...this.streams.values()]) this.#drop(stream);
  }

  /** Asks the peer to go away. Ends streaming calls, which would delay that, unless they are to be kept. */
  drain({ keepStreams = false } = {}): void {
    if (this.#isClosing) return;
    if (!keepStreams) this.#runner.endStreams(this.streams.values());
    if (this.#drain.announce(keepStreams)) this.pingSentAt ??= this.#options.now();
  }

  /** Names the last stream that is answered; the connection closes when all up to it are. */
  finishDraining(): void {
    if (this.#drain.isFinal || this.#isClosing) return;
    // Streaming calls that began since the first request to go away would delay the end forever.
    if (!this.#drain.keepsStreams) this.#runner.endStreams(this.streams.values());
    this.#drain.finish(this.#ids.last);
    this.#closeWhenDone();
  }

  /** Sends a keepalive PING. */
  ping(): void {
    this.pingSentAt ??= this.#options.now();
    this.sender.ping(0);
  }

  /** Closes the connection with this reason. */
  close(code: ErrorCode, text: string): void {
    if (this.#isClosing) return;
    this.isRefused = true;
    this.sender.goAway(this.#ids.last, code, text);
    this.abandon();
  }

  /** Ends calls past their deadline and requests that take too long; returns whether a call with a deadline is left. */
  expire(now: number): boolean {
    return this.#runner.expire([...this.streams.values()], now);
  }

  #read(chunk: Uint8Array, now: number): void {
    this.#isStalled = this.sender.output.length >= LIMITS.unsentBytes;
    if (this.#isStalled) return this.#frames.keep(chunk);
    try {
      this.#frames.read(chunk, now);
    } catch (error) {
      this.#fail(error);
    }
  }

  #frame(type: number, flags: number, streamId: number, payload: Uint8Array, now: number): void {
    const cost = (type === FRAME.HEADERS ? HEADERS_COST : 1) + (payload.length >>> FRAME_UNIT_BITS);
    if (!this.#budget.allows(now, cost)) {
      throw new ConnectionError("ENHANCE_YOUR_CALM", "too many frames without a request");
    }
    if (!this.#control.hasSettings && type !== FRAME.SETTINGS) {
      throw new ConnectionError("PROTOCOL_ERROR", "the first frame is not SETTINGS");
    }
    if (this.#headers.blocks.isOpen && type !== FRAME.CONTINUATION) {
      throw new ConnectionError("PROTOCOL_ERROR", "a header block is interrupted");
    }
    try {
      if (type === FRAME.DATA) this.#onData(flags, streamId, payload, now);
      else if (type === FRAME.HEADERS) this.#onHeaders(flags, streamId, payload, now);
      else if (type === FRAME.CONTINUATION) this.#onContinuation(flags, streamId, payload, now);
      else if (type === FRAME.RST_STREAM) this.#onReset(streamId, payload, now);
      else this.#control.take(type, flags, streamId, payload, now);
    } catch (error) {
      if (!(error instanceof StreamError)) throw error;
      this.#countReset(now);
      this.#resetStream(error.streamId, error.code);
    }
  }

  /**
   * Takes a whole unary call that begins at a position, if nothing about it is special, and answers it directly where
   * its method can; returns where it ends. All checks come first: otherwise nothing has changed and the same position is
   * returned.
   */
  #whole(bytes: Uint8Array, at: number, now: number): number {
    if (!this.#control.hasSettings || this.#headers.blocks.isOpen || !this.#call.read(bytes, at)) return at;
    const { streamId, messageStart, end, blockEnd } = this.#call;
    if (streamId <= this.#ids.last || this.#drain.isFinal || this.streams.size >= LIMITS.streams) return at;
    const length = end - messageStart + MESSAGE_PREFIX_BYTES;
    if (!this.#budget.has(WHOLE_COST)) return at;
    const head = this.#headers.knownHead(bytes, at + FRAME_HEADER_BYTES, blockEnd);
    if (head === undefined) return at;
    const { method, contentLength = length, fields } = head;
    if (method?.kind !== "unary" || contentLength !== length) return at;
    const { metrics, direct } = method;
    const response = direct?.(bytes, messageStart, end, fields);
    this.#budget.allows(now, WHOLE_COST);
    this.#pings.earn(LIMITS.pings.perData);
    this.#ids.open(streamId);
    this.#window.take(length);
    if (response === undefined || !this.sender.canSend(response.maxBytes)) {
      const stream = new ServerStream(streamId, head, this.sender.initialWindow, now);
      this.streams.set(streamId, stream);
      const answering = response === undefined
        ? method
        : { ...method, handle: () => responseBytes(response) };
      this.#runner.whole(stream, answering, bytes.subarray(messageStart, end), now);
      return end;
    }
    this.#budget.earn(LIMITS.frames.perRequest);
    this.#resets.earn(LIMITS.resets.perCall);
    metrics?.started();
    this.sender.direct(streamId, response);
    if (metrics !== undefined) this.#options.onEnded(metrics, now);
    return end;
  }

  #onData(flags: number, streamId: number, payload: Uint8Array, now: number): void {
    if (streamId === 0) throw new ConnectionError("PROTOCOL_ERROR", "DATA on stream 0");
    this.#window.take(payload.length);
    const body = (flags & FLAG.PADDED) === 0 ? payload : unpadded(payload);
    const isLast = (flags & FLAG.END_STREAM) !== 0;
    if (body.length > 0) this.#pings.earn(LIMITS.pings.perData);
    else if (!isLast) this.#countNoise(now);
    const stream = this.streams.get(streamId);
    if (stream === undefined) return this.#onClosed(streamId);
    const { request } = stream;
    if (request.isEnded) {
      throw new StreamError("STREAM_CLOSED", streamId, "DATA after the end of the stream");
    }
    if (!request.window.take(payload.length)) {
      throw new StreamError("FLOW_CONTROL_ERROR", streamId, "the stream's window is exceeded");
    }
    this.#runner.data(stream, body, isLast, now);
    const refill = request.isEnded ? 0 : request.window.refill();
    if (refill > 0) this.sender.windowUpdate(streamId, refill);
  }

  #onHeaders(flags: number, streamId: number, payload: Uint8Array, now: number): void {
    if (streamId % 2 === 0) throw new ConnectionError("PROTOCOL_ERROR", `HEADERS on stream ${streamId}`);
    this.#headers.blocks.begin(flags, streamId, payload);
    if (!this.#headers.blocks.isOpen) this.#onBlock(now);
  }

  #onContinuation(flags: number, streamId: number, payload: Uint8Array, now: number): void {
    this.#headers.blocks.continue(flags, streamId, payload);
    if (!this.#headers.blocks.isOpen) this.#onBlock(now);
  }

  /** A header block is complete: it opens a stream, or ends the request of one. */
  #onBlock(now: number): void {
    const { streamId, endsStream } = this.#headers.blocks;
    const stream = this.streams.get(streamId);
    if (stream !== undefined) {
      this.#headers.blocks.decode();
      if (stream.request.isEnded) {
        throw new StreamError("STREAM_CLOSED", streamId, "HEADERS after the end of the stream");
      }
      if (!endsStream) throw new StreamError("PROTOCOL_ERROR", streamId, "HEADERS in the middle of a stream");
      this.#headers.checkTrailers();
      this.#runner.data(stream, NO_BYTES, true, now);
      return;
    }
    if (streamId <= this.#ids.last) {
      this.#headers.blocks.decode();
      if (this.#ids.wasResetHere(streamId)) return this.#countNoise(now);
      const skipped = this.#ids.wasSkipped(streamId);
      throw new ConnectionError(
        skipped ? "PROTOCOL_ERROR" : "STREAM_CLOSED",
        `HEADERS on stream ${streamId}`,
      );
    }
    this.#open(streamId, endsStream, now);
  }

  #open(streamId: number, isLast: boolean, now: number): void {
    this.#ids.open(streamId);
    const { length, cost } = this.#headers.blocks;
    if (length > LIMITS.usualBlockBytes) this.#options.onLongHeaders(length);
    const head = this.#headers.head();
    if (this.#drain.isFinal || this.streams.size >= LIMITS.streams) {
      throw new StreamError("REFUSED_STREAM", streamId, "no further stream is accepted");
    }
    const stream = new ServerStream(streamId, head, this.sender.initialWindow, now);
    stream.headersCost = cost;
    this.streams.set(streamId, stream);
    if (isLast) this.#runner.data(stream, NO_BYTES, true, now);
  }

  #onPong(payload: Uint8Array): void {
    this.pingSentAt = undefined;
    if (this.#drain.isAnnounceRead(payload)) this.finishDraining();
    else this.sender.pingAnswered(payload);
  }

  #onReset(streamId: number, payload: Uint8Array, now: number): void {
    checkReset(streamId, payload, this.#ids.last);
    this.#countReset(now);
    const stream = this.streams.get(streamId);
    if (stream !== undefined) this.#drop(stream);
  }

  /** DATA arrived on a stream that is not open. */
  #onClosed(streamId: number): void {
    if (streamId > this.#ids.last) {
      throw new ConnectionError("PROTOCOL_ERROR", `DATA on idle stream ${streamId}`);
    }
    if (this.#ids.wasResetHere(streamId)) return;
    throw new StreamError("STREAM_CLOSED", streamId, "DATA on a closed stream");
  }

  #countNoise(now: number): void {
    if (!this.#noise.allows(now)) {
      throw new ConnectionError("ENHANCE_YOUR_CALM", "too many frames that ask for nothing");
    }
  }

  #countReset(now: number): void {
    if (!this.#resets.allows(now)) {
      throw new ConnectionError("ENHANCE_YOUR_CALM", "too many streams are reset");
    }
  }

  #resetStream(streamId: number, code: ErrorCode): void {
    this.sender.reset(streamId, code);
    this.#ids.rememberReset(streamId);
    const stream = this.streams.get(streamId);
    if (stream !== undefined) this.#drop(stream);
  }

  /** Removes a stream; anything that its call still sends is dropped. */
  #drop(stream: ServerStream): void {
    this.sender.forget(stream);
    this.#remove(stream);
  }

  /** The response of a stream is sent. A request that goes on is of no use then. */
  #finished(stream: ServerStream): void {
    if (stream.request.isEnded) this.#remove(stream);
    else if (this.streams.has(stream.id)) this.#resetStream(stream.id, "NO_ERROR");
  }

  #remove(stream: ServerStream): void {
    if (!this.streams.delete(stream.id)) return;
    stream.isClosed = true;
    this.#runner.forget(stream);
    this.#closeWhenDone();
  }

  #closeWhenDone(): void {
    if (!this.#isClosing && this.#drain.isOver(this.streams.keys())) this.#isClosing = true;
  }

  #fail(error: unknown): void {
    if (error instanceof ConnectionError) {
      if (error.protocol !== undefined) this.#options.onOtherProtocol(error.protocol);
      this.close(error.code, error.message);
    } else {
      this.#options.onFault("connection", error);
      this.close("INTERNAL_ERROR", "");
    }
  }
}
