/** What every HTTP/2 client sends first (RFC 9113, section 3.4). */
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
  ENHANCE_YOUR_CALM: 11,
} as const;

/** The name of an error code. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** The peer broke a rule of the connection, which is closed by a GOAWAY with this code and text. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** A protocol that a peer may speak by mistake. */
export type OtherProtocol = "HTTP/1.1" | "TLS";

/** The connection does not begin with the HTTP/2 preface. */
export class PrefaceError extends ConnectionError {
  /** Absent when it is not recognized. */
  readonly protocol: OtherProtocol | undefined;

  constructor(protocol: OtherProtocol | undefined) {
    super("PROTOCOL_ERROR", "this is not HTTP/2");
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

/** Both, concatenated. */
export function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
