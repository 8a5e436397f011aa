/** The first bytes of every HTTP/2 client (RFC 9113, section 3.4). */
export const PREFACE = new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Bytes before the payload of a frame. */
export const FRAME_HEADER_BYTES = 9;
/** Largest payload that is accepted, the minimum that the RFC allows. */
export const MAX_FRAME_BYTES = 16_384;

/** Frame types (RFC 9113, section 6). */
export const FRAME = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

/** Flags; the meaning of a bit depends on the frame type. */
export const FLAG = { ACK: 1, END_STREAM: 1, END_HEADERS: 4, PADDED: 8, PRIORITY: 32 } as const;

/** Settings by their number (RFC 9113, section 6.5.2). */
export const SETTING = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const;

/** Error codes (RFC 9113, section 7). */
export const ERROR_CODES = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  SETTINGS_TIMEOUT: 4,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  CONNECT_ERROR: 10,
  ENHANCE_YOUR_CALM: 11,
  INADEQUATE_SECURITY: 12,
  HTTP_1_1_REQUIRED: 13,
} as const;

/** The name of an error code. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** A protocol that a peer may speak by mistake. */
export type OtherProtocol = "HTTP/1.1" | "TLS";

/** The peer broke a rule of the connection, which is closed by a GOAWAY with this code and text. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  readonly code: ErrorCode;
  /** The protocol of the peer where it is recognized and is not HTTP/2. */
  readonly protocol: OtherProtocol | undefined;

  constructor(code: ErrorCode, message: string, protocol?: OtherProtocol) {
    super(message);
    this.code = code;
    this.protocol = protocol;
  }
}

/** The peer broke a rule of one stream, which alone is reset. */
export class StreamError extends Error {
  override readonly name = "StreamError";
  readonly code: ErrorCode;
  readonly streamId: number;

  constructor(code: ErrorCode, streamId: number, message: string) {
    super(message);
    this.code = code;
    this.streamId = streamId;
  }
}

/** The bytes of one frame. */
export function encodeFrame(type: number, payload: Uint8Array, options: {
  readonly flags?: number;
  readonly streamId?: number;
} = {}): Uint8Array {
  const frame = new Uint8Array(FRAME_HEADER_BYTES + payload.length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, payload.length * 256 + type);
  view.setUint8(4, options.flags ?? 0);
  view.setUint32(5, options.streamId ?? 0);
  frame.set(payload, FRAME_HEADER_BYTES);
  return frame;
}

/** The big-endian unsigned 32-bit integer at `at`; absent bytes count as 0. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) |
    (bytes[at + 3] ?? 0)) >>> 0;
}

/** A padded payload without its length byte and its padding. */
export function unpadded(payload: Uint8Array): Uint8Array {
  const padding = payload[0];
  if (padding === undefined || padding >= payload.length) {
    throw new ConnectionError("PROTOCOL_ERROR", "the padding is as long as the frame");
  }
  return payload.subarray(1, payload.length - padding);
}

/** Receiver of the frames of a reader. */
interface FrameTaker {
  /** Takes a frame, whose payload is a view that is only valid during the call. */
  take(type: number, flags: number, streamId: number, payload: Uint8Array, now: number): void;
  /**
   * Takes the frames of a whole call that begins with HEADERS at a position of these bytes; returns where they end, or
   * the same position if they are to be taken one by one.
   */
  takeCall(bytes: Uint8Array, at: number, now: number): number;
  /** True if reading goes on after each of these. */
  goesOn(): boolean;
}

const NO_BYTES = new Uint8Array(0);

/** Splits the bytes of one peer into frames, after the preface if it is a client. Throws `ConnectionError` for a bad one. */
export class FrameReader {
  readonly #taker: FrameTaker;
  /** Begins with the bytes that were received and not handed on yet; the room after them is for the next ones. */
  #buffer: Uint8Array = NO_BYTES;
  /** Their number. */
  #kept = 0;
  #prefaced: boolean;

  constructor(taker: FrameTaker, { isOfServer = false } = {}) {
    this.#taker = taker;
    this.#prefaced = isOfServer;
  }

  /** Takes bytes that arrived at `now` and hands on frames as long as they are accepted. */
  read(chunk: Uint8Array, now: number): void {
    const bytes = this.#kept === 0 ? chunk : this.#appended(chunk);
    const { length: total } = bytes;
    let at = 0;
    if (!this.#prefaced) {
      at = this.#readPreface(bytes);
      if (!this.#prefaced) return this.#keepFrom(bytes, 0);
    }
    const taker = this.#taker;
    while (total - at >= FRAME_HEADER_BYTES) {
      const length = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
      if (length > MAX_FRAME_BYTES) {
        throw new ConnectionError("FRAME_SIZE_ERROR", `a frame has ${length} bytes`);
      }
      const start = at + FRAME_HEADER_BYTES;
      const end = start + length;
      if (end > total) break;
      const type = bytes[at + 3] ?? 0;
      if (type === FRAME.HEADERS) {
        const callEnd = taker.takeCall(bytes, at, now);
        if (callEnd > at) {
          at = callEnd;
          if (taker.goesOn()) continue;
          break;
        }
      }
      const flags = bytes[at + 4] ?? 0;
      const streamId = readUint32(bytes, at + 5) & 0x7fffffff;
      at = end;
      taker.take(type, flags, streamId, bytes.subarray(start, end), now);
      if (!taker.goesOn()) break;
    }
    this.#keepFrom(bytes, at);
  }

  /** Takes bytes and hands on nothing before the next `read`. */
  keep(chunk: Uint8Array): void {
    if (chunk.length > 0) this.#kept = this.#appended(chunk).length;
  }

  /** The bytes that are kept and these. The buffer doubles, so that many small pieces of a frame are copied once. */
  #appended(chunk: Uint8Array): Uint8Array {
    const total = this.#kept + chunk.length;
    if (total > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(total, 2 * this.#kept));
      larger.set(this.#buffer.subarray(0, this.#kept));
      this.#buffer = larger;
    }
    this.#buffer.set(chunk, this.#kept);
    return this.#buffer.subarray(0, total);
  }

  /** Keeps the rest: a copy, because a view would keep the whole buffer of a chunk alive. */
  #keepFrom(bytes: Uint8Array, at: number): void {
    this.#kept = bytes.length - at;
    const isHere = at === 0 && bytes.buffer === this.#buffer.buffer;
    if (!isHere) this.#buffer = this.#kept === 0 ? NO_BYTES : bytes.slice(at);
  }

  /** Checks as much of the preface as has arrived; returns its length. */
  #readPreface(bytes: Uint8Array): number {
    const length = Math.min(bytes.length, PREFACE.length);
    for (let index = 0; index < length; index++) {
      if (bytes[index] !== PREFACE[index]) {
        throw new ConnectionError(
          "PROTOCOL_ERROR",
          "this is not HTTP/2",
          protocolOf(bytes.subarray(0, length)),
        );
      }
    }
    this.#prefaced = length === PREFACE.length;
    return length;
  }
}

const TLS_HANDSHAKE = 0x16;
const TLS_MAJOR_VERSION = 3;
const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/** The protocol of a peer that begins with these bytes. */
function protocolOf(first: Uint8Array): OtherProtocol | undefined {
  const [type, version = TLS_MAJOR_VERSION] = first;
  if (type === TLS_HANDSHAKE && version === TLS_MAJOR_VERSION) return "TLS";
  const text = String.fromCharCode(...first);
  const isRequest = METHODS.some((name) => `${name} `.startsWith(text) || text.startsWith(`${name} `));
  return isRequest ? "HTTP/1.1" : undefined;
}
