import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { errorText } from "../base/error_text.ts";
import { type HostAndPort, hostPort } from "../base/host_port.ts";
import { encodeFrame, FLAG, FRAME, PREFACE, SETTING } from "../grpc/native/frames.ts";
import { AnswerReader, type BodyCheck } from "./answer_reader.ts";
import { type LoadCall, MAX_BODY_BYTES } from "./call_source.ts";
import { FrameReader, number31 } from "./frame_reader.ts";
import {
  type CallHeads,
  callHeads,
  copied,
  type Frame,
  settingsFrame,
  windowUpdateFrame,
} from "./h2_frames.ts";
import type { CallRecord } from "./load_record.ts";
import { PendingCalls } from "./pending_calls.ts";

/** Window of a connection, and table of a peer, without a setting. */
const DEFAULT_WINDOW_BYTES = 65_535;
const DEFAULT_TABLE_BYTES = 4_096;
/** The window of the peer, and the part of it after which it is renewed. */
const OUR_WINDOW_BYTES = 2 ** 30;
const REFILL_BYTES = 2 ** 24;
/** Bytes that are collected for one write. */
const OUTPUT_BYTES = 65_536;
/** Longest call: HEADERS frame and DATA frame. */
const MAX_CALL_BYTES = 2 * MAX_BODY_BYTES;
/** Begun calls that are removed together from the offered ones. */
const MIN_REMOVED = 1_024;

/** A server to call. */
export interface LoadPeer {
  /** Host and port, or the path of a unix socket. */
  readonly address: HostAndPort | { readonly path: string };
  /** Absent without TLS. */
  readonly tls?: LoadTls | undefined;
}

/** PEM texts for TLS. */
export interface LoadTls {
  /** Authorities to trust instead of those of the runtime. */
  readonly ca?: string | undefined;
  /** The client certificate and its key. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** Options of `LoadConnection`. */
export interface LoadConnectionOptions {
  readonly peer: LoadPeer;
  /** Path of the method. */
  readonly path: string;
  readonly inFlight: number;
  readonly checkBody: BodyCheck;
  readonly record: CallRecord;
  /** The next call, or undefined to stop; absent where calls are only offered. */
  readonly nextCall?: ((now: number) => LoadCall | undefined) | undefined;
  /** Without a next call the connection stays open, and `resume` asks again. */
  readonly isPausable?: true;
  /** Closes the connection, even with calls in flight. */
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
  /** The first of them that has not begun. */
  #waitingFrom = 0;
  readonly #ready = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<void>();
  #heads: CallHeads | undefined;
  #isStopping = false;
  /** Why no further call can begin. */
  #refused: string | undefined;
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
    const { checkBody, record } = options;
    this.#answers = new AnswerReader({ pending: this.#pending, checkBody, record });
    this.#socket = openSocket(options.peer, () => this.#greet());
    this.#socket.on("data", (chunk: Uint8Array) => this.#read(chunk));
    this.#socket.on("error", (error: Error) => this.#lost = reasonOf(error));
    this.#socket.on("close", () => this.#end());
    options.deadline.addEventListener("abort", () => this.#destroy("no answer before the deadline"), {
      once: true,
    });
  }

  /** Settles when calls can begin, or when the connection has failed. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Settles when the connection is closed: the last call is answered or lost. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Offered calls that have not begun. */
  get waiting(): number {
    return this.#waiting.length - this.#waitingFrom;
  }

  /** Begins a call that was due at `start`, now or as soon as there is room. */
  offer(call: LoadCall, start: number): void {
    if (this.#refused !== undefined) return this.#options.record.error(this.#refused);
    this.#waiting.push({ call, start });
    this.#fill();
  }

  /** Asks for calls again after a pause. */
  resume(): void {
    this.#now = performance.now();
    this.#fill();
  }

  /** Closes the connection if calls cannot begin yet. */
  endUnlessReady(reason: string): void {
    if (this.#heads === undefined) this.#destroy(reason);
  }

  /** Begins no further calls than the offered ones, and closes the connection after the last answer. */
  finish(): void {
    this.#isStopping = true;
    this.#endWhenIdle();
  }

  #greet(): void {
    const settings = settingsFrame([[SETTING.ENABLE_PUSH, 0], [
      SETTING.INITIAL_WINDOW_SIZE,
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
      return this.#destroy(errorText(error));
    }
    this.#fill();
  }

  #take(frame: Frame): void {
    switch (frame.type) {
      case FRAME.SETTINGS:
        return this.#takeSettings(frame);
      case FRAME.PING:
        if ((frame.flags & FLAG.ACK) === 0) this.#acknowledge(FRAME.PING, copied(frame));
        return;
      case FRAME.GOAWAY:
        return this.#takeGoaway(frame);
      case FRAME.WINDOW_UPDATE:
        // Bodies are far smaller than the window of a stream, so only that of the connection matters.
        if (frame.streamId === 0) this.#sendWindow += number31(frame.bytes, frame.start);
        return;
      case FRAME.PUSH_PROMISE:
        throw new RangeError("Cannot take PUSH_PROMISE: push is disabled");
      case FRAME.DATA:
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
    if ((frame.flags & FLAG.ACK) !== 0) return;
    const { peer, path, inFlight } = this.#options;
    const values = settingsOf(frame);
    const window = values.get(SETTING.INITIAL_WINDOW_SIZE) ?? DEFAULT_WINDOW_BYTES;
    if (window < MAX_BODY_BYTES) {
      throw new RangeError(
        `Cannot use stream window "${window}": at least ${MAX_BODY_BYTES} bytes are required`,
      );
    }
    this.#maxStreams = Math.min(values.get(SETTING.MAX_CONCURRENT_STREAMS) ?? Infinity, inFlight);
    this.#acknowledge(FRAME.SETTINGS, new Uint8Array(0));
    this.#heads ??= callHeads([
      [":method", "POST"],
      [":scheme", peer.tls === undefined ? "http" : "https"],
      [":path", path],
      [":authority", "host" in peer.address ? hostPort(peer.address) : "localhost"],
      ["content-type", "application/grpc"],
      ["te", "trailers"],
    ], values.get(SETTING.HEADER_TABLE_SIZE) ?? DEFAULT_TABLE_BYTES);
    this.#ready.resolve();
  }

  #takeGoaway(frame: Frame): void {
    const lastStreamId = number31(frame.bytes, frame.start);
    const text = `GOAWAY with code ${number31(frame.bytes, frame.start + 4)}`;
    this.#isStopping = true;
    // A graceful end sends a second GOAWAY.
    if (this.#refused === undefined) {
      this.#refused = `${text}: the connection ended early`;
      this.#options.record.error(this.#refused, 1 + this.waiting);
      this.#waiting.length = this.#waitingFrom;
    }
    for (const streamId of this.#pending.streamIds()) {
      if (streamId > lastStreamId) this.#answers.fail(streamId, `${text}: call not taken`);
    }
  }

  /** Begins calls until enough are in flight, all of them in one write. */
  #fill(): void {
    const heads = this.#heads;
    if (heads === undefined) return;
    while (this.#pending.size < this.#maxStreams && this.#pending.hasRoom(this.#nextStreamId)) {
      // The window is checked first, because a taken call must begin.
      if (this.#sendWindow < MAX_BODY_BYTES) break;
      const offered = this.#takeWaiting();
      const call = offered?.call ?? this.#nextCall();
      if (call === undefined) break;
      this.#begin(call, offered?.start ?? this.#now, heads);
    }
    this.#flush();
    this.#endWhenIdle();
  }

  #takeWaiting() {
    const offered = this.#waiting[this.#waitingFrom];
    if (offered === undefined) return undefined;
    this.#waitingFrom++;
    // Removed in parts: each `shift` of a long array would move all of it.
    if (this.#waitingFrom >= MIN_REMOVED && 2 * this.#waitingFrom >= this.#waiting.length) {
      this.#waiting.splice(0, this.#waitingFrom);
      this.#waitingFrom = 0;
    }
    return offered;
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

  /** Copies a frame to the output, with the number of its stream. */
  #place(frame: Uint8Array, streamId: number): void {
    const output = this.#output;
    const at = this.#written;
    const { length } = frame;
    // Byte by byte: for so few of them, a call of `set` is slower.
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
    this.#socket.write(encodeFrame(type, payload, { flags: FLAG.ACK }));
  }

  #destroy(reason: string): void {
    this.#lost = reason;
    this.#socket.destroy();
  }

  #endWhenIdle(): void {
    if (this.#isStopping && this.#pending.size === 0 && this.waiting === 0) this.#socket.destroy();
  }

  #end(): void {
    const { record } = this.#options;
    const [begun, offered] = [this.#pending.size, this.waiting];
    if (begun > 0) record.lost(this.#lost, begun);
    if (offered > 0) record.error(this.#lost, offered);
    if (begun + offered === 0 && !this.#isStopping) record.error(this.#lost);
    this.#isStopping = true;
    this.#refused ??= this.#lost;
    this.#ready.resolve();
    this.#closed.resolve();
  }
}

function openSocket({ address, tls }: LoadPeer, onOpen: () => void): Socket {
  if (tls === undefined) {
    const socket = connect({ ...address, noDelay: true });
    socket.on("connect", onOpen);
    return socket;
  }
  const socket = connectTls({ ...address, ...tls, ALPNProtocols: ["h2"] });
  socket.on("secureConnect", () => {
    if (socket.alpnProtocol !== "h2") {
      return void socket.destroy(new Error(`the peer chose "${socket.alpnProtocol}" instead of h2`));
    }
    socket.setNoDelay(true);
    onOpen();
  });
  return socket;
}

/** Why a socket failed. */
function reasonOf(error: Error): string {
  const code = "code" in error ? error.code : undefined;
  return code === "ECONNREFUSED" ? "connection refused" : error.message;
}

function settingsOf({ bytes, start, end }: Frame): Map<number, number> {
  const view = new DataView(bytes.buffer, bytes.byteOffset + start, end - start);
  const values = new Map<number, number>();
  for (let at = 0; at + 6 <= view.byteLength; at += 6) values.set(view.getUint16(at), view.getUint32(at + 2));
  return values;
}
