import { ConnectionError, FLAG, FRAME, readUint32, StreamError } from "./frames.ts";
import { readSettings } from "./peer_settings.ts";
import type { RateGuard } from "./rate_guard.ts";
import type { Sender } from "./sender.ts";
import type { ServerStream } from "./server_stream.ts";
import type { StreamIds } from "./stream_ids.ts";

/** What control frames have their effect on. */
export interface ControlFramesOptions {
  readonly sender: Sender;
  readonly streams: ReadonlyMap<number, ServerStream>;
  readonly ids: StreamIds;
  /** Bounds frames that ask for nothing. */
  readonly noise: RateGuard;
  /** Bounds PING. */
  readonly pings: RateGuard;
  /** A PING of ours is answered. */
  readonly onPong: (payload: Uint8Array) => void;
}

/** Answers the frames of one peer that are about the connection or its windows, and not about a call. */
export class ControlFrames {
  readonly #options: ControlFramesOptions;
  #settled = false;

  constructor(options: ControlFramesOptions) {
    this.#options = options;
  }

  /** SETTINGS have come, which is what every client sends first. */
  get settled(): boolean {
    return this.#settled;
  }

  /** Takes a frame that is none of DATA, HEADERS, CONTINUATION and RST_STREAM. */
  take(type: number, flags: number, streamId: number, payload: Uint8Array, now: number): void {
    if (type === FRAME.WINDOW_UPDATE) return this.#onWindowUpdate(streamId, payload);
    const { noise, pings } = this.#options;
    if (!(type === FRAME.PING ? pings : noise).allows(now)) {
      throw new ConnectionError("ENHANCE_YOUR_CALM", "too many frames that ask for nothing");
    }
    if (type === FRAME.SETTINGS) this.#onSettings(flags, streamId, payload);
    else if (type === FRAME.PING) this.#onPing(flags, streamId, payload);
    else if (type === FRAME.PRIORITY) checkPriority(streamId, payload);
    else if (type === FRAME.GOAWAY) checkGoAway(streamId, payload);
    else if (type === FRAME.PUSH_PROMISE) throw new ConnectionError("PROTOCOL_ERROR", "a client cannot push");
  }

  #onSettings(flags: number, streamId: number, payload: Uint8Array): void {
    if (isSettingsAck(flags, streamId, payload)) {
      if (!this.#settled) throw new ConnectionError("PROTOCOL_ERROR", "the first SETTINGS is an ACK");
      return;
    }
    this.#settled = true;
    const { sender, streams } = this.#options;
    const initialWindow = readSettings(payload);
    sender.output.frame(0, FRAME.SETTINGS, FLAG.ACK, 0);
    if (initialWindow !== undefined) sender.resize(initialWindow, streams.values());
  }

  #onPing(flags: number, streamId: number, payload: Uint8Array): void {
    checkPing(streamId, payload);
    if ((flags & FLAG.ACK) !== 0) return this.#options.onPong(payload);
    const { output } = this.#options.sender;
    output.frame(8, FRAME.PING, FLAG.ACK, 0);
    output.bytes(payload);
  }

  #onWindowUpdate(streamId: number, payload: Uint8Array): void {
    const { sender, streams, ids } = this.#options;
    const increment = readIncrement(streamId, payload, ids.last);
    if (streamId === 0) return sender.widen(increment);
    const stream = streams.get(streamId);
    if (stream !== undefined) sender.widenStream(stream, increment);
  }
}

/** Checks a RST_STREAM frame; its code makes no difference. */
export function checkReset(streamId: number, payload: Uint8Array, lastStreamId: number): void {
  if (payload.length !== 4) throw new ConnectionError("FRAME_SIZE_ERROR", "RST_STREAM is not 4 octets");
  if (streamId === 0 || streamId > lastStreamId) {
    throw new ConnectionError("PROTOCOL_ERROR", `RST_STREAM on idle stream ${streamId}`);
  }
}

/** A PRIORITY frame has no effect: the RFC has given priorities up. */
function checkPriority(streamId: number, payload: Uint8Array): void {
  if (streamId === 0) throw new ConnectionError("PROTOCOL_ERROR", "PRIORITY on stream 0");
  if (payload.length !== 5) throw new StreamError("FRAME_SIZE_ERROR", streamId, "PRIORITY is not 5 octets");
  if ((readUint32(payload, 0) & 0x7fffffff) === streamId) {
    throw new StreamError("PROTOCOL_ERROR", streamId, "a stream depends on itself");
  }
}

/** The GOAWAY of a client has no effect: the client ends the connection itself. */
function checkGoAway(streamId: number, payload: Uint8Array): void {
  if (streamId !== 0) throw new ConnectionError("PROTOCOL_ERROR", `GOAWAY on stream ${streamId}`);
  if (payload.length < 8) throw new ConnectionError("FRAME_SIZE_ERROR", "GOAWAY has fewer than 8 octets");
}

function checkPing(streamId: number, payload: Uint8Array): void {
  if (streamId !== 0) throw new ConnectionError("PROTOCOL_ERROR", `PING on stream ${streamId}`);
  if (payload.length !== 8) {
    throw new ConnectionError("FRAME_SIZE_ERROR", `PING of ${payload.length} octets`);
  }
}

/** Whether SETTINGS acknowledge ours; checks everything but their values. */
function isSettingsAck(flags: number, streamId: number, payload: Uint8Array): boolean {
  if (streamId !== 0) throw new ConnectionError("PROTOCOL_ERROR", `SETTINGS on stream ${streamId}`);
  if ((flags & FLAG.ACK) === 0) return false;
  if (payload.length > 0) throw new ConnectionError("FRAME_SIZE_ERROR", "SETTINGS with ACK has a payload");
  return true;
}

/** How many octets more a WINDOW_UPDATE frame lets in; stream 0 is the connection. */
function readIncrement(streamId: number, payload: Uint8Array, lastStreamId: number): number {
  if (payload.length !== 4) throw new ConnectionError("FRAME_SIZE_ERROR", "WINDOW_UPDATE is not 4 octets");
  if (streamId > lastStreamId) {
    throw new ConnectionError("PROTOCOL_ERROR", `WINDOW_UPDATE on idle stream ${streamId}`);
  }
  const increment = readUint32(payload, 0) & 0x7fffffff;
  if (increment > 0) return increment;
  if (streamId === 0) throw new ConnectionError("PROTOCOL_ERROR", "WINDOW_UPDATE of 0");
  throw new StreamError("PROTOCOL_ERROR", streamId, "WINDOW_UPDATE of 0");
}
