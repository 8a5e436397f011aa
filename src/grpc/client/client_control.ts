import {
  checkGoAway,
  checkPing,
  isSettingsAck,
  readIncrement,
  readSettings,
} from "../native/control_frames.ts";
import type { FrameSender } from "../native/frame_sender.ts";
import { ConnectionError, FLAG, FRAME, readUint32 } from "../native/frames.ts";
import type { ClientCalls } from "./client_calls.ts";
import type { ClientCall } from "./client_call.ts";

/** The parts of a connection that the control frames of a server act on. */
interface ClientControlOptions {
  readonly sender: FrameSender<ClientCall>;
  readonly calls: ClientCalls;
  /** The server has sent its first SETTINGS. */
  readonly onReady: () => void;
  /** A PING of ours is answered. */
  readonly onPong: () => void;
  /** The server accepts no call after `lastId`. */
  readonly onGoAway: (lastId: number, code: number, text: string) => void;
}

/** Longest text of a server in an error. */
const MAX_TEXT = 200;

/** Answers the frames of a server that concern the connection or its windows instead of a call. */
export class ClientControl {
  readonly #options: ClientControlOptions;
  #hasSettings = false;

  constructor(options: ClientControlOptions) {
    this.#options = options;
  }

  /** True if SETTINGS have arrived, which every server sends first. */
  get hasSettings(): boolean {
    return this.#hasSettings;
  }

  /** Takes any frame but DATA, HEADERS, CONTINUATION and RST_STREAM. */
  take(type: number, flags: number, streamId: number, payload: Uint8Array): void {
    if (type === FRAME.WINDOW_UPDATE) this.#onWindowUpdate(streamId, payload);
    else if (type === FRAME.SETTINGS) this.#onSettings(flags, streamId, payload);
    else if (type === FRAME.PING) this.#onPing(flags, streamId, payload);
    else if (type === FRAME.GOAWAY) this.#onGoAway(streamId, payload);
    else if (type === FRAME.PUSH_PROMISE) throw new ConnectionError("PROTOCOL_ERROR", "push is disabled");
  }

  #onSettings(flags: number, streamId: number, payload: Uint8Array): void {
    if (isSettingsAck(flags, streamId, payload)) {
      if (!this.#hasSettings) throw new ConnectionError("PROTOCOL_ERROR", "the first SETTINGS is an ACK");
      return;
    }
    const isFirst = !this.#hasSettings;
    this.#hasSettings = true;
    const { sender, calls, onReady } = this.#options;
    const { initialWindow, maxStreams, tableBytes } = readSettings(payload, 0);
    sender.output.frame(0, FRAME.SETTINGS, FLAG.ACK, 0);
    if (tableBytes !== undefined) calls.heads.limitTable(tableBytes);
    if (isFirst || maxStreams !== undefined) calls.maxRunning = maxStreams ?? Infinity;
    if (initialWindow !== undefined) sender.resize(initialWindow, calls.sending());
    if (isFirst) onReady();
  }

  #onPing(flags: number, streamId: number, payload: Uint8Array): void {
    checkPing(streamId, payload);
    if ((flags & FLAG.ACK) !== 0) return this.#options.onPong();
    const { output } = this.#options.sender;
    output.frame(8, FRAME.PING, FLAG.ACK, 0);
    output.bytes(payload);
  }

  #onWindowUpdate(streamId: number, payload: Uint8Array): void {
    const { sender, calls } = this.#options;
    const increment = readIncrement(streamId, payload, calls.lastId);
    if (streamId === 0) return sender.widen(increment);
    const call = calls.get(streamId);
    if (call !== undefined && !call.isWhole) sender.widenStream(call, increment);
  }

  #onGoAway(streamId: number, payload: Uint8Array): void {
    checkGoAway(streamId, payload);
    const text = new TextDecoder().decode(payload.subarray(8, 8 + MAX_TEXT)).replace(/[^ -~]/g, "?");
    this.#options.onGoAway(readUint32(payload, 0) & 0x7fffffff, readUint32(payload, 4), text);
  }
}
