import { ConnectionError, FLAG, FRAME, MAX_FRAME_BYTES, readUint32, SETTING, StreamError } from "./frames.ts";
import { LIMITS } from "./limits.ts";
import type { Output } from "./output.ts";
import type { RateGuard } from "./rate_guard.ts";
import { DEFAULT_WINDOW, type FrameSender, MAX_WINDOW, type OutgoingStream } from "./frame_sender.ts";

const LARGEST_FRAME_BYTES = 2 ** 24 - 1;
const SETTING_BYTES = 6;
const OURS = [
  [SETTING.MAX_CONCURRENT_STREAMS, LIMITS.streams],
  [SETTING.INITIAL_WINDOW_SIZE, LIMITS.streamWindow],
  [SETTING.MAX_HEADER_LIST_SIZE, LIMITS.headerListBytes],
] as const;

/** The parts of a connection that control frames act on. */
interface ControlFramesOptions<Stream extends OutgoingStream> {
  readonly sender: FrameSender<Stream>;
  /** The peer is a server; a client when absent. */
  readonly isOfServer?: boolean;
  /** The open streams on which more may be sent, by their numbers. */
  readonly streams: { get(id: number): Stream | undefined; values(): Iterable<Stream> };
  /** The highest stream that was opened. */
  readonly lastId: () => number;
  /** Limits frames of a client that ask for nothing. */
  readonly noise?: RateGuard;
  /** Limits PING frames of a client. */
  readonly pings?: RateGuard;
  /** The peer has sent SETTINGS, which are acknowledged. */
  readonly onSettings?: (settings: PeerSettings, isFirst: boolean) => void;
  /** A PING of ours is answered. */
  readonly onPong: (payload: Uint8Array) => void;
  /** A server ends the connection. */
  readonly onGoAway?: (payload: Uint8Array) => void;
}

/** Answers the frames of one peer that concern the connection or its windows instead of a call. */
export class ControlFrames<Stream extends OutgoingStream> {
  readonly #options: ControlFramesOptions<Stream>;
  #hasSettings = false;

  constructor(options: ControlFramesOptions<Stream>) {
    this.#options = options;
  }

  /** True if SETTINGS have arrived, which every peer sends first. */
  get hasSettings(): boolean {
    return this.#hasSettings;
  }

  /** Takes any frame but DATA, HEADERS, CONTINUATION and RST_STREAM. */
  take(type: number, flags: number, streamId: number, payload: Uint8Array, now: number): void {
    if (type === FRAME.WINDOW_UPDATE) return this.#onWindowUpdate(streamId, payload);
    const { noise, pings, onGoAway } = this.#options;
    if ((type === FRAME.PING ? pings : noise)?.allows(now) === false) {
      throw new ConnectionError("ENHANCE_YOUR_CALM", "too many frames that ask for nothing");
    }
    if (type === FRAME.SETTINGS) this.#onSettings(flags, streamId, payload);
    else if (type === FRAME.PING) this.#onPing(flags, streamId, payload);
    else if (type === FRAME.PRIORITY) checkPriority(streamId, payload);
    else if (type === FRAME.GOAWAY) {
      checkGoAway(streamId, payload);
      onGoAway?.(payload);
    } else if (type === FRAME.PUSH_PROMISE) {
      throw new ConnectionError("PROTOCOL_ERROR", "push is disabled");
    }
  }

  #onSettings(flags: number, streamId: number, payload: Uint8Array): void {
    if (isSettingsAck(flags, streamId, payload)) {
      if (!this.#hasSettings) throw new ConnectionError("PROTOCOL_ERROR", "the first SETTINGS is an ACK");
      return;
    }
    const isFirst = !this.#hasSettings;
    this.#hasSettings = true;
    const { sender, streams, isOfServer, onSettings } = this.#options;
    const settings = readSettings(payload, isOfServer === true ? 0 : 1);
    sender.output.frame(0, FRAME.SETTINGS, FLAG.ACK, 0);
    if (settings.initialWindow !== undefined) sender.resize(settings.initialWindow, streams.values());
    onSettings?.(settings, isFirst);
  }

  #onPing(flags: number, streamId: number, payload: Uint8Array): void {
    checkPing(streamId, payload);
    if ((flags & FLAG.ACK) !== 0) return this.#options.onPong(payload);
    const { output } = this.#options.sender;
    output.frame(8, FRAME.PING, FLAG.ACK, 0);
    output.bytes(payload);
  }

  #onWindowUpdate(streamId: number, payload: Uint8Array): void {
    const { sender, streams, lastId } = this.#options;
    const increment = readIncrement(streamId, payload, lastId());
    if (streamId === 0) return sender.widen(increment);
    const stream = streams.get(streamId);
    if (stream !== undefined) sender.widenStream(stream, increment);
  }
}

/** Sends our settings, and the window of the connection, which is not a setting. */
export function greet(
  { output }: { readonly output: Output },
  settings: readonly (readonly [setting: number, value: number])[] = OURS,
): void {
  output.frame(settings.length * SETTING_BYTES, FRAME.SETTINGS, 0, 0);
  for (const [setting, value] of settings) {
    output.byte(0);
    output.byte(setting);
    output.uint32(value);
  }
  output.frame(4, FRAME.WINDOW_UPDATE, 0, 0);
  output.uint32(LIMITS.connectionWindow - DEFAULT_WINDOW);
}

/** Checks a RST_STREAM frame. */
export function checkReset(streamId: number, payload: Uint8Array, lastStreamId: number): void {
  if (payload.length !== 4) throw new ConnectionError("FRAME_SIZE_ERROR", "RST_STREAM is not 4 bytes");
  if (streamId === 0 || streamId > lastStreamId) {
    throw new ConnectionError("PROTOCOL_ERROR", `RST_STREAM on idle stream ${streamId}`);
  }
}

/** A PRIORITY frame has no effect: RFC 9113 deprecates it. */
function checkPriority(streamId: number, payload: Uint8Array): void {
  if (streamId === 0) throw new ConnectionError("PROTOCOL_ERROR", "PRIORITY on stream 0");
  if (payload.length !== 5) throw new StreamError("FRAME_SIZE_ERROR", streamId, "PRIORITY is not 5 bytes");
  if ((readUint32(payload, 0) & 0x7fffffff) === streamId) {
    throw new StreamError("PROTOCOL_ERROR", streamId, "a stream depends on itself");
  }
}

/** Checks a GOAWAY frame. That of a client has no effect: the client ends the connection itself. */
function checkGoAway(streamId: number, payload: Uint8Array): void {
  if (streamId !== 0) throw new ConnectionError("PROTOCOL_ERROR", `GOAWAY on stream ${streamId}`);
  if (payload.length < 8) throw new ConnectionError("FRAME_SIZE_ERROR", "GOAWAY has fewer than 8 bytes");
}

/** Checks a PING frame. */
function checkPing(streamId: number, payload: Uint8Array): void {
  if (streamId !== 0) throw new ConnectionError("PROTOCOL_ERROR", `PING on stream ${streamId}`);
  if (payload.length !== 8) {
    throw new ConnectionError("FRAME_SIZE_ERROR", `PING of ${payload.length} bytes`);
  }
}

/** True if SETTINGS acknowledge ours; checks everything but the values. */
function isSettingsAck(flags: number, streamId: number, payload: Uint8Array): boolean {
  if (streamId !== 0) throw new ConnectionError("PROTOCOL_ERROR", `SETTINGS on stream ${streamId}`);
  if ((flags & FLAG.ACK) === 0) return false;
  if (payload.length > 0) throw new ConnectionError("FRAME_SIZE_ERROR", "SETTINGS with ACK has a payload");
  return true;
}

/** By how many bytes a WINDOW_UPDATE frame enlarges a window; stream 0 is the connection. */
function readIncrement(streamId: number, payload: Uint8Array, lastStreamId: number): number {
  if (payload.length !== 4) throw new ConnectionError("FRAME_SIZE_ERROR", "WINDOW_UPDATE is not 4 bytes");
  if (streamId > lastStreamId) {
    throw new ConnectionError("PROTOCOL_ERROR", `WINDOW_UPDATE on idle stream ${streamId}`);
  }
  const increment = readUint32(payload, 0) & 0x7fffffff;
  if (increment > 0) return increment;
  if (streamId === 0) throw new ConnectionError("PROTOCOL_ERROR", "WINDOW_UPDATE of 0");
  throw new StreamError("PROTOCOL_ERROR", streamId, "WINDOW_UPDATE of 0");
}

/** The values of a SETTINGS frame, as far as they concern what is sent to its peer. */
interface PeerSettings {
  initialWindow?: number;
  maxStreams?: number;
  tableBytes?: number;
}

/** Checks the payload of a SETTINGS frame; returns the last value of each setting in it. */
function readSettings(payload: Uint8Array, maxPush: number): PeerSettings {
  if (payload.length % SETTING_BYTES !== 0) {
    throw new ConnectionError("FRAME_SIZE_ERROR", "SETTINGS is not a multiple of 6 bytes");
  }
  const settings: PeerSettings = {};
  for (let at = 0; at < payload.length; at += SETTING_BYTES) {
    const setting = ((payload[at] ?? 0) << 8) | (payload[at + 1] ?? 0);
    const value = readUint32(payload, at + 2);
    if (setting === SETTING.ENABLE_PUSH && value > maxPush) {
      throw new ConnectionError("PROTOCOL_ERROR", `ENABLE_PUSH is ${value}`);
    }
    if (setting === SETTING.MAX_FRAME_SIZE && (value < MAX_FRAME_BYTES || value > LARGEST_FRAME_BYTES)) {
      throw new ConnectionError("PROTOCOL_ERROR", `MAX_FRAME_SIZE is ${value}`);
    }
    if (setting === SETTING.INITIAL_WINDOW_SIZE && value > MAX_WINDOW) {
      throw new ConnectionError("FLOW_CONTROL_ERROR", `INITIAL_WINDOW_SIZE is ${value}`);
    }
    if (setting === SETTING.INITIAL_WINDOW_SIZE) settings.initialWindow = value;
    else if (setting === SETTING.MAX_CONCURRENT_STREAMS) settings.maxStreams = value;
    else if (setting === SETTING.HEADER_TABLE_SIZE) settings.tableBytes = value;
  }
  return settings;
}
