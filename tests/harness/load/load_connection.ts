import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Expectation } from "./answer.ts";
import { AnswerReader } from "./answer_reader.ts";
import { type LoadCall, MAX_BODY_BYTES } from "./call_source.ts";
import { FrameReader, number31 } from "./frame_reader.ts";
import {
  type CallHeads,
  callHeads,
  copied,
  encodeFrame,
  FLAGS,
  type Frame,
  FRAME_TYPES,
  PREFACE,
  SETTINGS,
  settingsFrame,
  windowUpdateFrame,
} from "./h2_frames.ts";
import type { CallRecord } from "./load_record.ts";
import { PendingCalls } from "./pending_calls.ts";

/** Window of a connection, and table of a peer, until someone says otherwise. */
const DEFAULT_WINDOW_BYTES = 65_535;
const DEFAULT_TABLE_BYTES = 4_096;
/** The window that we give the peer, and the part of it after which we give it anew. */
const OUR_WINDOW_BYTES = 2 ** 30;
const REFILL_BYTES = 2 ** 24;
/** Octets that are gathered for one write. */
const OUTPUT_BYTES = 65_536;
/** Longest call: HEADERS frame and DATA frame. */
const MAX_CALL_BYTES = 2 * MAX_BODY_BYTES;

/** What a connection does. */
export interface LoadConnectionOptions {
  readonly host: string;
  readonly port: number;
  /** Certificate that the peer's is signed by; absent for plain text. */
  readonly ca?: string | undefined;
  readonly path: string;
  readonly inFlight: number;
  readonly expected: Expectation;
  readonly record: CallRecord;
  /** The next call to make, or nothing when it is time to stop; absent where calls are only offered. */
  readonly nextCall?: ((now: number) => LoadCall | undefined) | undefined;
  /** Nothing to make is a pause: the connection stays open, and `resume` asks again. */
  readonly isPausable?: true;
  /** Ends the connection, answered or not. */
  readonly deadline: AbortSignal;
}

/** One connection that keeps calls in flight, checks every answer, and records it. */
export class LoadConnection {
  readonly #options: LoadConnectionOptions;
  readonly #socket: Socket;
  readonly #reader = new FrameReader();
  readonly #pending: PendingCalls;
  readonly #answers: AnswerReader;
  readonly #takeFrame = (frame: Frame) => this.#take(frame);
  readonly #output = new Uint8Array(OUTPUT_BYTES);
  readonly #waiting: { readonly call: LoadCall; readonly start: number }[] = [];
  readonly #ready = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<void>();
  #heads: CallHeads | undefined;
  #isStopping = false;
  #nextStreamId = 1;
  #maxStreams: number;
  #sendWindow = DEFAULT_WINDOW_BYTES;
  #receivedBytes = 0;
  #written = 0;
  #lost = "connection closed";
  #now = 0;

  constructor(options: LoadConnectionOptions) {
    this.#options = options;
    this.#maxStreams = options.inFlight;
    this.#pending = new PendingCalls(options.inFlight);
    const { expected, record } = options;
    this.#answers = new AnswerReader({ pending: this.#pending, expected, record });
    this.#socket = openSocket(options, () => this.#greet());
    this.#socket.on("data", (chunk: Uint8Array) => this.#read(chunk));
    this.#socket.on("error", (error: Error) => this.#lost = error.message);
    this.#socket.on("close", () => this.#end());
    options.deadline.addEventListener("abort", () => {
      this.#lost = "no answer before the deadline";
      this.#socket.destroy();
    }, { once: true });
  }

  /** Settles when calls can begin, or when they never will. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Settles when the last call is answered or lost. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Begins a call that was due at `start`, now or as soon as there is room. */
  offer(call: LoadCall, start: number): void {
    this.#waiting.push({ call, start });
    this.#fill();
  }

  /** Asks for calls again after a pause. */
  resume(): void {
    this.#now = performance.now();
    this.#fill();
  }

  /** No further call will be offered. */
  finish(): void {
    this.#isStopping = true;
    this.#endWhenIdle();
  }

  #greet(): void {
    const settings = settingsFrame([[SETTINGS.ENABLE_PUSH, 0], [
      SETTINGS.INITIAL_WINDOW_SIZE,
      OUR_WINDOW_BYTES,
    ]]);
    this.#socket.write(PREFACE);
    this.#socket.write(settings);
    this.#socket.write(windowUpdateFrame(OUR_WINDOW_BYTES - DEFAULT_WINDOW_BYTES));
  }

  #read(chunk: Uint8Array): void {
    this.#now = performance.now();
    try {
      this.#reader.read(chunk, this.#takeFrame);
    } catch (error) {
      this.#lost = error instanceof Error ? error.message : String(error);
      this.#socket.destroy();
      return;
    }
    this.#fill();
  }

  #take(frame: Frame): void {
    switch (frame.type) {
      case FRAME_TYPES.SETTINGS:
        return this.#takeSettings(frame);
      case FRAME_TYPES.PING:
        if ((frame.flags & FLAGS.ACK) === 0) this.#acknowledge(FRAME_TYPES.PING, copied(frame));
        return;
      case FRAME_TYPES.GOAWAY:
        return this.#takeGoaway(frame);
      case FRAME_TYPES.WINDOW_UPDATE:
        // Bodies are far smaller than a stream's window, so only the connection's one matters.
        if (frame.streamId === 0) this.#sendWindow += number31(frame.bytes, frame.start);
        return;
      case FRAME_TYPES.PUSH_PROMISE:
        throw new RangeError("Cannot take PUSH_PROMISE: push was switched off");
      case FRAME_TYPES.DATA:
        this.#receivedBytes += frame.end - frame.start;
        if (this.#receivedBytes >= REFILL_BYTES) this.#refill();
    }
    this.#answers.take(frame, this.#now);
  }

  #refill(): void {
    this.#socket.write(windowUpdateFrame(this.#receivedBytes));
    this.#receivedBytes = 0;
  }

  #takeSettings(frame: Frame): void {
    if ((frame.flags & FLAGS.ACK) !== 0) return;
    const { host, port, ca, path, inFlight } = this.#options;
    const values = settingsOf(frame);
    const window = values.get(SETTINGS.INITIAL_WINDOW_SIZE) ?? DEFAULT_WINDOW_BYTES;
    if (window < MAX_BODY_BYTES) {
      throw new RangeError(
        `Cannot use stream window "${window}": at least ${MAX_BODY_BYTES} bytes are needed`,
      );
    }
    this.#maxStreams = Math.min(values.get(SETTINGS.MAX_CONCURRENT_STREAMS) ?? Infinity, inFlight);
    this.#acknowledge(FRAME_TYPES.SETTINGS, new Uint8Array(0));
    this.#heads ??= callHeads([
      [":method", "POST"],
      [":scheme", ca === undefined ? "http" : "https"],
      [":path", path],
      [":authority", `${host}:${port}`],
      ["content-type", "application/grpc"],
      ["te", "trailers"],
    ], values.get(SETTINGS.HEADER_TABLE_SIZE) ?? DEFAULT_TABLE_BYTES);
    this.#ready.resolve();
  }

  #takeGoaway(frame: Frame): void {
    const lastStreamId = number31(frame.bytes, frame.start);
    const text = `GOAWAY with code ${number31(frame.bytes, frame.start + 4)}`;
    this.#isStopping = true;
    this.#options.record.error(`${text}: the connection ended early`);
    for (const streamId of this.#pending.streamIds()) {
      if (streamId > lastStreamId) this.#answers.fail(streamId, `${text}: call not taken`);
    }
  }

  /** Begins calls until enough are in flight, all of them in one write. */
  #fill(): void {
    const heads = this.#heads;
    if (heads === undefined) return;
    while (this.#pending.size < this.#maxStreams && this.#pending.hasRoom(this.#nextStreamId)) {
      // The window is looked at first, because a call that was taken has to be made.
      if (this.#sendWindow < MAX_BODY_BYTES) break;
      const offered = this.#waiting.shift();
      const call = offered?.call ?? this.#nextCall();
      if (call === undefined) break;
      this.#begin(call, offered?.start ?? this.#now, heads);
    }
    this.#flush();
    this.#endWhenIdle();
  }

  #nextCall(): LoadCall | undefined {
    const { nextCall, isPausable } = this.#options;
    if (nextCall === undefined || this.#isStopping) return undefined;
    const call = nextCall(this.#now);
    if (call === undefined && isPausable !== true) this.#isStopping = true;
    return call;
  }

  #begin(call: LoadCall, start: number, heads: CallHeads): void {
    if (this.#written + MAX_CALL_BYTES > OUTPUT_BYTES) this.#flush();
    const streamId = this.#nextStreamId;
    this.#nextStreamId += 2;
    this.#place(streamId === 1 ? heads.first : heads.later, streamId);
    this.#place(call.frame, streamId);
    this.#sendWindow -= call.body.length;
    this.#pending.begin(streamId, call, start);
    this.#options.record.begin(start);
  }

  /** Copies a frame to the output and writes the number of its stream in. */
  #place(frame: Uint8Array, streamId: number): void {
    const output = this.#output;
    const at = this.#written;
    const { length } = frame;
    // Octet by octet, because for so few of them that costs less than a call of `set`.
    for (let index = 0; index < length; index++) output[at + index] = frame[index] ?? 0;
    output[at + 5] = streamId >>> 24;
    output[at + 6] = streamId >>> 16;
    output[at + 7] = streamId >>> 8;
    output[at + 8] = streamId;
    this.#written = at + length;
  }

  #flush(): void {
    if (this.#written === 0) return;
    // A copy, because the socket may not have written it when the output is filled again.
    this.#socket.write(this.#output.slice(0, this.#written));
    this.#written = 0;
  }

  #acknowledge(type: number, payload: Uint8Array): void {
    this.#socket.write(encodeFrame(type, payload, { flags: FLAGS.ACK }));
  }

  #endWhenIdle(): void {
    if (this.#isStopping && this.#pending.size === 0 && this.#waiting.length === 0) this.#socket.destroy();
  }

  #end(): void {
    const { record } = this.#options;
    const [begun, offered] = [this.#pending.size, this.#waiting.length];
    if (begun > 0) record.lost(this.#lost, begun);
    if (offered > 0) record.error(this.#lost, offered);
    if (begun + offered === 0 && !this.#isStopping) record.error(this.#lost);
    // Who resumes it begins nothing.
    this.#isStopping = true;
    this.#ready.resolve();
    this.#closed.resolve();
  }
}

function openSocket({ host, port, ca }: LoadConnectionOptions, onOpen: () => void): Socket {
  if (ca === undefined) {
    const socket = connect({ host, port, noDelay: true });
    socket.on("connect", onOpen);
    return socket;
  }
  const socket = connectTls({ host, port, ca, ALPNProtocols: ["h2"], servername: "localhost" });
  socket.on("secureConnect", () => {
    if (socket.alpnProtocol !== "h2") {
      return void socket.destroy(new Error(`the peer chose "${socket.alpnProtocol}" instead of h2`));
    }
    socket.setNoDelay(true);
    onOpen();
  });
  return socket;
}

function settingsOf({ bytes, start, end }: Frame): Map<number, number> {
  const view = new DataView(bytes.buffer, bytes.byteOffset + start, end - start);
  const values = new Map<number, number>();
  for (let at = 0; at + 6 <= view.byteLength; at += 6) values.set(view.getUint16(at), view.getUint32(at + 2));
  return values;
}
