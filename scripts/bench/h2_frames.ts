import type { HeaderField } from "../../src/grpc/native/hpack_decoder.ts";

/** What every HTTP/2 client sends first (RFC 9113, section 3.4). */
export const PREFACE = new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Octets before the payload of a frame. */
export const FRAME_HEADER_BYTES = 9;

/** Frame types by their name in RFC 9113. */
export const FRAME_TYPES = {
  DATA: 0,
  HEADERS: 1,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

/** Flags of frames; which one a bit means depends on the type. */
export const FLAGS = { ACK: 1, END_STREAM: 1, END_HEADERS: 4, PADDED: 8, PRIORITY: 32 } as const;

/** Settings by their name in RFC 9113, those that the bench looks at. */
export const SETTINGS = {
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
} as const;

/** One frame as it came. The payload is a view of what was read: copy it to keep it. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Uint8Array;
}

/** The octets of one frame. */
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

/** A SETTINGS frame with these identifiers and values. */
export function settingsFrame(
  settings: readonly (readonly [identifier: number, value: number])[],
): Uint8Array {
  const view = new DataView(new ArrayBuffer(6 * settings.length));
  for (const [index, [identifier, value]] of settings.entries()) {
    view.setUint16(6 * index, identifier);
    view.setUint32(6 * index + 2, value);
  }
  return encodeFrame(FRAME_TYPES.SETTINGS, new Uint8Array(view.buffer));
}

/** A WINDOW_UPDATE frame that lets the peer send `increment` more octets on the connection. */
export function windowUpdateFrame(increment: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, increment);
  return encodeFrame(FRAME_TYPES.WINDOW_UPDATE, new Uint8Array(view.buffer));
}

/** A header block of literals without indexing and without Huffman, so that it is the same for every call. */
export function encodeHeaderBlock(fields: readonly HeaderField[]): Uint8Array {
  const octets: number[] = [];
  for (const field of fields) {
    octets.push(0);
    for (const text of field) {
      if (text.length > 126) throw new RangeError(`Cannot encode header "${text}": at most 126 octets`);
      octets.push(text.length, ...new TextEncoder().encode(text));
    }
  }
  return Uint8Array.from(octets);
}

/** The longest body of a call: it fits into every frame and into every window that a server may sensibly give. */
export const MAX_BODY_BYTES = 1_024;

/** The octets of one call, HEADERS and DATA, for any stream: `placeCall` writes the stream's number in. */
export interface CallTemplate {
  readonly octets: Uint8Array;
  /** Where the second frame begins. */
  readonly bodyFrameAt: number;
  /** Octets that count against the windows of flow control. */
  readonly bodyBytes: number;
  /** The message without the prefix of gRPC. */
  readonly message: Uint8Array;
}

/** The template of a call with these header fields and this body. */
export function callTemplate(
  fields: readonly HeaderField[],
  body: Uint8Array,
  message: Uint8Array,
): CallTemplate {
  if (body.length > MAX_BODY_BYTES) {
    throw new RangeError(`Cannot send body of "${body.length}" bytes: at most ${MAX_BODY_BYTES}`);
  }
  const headers = encodeFrame(FRAME_TYPES.HEADERS, encodeHeaderBlock(fields), { flags: FLAGS.END_HEADERS });
  const rest = encodeFrame(FRAME_TYPES.DATA, body, { flags: FLAGS.END_STREAM });
  const octets = new Uint8Array(headers.length + rest.length);
  octets.set(headers);
  octets.set(rest, headers.length);
  return { octets, bodyFrameAt: headers.length, bodyBytes: body.length, message };
}

/** Copies the template to `at` of `target` as a call on the stream. */
export function placeCall(template: CallTemplate, target: DataView<ArrayBuffer>, options: {
  readonly at: number;
  readonly streamId: number;
}): void {
  new Uint8Array(target.buffer).set(template.octets, options.at);
  target.setUint32(options.at + 5, options.streamId);
  target.setUint32(options.at + template.bodyFrameAt + 5, options.streamId);
}

/** The payload without padding and without the priority that a HEADERS frame may carry. */
export function unpadded(frame: Frame): Uint8Array {
  const isPadded = (frame.flags & FLAGS.PADDED) !== 0;
  const hasPriority = frame.type === FRAME_TYPES.HEADERS && (frame.flags & FLAGS.PRIORITY) !== 0;
  if (!isPadded && !hasPriority) return frame.payload;
  const start = (isPadded ? 1 : 0) + (hasPriority ? 5 : 0);
  const end = frame.payload.length - (isPadded ? frame.payload[0] ?? 0 : 0);
  if (end < start) {
    throw new RangeError(`Cannot read frame of stream "${frame.streamId}": more padding than payload`);
  }
  return frame.payload.subarray(start, end);
}
