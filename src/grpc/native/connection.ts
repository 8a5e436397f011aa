import type { CallFigures, GrpcMethod } from "../grpc_service.ts";
import { CallRunner } from "./call_runner.ts";
import { checkReset, ControlFrames } from "./control_frames.ts";
import { Drain } from "./drain.ts";
import { FrameReader } from "./frame_reader.ts";
import {
  ConnectionError,
  type ErrorCode,
  FLAG,
  FRAME,
  type OtherProtocol,
  PrefaceError,
  StreamError,
  unpadded,
} from "./frames.ts";
import { HeaderReader } from "./header_reader.ts";
import { FRAME_UNIT_BITS, HEADERS_COST, LIMITS } from "./limits.ts";
import { greet } from "./peer_settings.ts";
import { RateGuard } from "./rate_guard.ts";
import { checkTrailers } from "./request_head.ts";
import { Sender } from "./sender.ts";
import { ServerStream } from "./server_stream.ts";
import { StreamIds } from "./stream_ids.ts";

/** What a connection needs from who carries it. */
export interface ConnectionOptions {
  /** Methods by their path, such as `/package.Service/Method`. */
  readonly methods: ReadonlyMap<string, GrpcMethod>;
  /** Milliseconds; only differences count. */
  readonly now: () => number;
  /** There is output to be sent that no call of `receive` brought. */
  readonly onOutput: () => void;
  /** A handler threw what is no `GrpcError`. */
  readonly onFault: (method: string, error: unknown) => void;
  /** The peer speaks this in place of HTTP/2. */
  readonly onStranger: (spoken: OtherProtocol) => void;
  /** A call that has a deadline waits for its answer: `expire` is to be called in time. */
  readonly onDeadline: () => void;
  /** A call whose method keeps figures is over; it started then, by `now`. */
  readonly onEnded: (figures: CallFigures, startedAt: number) => void;
}

const NO_BYTES = new Uint8Array(0);

/**
 * The server's side of one HTTP/2 connection that carries gRPC, without a socket: octets go in by
 * `receive`, octets come out of `output`. It never throws; when `closing` is true, what is in `output`
 * is the last, and the connection is to be ended.
 */
export class Connection {
  readonly sender: Sender;
  readonly streams = new Map<number, ServerStream>();
  readonly #options: ConnectionOptions;
  readonly #headers: HeaderReader;
  readonly #runner: CallRunner;
  readonly #budget: RateGuard;
  readonly #noise: RateGuard;
  readonly #pings: RateGuard;
  readonly #resets: RateGuard;
  readonly #frames: FrameReader;
  readonly #ids = new StreamIds();
  readonly #drain: Drain;
  /** While it drains: streams that the server feeds go on. */
  #keepStreams = false;
  readonly #control: ControlFrames;
  #stalled = false;
  #receiveWindow: number = LIMITS.connectionWindow;
  #received = 0;
  #closing = false;
  /** The peer broke a rule or exceeded a bound, and the connection is closed for that. */
  refused = false;
  /** When octets last came, in milliseconds. */
  lastReceivedAt: number;
  /** A PING of ours waits for its answer since then. */
  pingSentAt: number | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const now = options.now();
    this.lastReceivedAt = now;
    this.#budget = new RateGuard(LIMITS.frames, now);
    this.#noise = new RateGuard(LIMITS.noise, now);
    this.#pings = new RateGuard(LIMITS.pings, now);
    this.#resets = new RateGuard(LIMITS.resets, now);
    this.#headers = new HeaderReader(options.methods);
    this.sender = new Sender({
      finished: (stream) => this.#finished(stream),
      overflowed: (stream) => this.#resetStream(stream.id, "ENHANCE_YOUR_CALM"),
    });
    this.#drain = new Drain(this.sender);
    this.#frames = new FrameReader((type, flags, streamId, payload, now) => {
      this.#frame(type, flags, streamId, payload, now);
      if (this.sender.output.length >= LIMITS.unsentBytes) this.#stalled = true;
      return !this.#stalled && !this.#closing;
    });
    this.#control = new ControlFrames({
      sender: this.sender,
      streams: this.streams,
      ids: this.#ids,
      noise: this.#noise,
      pings: this.#pings,
      onPong: (payload) => this.#onPong(payload),
    });
    this.#runner = new CallRunner(this.sender, {
      onOutput: options.onOutput,
      onFault: options.onFault,
      onDeadline: options.onDeadline,
      budget: this.#budget,
      reset: (stream, code) => this.#resetStream(stream.id, code),
    });
    greet(this.sender);
  }

  /** Nothing more is to be read; what is in the output is the last. */
  get closing(): boolean {
    return this.#closing;
  }

  /** The peer has shown that it speaks HTTP/2. */
  get established(): boolean {
    return this.#control.settled;
  }

  /** Frames that came wait until the output is taken: `readOn` goes on with them. */
  get stalled(): boolean {
    return this.#stalled;
  }

  /** Takes octets from the peer. */
  receive(chunk: Uint8Array): void {
    if (this.#closing) return;
    const now = this.#options.now();
    this.lastReceivedAt = now;
    this.#read(chunk, now);
  }

  /** Goes on with what came when the output was full. */
  readOn(): void {
    if (this.#stalled && !this.#closing) this.#read(NO_BYTES, this.#options.now());
  }

  /** The peer is gone: ends every call. */
  abandon(): void {
    this.#closing = true;
    for (const stream of [...this.streams.values()]) this.#drop(stream);
  }

  /**
   * Asks the peer to go. Streams that the server feeds would hold that up, so they are ended, unless
   * they are to go on until the connection is closed.
   */
  drain({ keepStreams = false } = {}): void {
    if (this.#closing) return;
    this.#keepStreams = keepStreams;
    if (!keepStreams) this.#runner.endStreams(this.streams.values());
    if (this.#drain.begun) return;
    this.pingSentAt ??= this.#options.now();
    this.#drain.announce();
  }

  /** Names the last stream that is answered; the connection closes when all up to it are. */
  finishDraining(): void {
    if (this.#drain.final || this.#closing) return;
    // Streams that came since the peer was first asked to go would hold it up for good.
    if (!this.#keepStreams) this.#runner.endStreams(this.streams.values());
    this.#drain.finish(this.#ids.last);
    this.#closeWhenDone();
  }

  /** Asks the peer for a sign of life. */
  ping(): void {
    this.pingSentAt ??= this.#options.now();
    this.sender.ping(0);
  }

  /** Ends the connection with this reason. */
  close(code: ErrorCode, text: string): void {
    if (this.#closing) return;
    this.refused = true;
    this.sender.goAway(this.#ids.last, code, text);
    this.abandon();
  }

  /**
   * Ends calls that are past their deadline or whose request does not come to an end. Answers whether
   * a call with a deadline is left.
   */
  expire(now: number): boolean {
    let waiting = false;
    for (const stream of [...this.streams.values()]) {
      if (stream.answered) continue;
      const age = now - stream.openedAt;
      if (age >= stream.head.timeoutMs) {
        this.#runner.exceedDeadline(stream);
      } else if (!stream.remoteEnded && stream.head.method?.kind !== "bidi" && age >= LIMITS.requestMs) {
        this.#resetStream(stream.id, "CANCEL");
      } else if (stream.head.timeoutMs < Infinity) {
        waiting = true;
      }
    }
    return waiting;
  }

  #read(chunk: Uint8Array, now: number): void {
    this.#stalled = this.sender.output.length >= LIMITS.unsentBytes;
    if (this.#stalled) return this.#frames.keep(chunk);
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
    if (!this.#control.settled && type !== FRAME.SETTINGS) {
      throw new ConnectionError("PROTOCOL_ERROR", "the first frame is no SETTINGS");
    }
    if (this.#headers.open && type !== FRAME.CONTINUATION) {
      throw new ConnectionError("PROTOCOL_ERROR", "a block of headers is interrupted");
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

  #onData(flags: number, streamId: number, payload: Uint8Array, now: number): void {
    if (streamId === 0) throw new ConnectionError("PROTOCOL_ERROR", "DATA on stream 0");
    this.#receiveWindow -= payload.length;
    if (this.#receiveWindow < 0) {
      throw new ConnectionError("FLOW_CONTROL_ERROR", "the connection's window is exceeded");
    }
    this.#received += payload.length;
    if (this.#received >= LIMITS.connectionWindow / 2) this.#openWindow();
    const body = (flags & FLAG.PADDED) === 0 ? payload : unpadded(payload);
    const ended = (flags & FLAG.END_STREAM) !== 0;
    if (body.length > 0) this.#pings.earn(LIMITS.pings.perData);
    else if (!ended) this.#countNoise(now);
    const stream = this.streams.get(streamId);
    if (stream === undefined) return this.#onClosed(streamId);
    if (stream.remoteEnded) {
      throw new StreamError("STREAM_CLOSED", streamId, "DATA after the end of the stream");
    }
    stream.receiveWindow -= payload.length;
    if (stream.receiveWindow < 0) {
      throw new StreamError("FLOW_CONTROL_ERROR", streamId, "the stream's window is exceeded");
    }
    this.#runner.data(stream, body, ended, now);
    if (!ended && stream.receiveWindow < LIMITS.streamWindow / 2) {
      this.sender.windowUpdate(streamId, LIMITS.streamWindow - stream.receiveWindow);
      stream.receiveWindow = LIMITS.streamWindow;
    }
  }

  #openWindow(): void {
    this.sender.windowUpdate(0, this.#received);
    this.#receiveWindow += this.#received;
    this.#received = 0;
  }

  #onHeaders(flags: number, streamId: number, payload: Uint8Array, now: number): void {
    if (streamId === 0 || streamId % 2 === 0) {
      throw new ConnectionError("PROTOCOL_ERROR", `HEADERS on stream ${streamId}`);
    }
    this.#headers.begin(flags, streamId, payload);
    if (!this.#headers.open) this.#onBlock(now);
  }

  #onContinuation(flags: number, streamId: number, payload: Uint8Array, now: number): void {
    this.#headers.continue(flags, streamId, payload);
    if (!this.#headers.open) this.#onBlock(now);
  }

  /** A block of headers is whole: it opens a stream, or ends the request of one. */
  #onBlock(now: number): void {
    const { streamId, ended } = this.#headers;
    const stream = this.streams.get(streamId);
    if (stream !== undefined) {
      const fields = this.#headers.fields();
      if (stream.remoteEnded) {
        throw new StreamError("STREAM_CLOSED", streamId, "HEADERS after the end of the stream");
      }
      if (!ended) throw new StreamError("PROTOCOL_ERROR", streamId, "HEADERS in the middle of a stream");
      checkTrailers(fields, streamId);
      this.#runner.data(stream, NO_BYTES, true, now);
      return;
    }
    if (streamId <= this.#ids.last) {
      this.#headers.fields();
      if (this.#ids.wasResetHere(streamId)) return this.#countNoise(now);
      const skipped = this.#ids.wasSkipped(streamId);
      throw new ConnectionError(
        skipped ? "PROTOCOL_ERROR" : "STREAM_CLOSED",
        `HEADERS on stream ${streamId}`,
      );
    }
    this.#open(streamId, ended, now);
  }

  #open(streamId: number, ended: boolean, now: number): void {
    this.#ids.open(streamId);
    const head = this.#headers.head();
    if (this.#drain.final || this.streams.size >= LIMITS.streams) {
      throw new StreamError("REFUSED_STREAM", streamId, "no further stream is taken");
    }
    const windows = { send: this.sender.initialWindow, receive: LIMITS.streamWindow, now };
    const stream = new ServerStream(streamId, head, windows);
    this.streams.set(streamId, stream);
    if (ended) this.#runner.data(stream, NO_BYTES, true, now);
  }

  #onPong(payload: Uint8Array): void {
    this.pingSentAt = undefined;
    if (this.#drain.isAnnounceRead(payload)) this.finishDraining();
  }

  #onReset(streamId: number, payload: Uint8Array, now: number): void {
    checkReset(streamId, payload, this.#ids.last);
    this.#countReset(now);
    const stream = this.streams.get(streamId);
    if (stream !== undefined) this.#drop(stream);
  }

  /** DATA on a stream that is not open. */
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

  /** Takes a stream out; whatever its call still brings is dropped. */
  #drop(stream: ServerStream): void {
    stream.answered = true;
    this.sender.forget(stream);
    this.#remove(stream);
  }

  /** The answer of a stream is out. What the peer still sends on it is not wanted. */
  #finished(stream: ServerStream): void {
    if (stream.remoteEnded) this.#remove(stream);
    else if (this.streams.has(stream.id)) this.#resetStream(stream.id, "NO_ERROR");
  }

  #remove(stream: ServerStream): void {
    if (!this.streams.delete(stream.id)) return;
    stream.closed = true;
    this.#runner.forget(stream);
    if (stream.figures !== undefined) this.#options.onEnded(stream.figures, stream.requestedAt);
    const { onEnd } = stream;
    stream.onEnd = undefined;
    onEnd?.();
    this.#closeWhenDone();
  }

  #closeWhenDone(): void {
    if (!this.#closing && this.#drain.isOver(this.streams.keys())) this.#closing = true;
  }

  #fail(error: unknown): void {
    if (error instanceof PrefaceError && error.spoken !== undefined) this.#options.onStranger(error.spoken);
    if (error instanceof ConnectionError) this.close(error.code, error.message);
    else {
      this.#options.onFault("connection", error);
      this.close("INTERNAL_ERROR", "");
    }
  }
}
