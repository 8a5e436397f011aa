import { ControlFrames, greet } from "../native/control_frames.ts";
import {
  ConnectionError,
  type ErrorCode,
  FRAME,
  FrameReader,
  PREFACE,
  readUint32,
  SETTING,
  StreamError,
} from "../native/frames.ts";
import { LIMITS } from "../native/limits.ts";
import type { Output } from "../native/output.ts";
import { RateGuard } from "../native/rate_guard.ts";
import { ConnectionWindow } from "../native/receive_window.ts";
import { AnswerReader } from "./answer_reader.ts";
import { type ClientCall, STREAM_WINDOW } from "./client_call.ts";
import { ClientCalls } from "./client_calls.ts";
import { type CallStatus, errorName, localStatus } from "./call_status.ts";
import { HEADER_LIMITS } from "./response_reader.ts";

/** Options of `ClientConnection`. */
interface ClientConnectionOptions {
  /** Milliseconds; only differences count. */
  readonly now: () => number;
  /** There may be output that does not follow from received bytes. */
  readonly onOutput: () => void;
  /** The server has sent its greeting, so that calls begin. */
  readonly onReady?: (() => void) | undefined;
  /** Received bytes were handled: calls may have ended, and others may begin. */
  readonly onRead?: ((now: number) => void) | undefined;
}

/** Frames that carry nothing for a call. Calls and messages earn some, as servers send them with each. */
const NOISE = { burst: 10_000, perSecond: 1_000 };
const NOISE_PER_WORK = 16;
const SETTINGS = [
  [SETTING.ENABLE_PUSH, 0],
  [SETTING.INITIAL_WINDOW_SIZE, STREAM_WINDOW],
  [SETTING.MAX_HEADER_LIST_SIZE, HEADER_LIMITS.headerListBytes],
] as const;
const NO_BYTES = new Uint8Array(0);
/** Longest text of a server in an error. */
const MAX_TEXT = 200;

/**
 * The client side of one HTTP/2 connection that carries gRPC, without a socket: `receive` takes bytes, `output`
 * collects bytes. It never throws. Once `isClosing` is true, the caller writes what is in `output` and closes the
 * connection.
 */
export class ClientConnection {
  readonly calls: ClientCalls;
  readonly output: Output;
  readonly #options: ClientConnectionOptions;
  readonly #frames: FrameReader;
  readonly #answers: AnswerReader;
  readonly #noise: RateGuard;
  readonly #control: ControlFrames<ClientCall>;
  #isStalled = false;
  #isClosing = false;
  /** When bytes last arrived, in milliseconds. */
  lastReceivedAt: number;
  /** Since when a PING of ours waits for its answer; absent when none does. */
  pingSentAt: number | undefined;

  constructor(options: ClientConnectionOptions) {
    const { now, onOutput } = options;
    this.#options = options;
    this.lastReceivedAt = now();
    this.#noise = new RateGuard(NOISE, this.lastReceivedAt);
    this.calls = new ClientCalls({
      now,
      onOutput,
      onWork: () => this.#noise.earn(NOISE_PER_WORK),
      onEnded: () => this.#closeWhenDone(),
    });
    const { sender } = this.calls;
    this.output = sender.output;
    this.#frames = new FrameReader({
      take: (type, flags, streamId, payload, at) => this.#frame(type, flags, streamId, payload, at),
      takeCall: (bytes, at, now) => this.isReady ? this.#answers.takeWhole(bytes, at, now) : at,
      goesOn: () => {
        if (this.output.length >= LIMITS.unsentBytes) this.#isStalled = true;
        return !this.#isStalled && !this.#isClosing;
      },
    }, { isOfServer: true });
    this.#answers = new AnswerReader({
      calls: this.calls,
      window: new ConnectionWindow(sender),
      countNoise: (at, cost) => this.#countNoise(at, cost),
    });
    this.#control = new ControlFrames({
      sender,
      isOfServer: true,
      streams: this.calls.sending,
      lastId: () => this.calls.lastId,
      onSettings: ({ maxStreams, tableBytes }, isFirst) => {
        if (tableBytes !== undefined) this.calls.heads.limitTable(tableBytes);
        if (isFirst || maxStreams !== undefined) this.calls.maxRunning = maxStreams ?? Infinity;
        if (isFirst) options.onReady?.();
      },
      onPong: () => this.pingSentAt = undefined,
      onGoAway: (payload) => this.#onGoAway(payload),
    });
    this.output.bytes(PREFACE);
    greet(sender, SETTINGS);
  }

  /** True if `output` is the last of this connection and nothing more is read. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** True if the server has proved that it speaks HTTP/2, so that calls begin. */
  get isReady(): boolean {
    return this.#control.hasSettings;
  }

  /** True if received frames wait until the output is taken: `readOn` continues with them. */
  get isStalled(): boolean {
    return this.#isStalled;
  }

  /** Takes bytes from the server. */
  receive(chunk: Uint8Array): void {
    if (this.#isClosing) return;
    const now = this.#options.now();
    this.lastReceivedAt = now;
    this.#read(chunk, now);
  }

  /** Continues after the output was taken: with frames that wait, and with DATA that had no room in it. */
  readOn(): void {
    if (this.#isClosing) return;
    this.calls.sender.resume();
    if (this.#isStalled) this.#read(NO_BYTES, this.#options.now());
    else this.calls.fill();
  }

  /** Sends a keepalive PING. */
  ping(): void {
    this.pingSentAt ??= this.#options.now();
    this.calls.sender.ping(0);
  }

  /** Ends every call with this status, and tells the server why. */
  close(status: CallStatus, code: ErrorCode = "NO_ERROR"): void {
    if (this.#isClosing) return;
    this.abandon(status);
    this.calls.sender.goAway(0, code, status.message);
    this.#options.onOutput();
  }

  /** Ends every call: the connection is lost. */
  abandon(status: CallStatus): void {
    this.#isClosing = true;
    this.calls.stop(status, 0);
  }

  #read(chunk: Uint8Array, now: number): void {
    this.#isStalled = this.output.length >= LIMITS.unsentBytes;
    if (this.#isStalled) return this.#frames.keep(chunk);
    try {
      this.#frames.read(chunk, now);
    } catch (error) {
      return this.#fail(error);
    }
    this.calls.fill();
    this.#options.onRead?.(now);
  }

  /** Closes the connection because of an error. */
  #fail(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    const state = this.isReady ? `the server broke HTTP/2: ${text}` : "the server does not speak HTTP/2";
    this.close(
      localStatus("UNAVAILABLE", state),
      error instanceof ConnectionError ? error.code : "INTERNAL_ERROR",
    );
  }

  #frame(type: number, flags: number, streamId: number, payload: Uint8Array, now: number): void {
    if (!this.isReady && type !== FRAME.SETTINGS) {
      throw new ConnectionError("PROTOCOL_ERROR", "the first frame is not SETTINGS");
    }
    try {
      if (this.#answers.take(type, flags, streamId, payload, now)) return;
      this.#countNoise(now);
      this.#control.take(type, flags, streamId, payload, now);
    } catch (error) {
      if (!(error instanceof StreamError)) throw error;
      this.calls.sender.reset(error.streamId, error.code);
      const call = this.calls.get(error.streamId);
      if (call === undefined) this.#countNoise(now);
      else this.calls.drop(call, localStatus("INTERNAL", `the server broke HTTP/2: ${error.message}`), now);
    }
  }

  #onGoAway(payload: Uint8Array): void {
    const lastId = readUint32(payload, 0) & 0x7fffffff;
    const code = readUint32(payload, 4);
    const text = new TextDecoder().decode(payload.subarray(8, 8 + MAX_TEXT)).replace(/[^ -~]/g, "?");
    const state = `the server closed the connection with ${errorName(code)}${text === "" ? "" : `: ${text}`}`;
    this.calls.stop(localStatus("UNAVAILABLE", state), lastId);
    this.#closeWhenDone();
  }

  #countNoise(now: number, cost = 1): void {
    if (!this.#noise.allows(now, cost)) {
      throw new ConnectionError("ENHANCE_YOUR_CALM", "too many frames that carry nothing");
    }
  }

  /** Closes the connection after the last call, if no further one begins. */
  #closeWhenDone(): void {
    if (this.#isClosing || this.calls.end === undefined || this.calls.size > 0) return;
    this.#isClosing = true;
    this.calls.sender.goAway(0, "NO_ERROR", "");
  }
}
