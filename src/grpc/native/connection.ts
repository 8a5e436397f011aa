import type { GrpcMethod } from "../grpc_service.ts";
import {
  ConnectionError,
  type ErrorCode,
  FLAG,
  FRAME,
  FRAME_HEADER_BYTES,
  joined,
  MAX_FRAME_BYTES,
  PREFACE,
  readUint32,
  StreamError,
  unpadded,
} from "./frames.ts";
import { CallRunner } from "./call_runner.ts";
import { checkGoAway, checkPriority } from "./control_frames.ts";
import { HeaderReader } from "./header_reader.ts";
import { LIMITS } from "./limits.ts";
import { readSettings, SETTING } from "./peer_settings.ts";
import { RateGuard } from "./rate_guard.ts";
import { checkTrailers } from "./request_head.ts";
import { DEFAULT_WINDOW, MAX_WINDOW, Sender } from "./sender.ts";
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
  /** A call that has a deadline waits for its answer: `expire` is to be called in time. */
  readonly onDeadline: () => void;
}

const NO_BYTES = new Uint8Array(0);
/** Tells our own PING from others: its answer says that the first GOAWAY has been read. */
const DRAIN_PING = 0x77656972;

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
  readonly #noise: RateGuard;
  readonly #resets: RateGuard;
  /** Octets of a frame that is not whole. */
  #rest: Uint8Array = NO_BYTES;
  #prefaced = false;
  #settled = false;
  readonly #ids = new StreamIds();
  #receiveWindow = LIMITS.connectionWindow;
  #received = 0;
  #draining: "no" | "announced" | "final" = "no";
  #drainLast = MAX_WINDOW;
  #closing = false;
  /** When octets last came, in milliseconds. */
  lastReceivedAt: number;
  /** A PING of ours waits for its answer since then. */
  pingSentAt: number | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const now = options.now();
    this.lastReceivedAt = now;
    this.#noise = new RateGuard(LIMITS.noise, now);
    this.#resets = new RateGuard(LIMITS.resets, now);
    this.#headers = new HeaderReader(options.methods);
    this.sender = new Sender((stream) => this.#finished(stream));
    this.#runner = new CallRunner(this.sender, options, (stream, code) => this.#resetStream(stream.id, code));
    this.#greet();
  }

  /** Nothing more is to be read; what is in the output is the last. */
  get closing(): boolean {
    return this.#closing;
  }

  /** The peer has shown that it speaks HTTP/2. */
  get established(): boolean {
    return this.#settled;
  }

  /** Takes octets from the peer. */
  receive(chunk: Uint8Array): void {
    if (this.#closing) return;
    const now = this.#options.now();
    this.lastReceivedAt = now;
    try {
      this.#read(this.#rest.length === 0 ? chunk : joined(this.#rest, chunk), now);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** The peer is gone: ends every call. */
  abandon(): void {
    this.#closing = true;
    for (const stream of [...this.streams.values()]) this.#drop(stream);
  }

  /** Asks the peer to go: first without a last stream, then, when that was read, with the real one. */
  drain(): void {
    if (this.#draining !== "no" || this.#closing) return;
    this.#draining = "announced";
    this.#runner.endStreams(this.streams.values());
    this.sender.goAway(MAX_WINDOW, "NO_ERROR", "");
    this.ping(DRAIN_PING);
  }

  /** Names the last stream that is answered; the connection closes when all up to it are. */
  finishDraining(): void {
    if (this.#draining === "final" || this.#closing) return;
    this.#draining = "final";
    this.#drainLast = this.#ids.last;
    this.sender.goAway(this.#ids.last, "NO_ERROR", "");
    this.#closeWhenDone();
  }

  /** Asks the peer for a sign of life. */
  ping(mark = 0): void {
    this.pingSentAt ??= this.#options.now();
    this.sender.output.frame(8, FRAME.PING, 0, 0);
    this.sender.output.uint32(mark);
    this.sender.output.uint32(0);
  }

  /** Ends the connection with this reason. */
  close(code: ErrorCode, text: string): void {
    if (this.#closing) return;
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
      const age = now - stream.openedAt;
      if (!stream.answered && age >= stream.head.timeoutMs) {
        this.#runner.exceedDeadline(stream);
      } else if (!stream.remoteEnded && stream.head.method?.kind === "unary" && age >= LIMITS.requestMs) {
        this.#resetStream(stream.id, "CANCEL");
      } else if (stream.head.timeoutMs < Infinity) {
        waiting = true;
      }
    }
    return waiting;
  }

  #greet(): void {
    const { output } = this.sender;
    const settings = [
      [SETTING.MAX_CONCURRENT_STREAMS, LIMITS.streams],
      [SETTING.INITIAL_WINDOW_SIZE, LIMITS.streamWindow],
      [SETTING.MAX_HEADER_LIST_SIZE, LIMITS.headerListBytes],
    ] as const;
    output.frame(settings.length * 6, FRAME.SETTINGS, 0, 0);
    for (const [setting, value] of settings) {
      output.byte(0);
      output.byte(setting);
      output.uint32(value);
    }
    this.sender.windowUpdate(0, LIMITS.connectionWindow - DEFAULT_WINDOW);
  }

  #read(bytes: Uint8Array, now: number): void {
    let at = 0;
    if (!this.#prefaced) {
      at = this.#readPreface(bytes);
      if (!this.#prefaced) return;
    }
    while (bytes.length - at >= FRAME_HEADER_BYTES && !this.#closing) {
      const length = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
      if (length > MAX_FRAME_BYTES) {
        throw new ConnectionError("FRAME_SIZE_ERROR", `a frame has ${length} octets`);
      }
      const end = at + FRAME_HEADER_BYTES + length;
      if (end > bytes.length) break;
      const streamId = readUint32(bytes, at + 5) & 0x7fffffff;
      this.#frame(
        bytes[at + 3] ?? 0,
        bytes[at + 4] ?? 0,
        streamId,
        bytes.subarray(at + FRAME_HEADER_BYTES, end),
        now,
      );
      at = end;
    }
    this.#rest = at === bytes.length ? NO_BYTES : bytes.slice(at);
  }

  #readPreface(bytes: Uint8Array): number {
    const length = Math.min(bytes.length, PREFACE.length);
    for (let index = 0; index < length; index++) {
      if (bytes[index] !== PREFACE[index]) throw new ConnectionError("PROTOCOL_ERROR", "this is no HTTP/2");
    }
    this.#prefaced = length === PREFACE.length;
    this.#rest = this.#prefaced ? NO_BYTES : bytes.slice();
    return length;
  }

  #frame(type: number, flags: number, streamId: number, payload: Uint8Array, now: number): void {
    if (!this.#settled && type !== FRAME.SETTINGS) {
      throw new ConnectionError("PROTOCOL_ERROR", "the first frame is no SETTINGS");
    }
    if (this.#headers.open && type !== FRAME.CONTINUATION) {
      throw new ConnectionError("PROTOCOL_ERROR", "a block of headers is interrupted");
    }
    try {
      if (type === FRAME.DATA) this.#onData(flags, streamId, payload, now);
      else if (type === FRAME.HEADERS) this.#onHeaders(flags, streamId, payload, now);
      else this.#onControl(type, flags, streamId, payload, now);
    } catch (error) {
      if (!(error instanceof StreamError)) throw error;
      this.#countReset(now);
      this.#resetStream(error.streamId, error.code);
    }
  }

  #onControl(type: number, flags: number, streamId: number, payload: Uint8Array, now: number): void {
    if (type === FRAME.WINDOW_UPDATE) return this.#onWindowUpdate(streamId, payload);
    if (type === FRAME.RST_STREAM) return this.#onReset(streamId, payload, now);
    if (type === FRAME.CONTINUATION) return this.#onContinuation(flags, streamId, payload, now);
    if (!this.#noise.allows(now)) {
      throw new ConnectionError("ENHANCE_YOUR_CALM", "too many frames that ask for nothing");
    }
    if (type === FRAME.SETTINGS) this.#onSettings(flags, streamId, payload);
    else if (type === FRAME.PING) this.#onPing(flags, streamId, payload);
    else if (type === FRAME.PRIORITY) checkPriority(streamId, payload);
    else if (type === FRAME.GOAWAY) checkGoAway(streamId, payload);
    else if (type === FRAME.PUSH_PROMISE) throw new ConnectionError("PROTOCOL_ERROR", "a client cannot push");
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
    if (payload.length === 0 && !ended && !this.#noise.allows(now)) {
      throw new ConnectionError("ENHANCE_YOUR_CALM", "too many empty frames");
    }
    const stream = this.streams.get(streamId);
    if (stream === undefined) return this.#onClosed(streamId);
    if (stream.remoteEnded) {
      throw new StreamError("STREAM_CLOSED", streamId, "DATA after the end of the stream");
    }
    stream.receiveWindow -= payload.length;
    if (stream.receiveWindow < 0) {
      throw new StreamError("FLOW_CONTROL_ERROR", streamId, "the stream's window is exceeded");
    }
    this.#runner.data(stream, body, ended);
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
      this.#runner.data(stream, NO_BYTES, true);
      return;
    }
    if (streamId <= this.#ids.last) {
      this.#headers.fields();
      if (this.#ids.wasResetHere(streamId)) return;
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
    if (this.#draining === "final" || this.streams.size >= LIMITS.streams) {
      throw new StreamError("REFUSED_STREAM", streamId, "no further stream is taken");
    }
    const windows = { send: this.sender.initialWindow, receive: LIMITS.streamWindow, now };
    const stream = new ServerStream(streamId, head, windows);
    this.streams.set(streamId, stream);
    if (ended) this.#runner.data(stream, NO_BYTES, true);
  }

  #onSettings(flags: number, streamId: number, payload: Uint8Array): void {
    if (streamId !== 0) throw new ConnectionError("PROTOCOL_ERROR", `SETTINGS on stream ${streamId}`);
    if ((flags & FLAG.ACK) !== 0) {
      if (payload.length > 0) {
        throw new ConnectionError("FRAME_SIZE_ERROR", "SETTINGS with ACK has a payload");
      }
      if (!this.#settled) throw new ConnectionError("PROTOCOL_ERROR", "the first SETTINGS is an ACK");
      return;
    }
    this.#settled = true;
    const initialWindow = readSettings(payload);
    this.sender.output.frame(0, FRAME.SETTINGS, FLAG.ACK, 0);
    if (initialWindow === undefined) return;
    const change = initialWindow - this.sender.initialWindow;
    this.sender.initialWindow = initialWindow;
    for (const stream of [...this.streams.values()]) {
      stream.sendWindow += change;
      if (stream.sendWindow > MAX_WINDOW) {
        throw new ConnectionError("FLOW_CONTROL_ERROR", "a window is too large");
      }
      this.sender.pump(stream);
    }
  }

  #onPing(flags: number, streamId: number, payload: Uint8Array): void {
    if (streamId !== 0) throw new ConnectionError("PROTOCOL_ERROR", `PING on stream ${streamId}`);
    if (payload.length !== 8) {
      throw new ConnectionError("FRAME_SIZE_ERROR", `PING of ${payload.length} octets`);
    }
    if ((flags & FLAG.ACK) === 0) {
      this.sender.output.frame(8, FRAME.PING, FLAG.ACK, 0);
      this.sender.output.bytes(payload);
      return;
    }
    this.pingSentAt = undefined;
    if (this.#draining === "announced" && readUint32(payload, 0) === DRAIN_PING) this.finishDraining();
  }

  #onWindowUpdate(streamId: number, payload: Uint8Array): void {
    if (payload.length !== 4) throw new ConnectionError("FRAME_SIZE_ERROR", "WINDOW_UPDATE is not 4 octets");
    const increment = readUint32(payload, 0) & 0x7fffffff;
    if (streamId === 0) {
      if (increment === 0) throw new ConnectionError("PROTOCOL_ERROR", "WINDOW_UPDATE of 0");
      this.sender.window += increment;
      if (this.sender.window > MAX_WINDOW) {
        throw new ConnectionError("FLOW_CONTROL_ERROR", "the window is too large");
      }
      this.sender.pump();
      return;
    }
    if (streamId > this.#ids.last) {
      throw new ConnectionError("PROTOCOL_ERROR", `WINDOW_UPDATE on idle stream ${streamId}`);
    }
    if (increment === 0) throw new StreamError("PROTOCOL_ERROR", streamId, "WINDOW_UPDATE of 0");
    const stream = this.streams.get(streamId);
    if (stream === undefined) return;
    stream.sendWindow += increment;
    if (stream.sendWindow > MAX_WINDOW) {
      throw new StreamError("FLOW_CONTROL_ERROR", streamId, "the window is too large");
    }
    this.sender.pump(stream);
  }

  #onReset(streamId: number, payload: Uint8Array, now: number): void {
    if (payload.length !== 4) throw new ConnectionError("FRAME_SIZE_ERROR", "RST_STREAM is not 4 octets");
    if (streamId === 0 || streamId > this.#ids.last) {
      throw new ConnectionError("PROTOCOL_ERROR", `RST_STREAM on idle stream ${streamId}`);
    }
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
    this.#runner.forget(stream);
    const { onEnd } = stream;
    stream.onEnd = undefined;
    onEnd?.();
    this.#closeWhenDone();
  }

  #closeWhenDone(): void {
    if (this.#draining !== "final" || this.#closing) return;
    for (const id of this.streams.keys()) if (id <= this.#drainLast) return;
    this.#closing = true;
  }

  #fail(error: unknown): void {
    if (error instanceof ConnectionError) this.close(error.code, error.message);
    else {
      this.#options.onFault("connection", error);
      this.close("INTERNAL_ERROR", "");
    }
  }
}
