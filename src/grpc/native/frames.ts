/** What every HTTP/2 client sends first (RFC 9113, section 3.4). */
export const PREFACE = new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Octets before the payload of a frame. */
export const FRAME_HEADER_BYTES = 9;
/** Largest payload that is taken, the least that the RFC allows to announce. */
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

/** Flags; which one a bit means depends on the type of the frame. */
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

/** The peer broke a rule that concerns the whole connection: it is told why by GOAWAY and let go. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** What a peer speaks that was taken for one of HTTP/2. */
export type OtherProtocol = "HTTP/1.1" | "TLS";

/** The first that came is no preface. */
export class PrefaceError extends ConnectionError {
  /** Absent where nobody can tell. */
  readonly spoken: OtherProtocol | undefined;

  constructor(spoken: OtherProtocol | undefined) {
    super("PROTOCOL_ERROR", "this is no HTTP/2");
    this.spoken = spoken;
  }
}

/** The peer broke a rule that concerns one stream: that stream alone is reset. */
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

/** An unsigned 32-bit integer at `at`, highest octet first; absent octets count as 0. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) |
    (bytes[at + 3] ?? 0)) >>> 0;
}

/** What is left of a padded payload when its length octet and its padding are taken off. */
export function unpadded(payload: Uint8Array): Uint8Array {
  const padding = payload[0];
  if (padding === undefined || padding >= payload.length) {
    throw new ConnectionError("PROTOCOL_ERROR", "the padding is as long as the frame");
  }
  return payload.subarray(1, payload.length - padding);
}

/** Both, one behind the other. */
export function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
