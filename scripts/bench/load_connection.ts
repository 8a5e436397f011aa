import { connect, type Socket } from "node:net";
import { Answer, type Expectation } from "./answer.ts";
import { FrameReader, joined, number31 } from "./frame_reader.ts";
import {
  type CallTemplate,
  encodeFrame,
  FLAGS,
  type Frame,
  FRAME_TYPES,
  MAX_BODY_BYTES,
  placeCall,
  PREFACE,
  SETTINGS,
  settingsFrame,
  unpadded,
  windowUpdateFrame,
} from "./h2_frames.ts";
import { HpackDecoder } from "../../src/grpc/native/hpack_decoder.ts";
import type { LoadRecord } from "./load_record.ts";

/** Window of a connection until someone says otherwise. */
const DEFAULT_WINDOW_BYTES = 65_535;
/** The window that we give the peer, and the part of it after which we give it anew. */
const OUR_WINDOW_BYTES = 2 ** 30;
const REFILL_BYTES = 2 ** 24;

/** What a connection does. */
export interface LoadConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly inFlight: number;
  readonly expect: Expectation;
  readonly record: LoadRecord;
  /** The next call to make, or nothing when it is time to stop. */
  readonly nextCall: (now: number) => CallTemplate | undefined;
  /** Ends the connection, answered or not. */
  readonly deadline: AbortSignal;
}

interface PendingCall {
  readonly start: number;
  readonly template: CallTemplate;
  readonly answer: Answer;
}

/** Opens a connection and keeps its calls in flight; settles when the last is answered or lost. */
export function runLoadConnection(options: LoadConnectionOptions): Promise<void> {
  return new Promise((resolve) => new LoadConnection(options, resolve));
}

class LoadConnection {
  readonly #options: LoadConnectionOptions;
  readonly #settle: () => void;
  readonly #socket: Socket;
  readonly #reader = new FrameReader();
  readonly #decoder = new HpackDecoder();
  readonly #pending = new Map<number, PendingCall>();
  #isReady = false;
  #isStopping = false;
  #nextStreamId = 1;
  #maxStreams: number;
  #sendWindow = DEFAULT_WINDOW_BYTES;
  #receivedBytes = 0;
  /** A header block whose CONTINUATION frames are not here yet. */
  #openBlock: Frame | undefined;
  #lost = "connection closed";
  #now = 0;

  constructor(options: LoadConnectionOptions, settle: () => void) {
    this.#options = options;
    this.#settle = settle;
    this.#maxStreams = options.inFlight;
    this.#socket = connect({ host: options.host, port: options.port, noDelay: true });
    this.#socket.on("connect", () => this.#greet());
    this.#socket.on("data", (chunk: Uint8Array) => this.#read(chunk));
    this.#socket.on("error", (error: Error) => this.#lost = error.message);
    this.#socket.on("close", () => this.#end());
    options.deadline.addEventListener("abort", () => {
      this.#lost = "no answer before the deadline";
      this.#socket.destroy();
    }, { once: true });
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
      this.#reader.read(chunk, (frame) => this.#take(frame));
    } catch (error) {
      this.#lost = error instanceof Error ? error.message : String(error);
      this.#socket.destroy();
      return;
    }
    if (this.#isReady) this.#fill();
  }

  #take(frame: Frame): void {
    if (this.#openBlock !== undefined && frame.type !== FRAME_TYPES.CONTINUATION) {
      throw new RangeError(`Cannot read frame of type "${frame.type}": a header block is not at its end`);
    }
    switch (frame.type) {
      case FRAME_TYPES.DATA:
        return this.#takeBody(frame);
      case FRAME_TYPES.HEADERS:
        return this.#takeBlock(frame, unpadded(frame));
      case FRAME_TYPES.CONTINUATION:
        return this.#continueBlock(frame);
      case FRAME_TYPES.RST_STREAM:
        return this.#fail(frame.streamId, `stream reset with code ${number31(frame.payload, 0)}`);
      case FRAME_TYPES.SETTINGS:
        return this.#takeSettings(frame);
      case FRAME_TYPES.PING:
        if ((frame.flags & FLAGS.ACK) === 0) this.#write(FRAME_TYPES.PING, frame.payload);
        return;
      case FRAME_TYPES.GOAWAY:
        return this.#takeGoaway(frame);
      case FRAME_TYPES.WINDOW_UPDATE:
        // Bodies are far smaller than a stream's window, so only the connection's one matters.
        if (frame.streamId === 0) this.#sendWindow += number31(frame.payload, 0);
        return;
      case FRAME_TYPES.PUSH_PROMISE:
        throw new RangeError("Cannot take PUSH_PROMISE: push was switched off");
    }
  }

  #takeBody(frame: Frame): void {
    this.#receivedBytes += frame.payload.length;
    if (this.#receivedBytes >= REFILL_BYTES) {
      this.#socket.write(windowUpdateFrame(this.#receivedBytes));
      this.#receivedBytes = 0;
    }
    this.#pending.get(frame.streamId)?.answer.takeBody(unpadded(frame));
    if ((frame.flags & FLAGS.END_STREAM) !== 0) this.#finish(frame.streamId);
  }

  #takeBlock(frame: Frame, block: Uint8Array): void {
    if ((frame.flags & FLAGS.END_HEADERS) === 0) {
      this.#openBlock = { ...frame, payload: block.slice() };
      return;
    }
    // Decoded even when nobody waits for it, because the block may change the dynamic table.
    const fields = this.#decoder.decode(block);
    this.#pending.get(frame.streamId)?.answer.takeFields(fields);
    if ((frame.flags & FLAGS.END_STREAM) !== 0) this.#finish(frame.streamId);
  }

  #continueBlock(frame: Frame): void {
    const open = this.#openBlock;
    if (open === undefined || open.streamId !== frame.streamId) {
      throw new RangeError(`Cannot continue header block of stream "${frame.streamId}": none is open`);
    }
    this.#openBlock = undefined;
    this.#takeBlock(
      { ...open, flags: open.flags | (frame.flags & FLAGS.END_HEADERS) },
      joined(open.payload, frame.payload),
    );
  }

  #takeSettings(frame: Frame): void {
    if ((frame.flags & FLAGS.ACK) !== 0) return;
    const view = new DataView(frame.payload.buffer, frame.payload.byteOffset, frame.payload.length);
    for (let at = 0; at + 6 <= view.byteLength; at += 6) {
      const value = view.getUint32(at + 2);
      const identifier = view.getUint16(at);
      if (identifier === SETTINGS.INITIAL_WINDOW_SIZE && value < MAX_BODY_BYTES) {
        throw new RangeError(
          `Cannot use stream window "${value}": at least ${MAX_BODY_BYTES} bytes are needed`,
        );
      }
      if (identifier === SETTINGS.MAX_CONCURRENT_STREAMS) {
        this.#maxStreams = Math.min(value, this.#options.inFlight);
      }
    }
    this.#write(FRAME_TYPES.SETTINGS, new Uint8Array(0));
    this.#isReady = true;
  }

  #takeGoaway(frame: Frame): void {
    const lastStreamId = number31(frame.payload, 0);
    const text = `GOAWAY with code ${number31(frame.payload, 4)}`;
    this.#isStopping = true;
    this.#options.record.error(`${text}: the connection ended early`);
    for (const streamId of [...this.#pending.keys()]) {
      if (streamId > lastStreamId) this.#fail(streamId, `${text}: call not taken`);
    }
  }

  /** Begins calls until enough are in flight, all of them in one write. */
  #fill(): void {
    const calls: CallTemplate[] = [];
    let size = 0;
    while (!this.#isStopping && this.#pending.size + calls.length < this.#maxStreams) {
      // The window is looked at first, because a call that was taken has to be made.
      if (this.#sendWindow < MAX_BODY_BYTES) break;
      const template = this.#options.nextCall(this.#now);
      if (template === undefined) {
        this.#isStopping = true;
        break;
      }
      this.#sendWindow -= template.bodyBytes;
      calls.push(template);
      size += template.octets.length;
    }
    if (calls.length > 0) this.#send(calls, size);
    if (this.#isStopping && this.#pending.size === 0) this.#socket.destroy();
  }

  #send(calls: readonly CallTemplate[], size: number): void {
    const octets = new DataView(new ArrayBuffer(size));
    let at = 0;
    for (const template of calls) {
      const streamId = this.#nextStreamId;
      this.#nextStreamId += 2;
      placeCall(template, octets, { at, streamId });
      at += template.octets.length;
      this.#pending.set(streamId, { start: this.#now, template, answer: new Answer() });
      this.#options.record.begin(this.#now);
    }
    this.#socket.write(new Uint8Array(octets.buffer));
  }

  #finish(streamId: number): void {
    const call = this.#pending.get(streamId);
    if (call === undefined) return;
    this.#pending.delete(streamId);
    const record = this.#options.record;
    record.answer(call.answer.statuses, { start: call.start, end: this.#now });
    const problem = call.answer.problem(this.#options.expect, call.template.message);
    if (problem !== undefined) record.error(problem);
  }

  #fail(streamId: number, text: string): void {
    if (this.#pending.delete(streamId)) this.#options.record.error(text);
  }

  #write(type: number, payload: Uint8Array): void {
    this.#socket.write(encodeFrame(type, payload, { flags: FLAGS.ACK }));
  }

  #end(): void {
    const isEarly = !this.#isStopping || this.#pending.size > 0;
    if (isEarly) this.#options.record.error(this.#lost, Math.max(1, this.#pending.size));
    this.#pending.clear();
    this.#settle();
  }
}
