import type { HeaderField } from "../grpc/native/hpack_decoder.ts";
import { encodeFrame, FLAG, FRAME } from "../grpc/native/frames.ts";

/** A part of some bytes. */
export interface ByteRange {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** A received frame; the range is its payload. The same object holds the next frame later. */
export interface Frame extends ByteRange {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
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
  return encodeFrame(FRAME.SETTINGS, new Uint8Array(view.buffer));
}

/** A WINDOW_UPDATE frame that lets the peer send `increment` more bytes on the connection. */
export function windowUpdateFrame(increment: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, increment);
  return encodeFrame(FRAME.WINDOW_UPDATE, new Uint8Array(view.buffer));
}

/** The HEADERS frames of a connection whose calls all have the same fields. */
export interface CallHeads {
  /** Of the first call: the peer adds each field to its table. */
  readonly first: Uint8Array;
  /** Of every later call: the fields by their index in that table, as real clients send them. */
  readonly later: Uint8Array;
}

/** The size that RFC 7541 adds for each entry, and the index of the newest entry. */
const ENTRY_OVERHEAD = 32;
const NEWEST_ENTRY = 62;

/** The HEADERS frames for these fields, for a peer with a table of this size. */
export function callHeads(fields: readonly HeaderField[], tableBytes: number): CallHeads {
  const size = fields.reduce((sum, [name, value]) => sum + name.length + value.length + ENTRY_OVERHEAD, 0);
  const isRemembered = size <= tableBytes;
  const first = headersFrame(encodeLiterals(fields, isRemembered ? 0x40 : 0));
  if (!isRemembered) return { first, later: first };
  // The first field is the oldest entry.
  const places = fields.map((_, index) => 0x80 + NEWEST_ENTRY + fields.length - 1 - index);
  return { first, later: headersFrame(Uint8Array.from(places)) };
}

function headersFrame(block: Uint8Array): Uint8Array {
  return encodeFrame(FRAME.HEADERS, block, { flags: FLAG.END_HEADERS });
}

function encodeLiterals(fields: readonly HeaderField[], kind: number): Uint8Array {
  const bytes: number[] = [];
  for (const field of fields) {
    bytes.push(kind);
    for (const text of field) {
      if (text.length > 126) throw new RangeError(`Cannot encode header "${text}": at most 126 bytes`);
      bytes.push(text.length, ...new TextEncoder().encode(text));
    }
  }
  return Uint8Array.from(bytes);
}

/** The payload without padding, and without the priority of a HEADERS frame. */
export function unpadded(frame: Frame): ByteRange {
  const isPadded = (frame.flags & FLAG.PADDED) !== 0;
  const hasPriority = frame.type === FRAME.HEADERS && (frame.flags & FLAG.PRIORITY) !== 0;
  if (!isPadded && !hasPriority) return frame;
  const start = frame.start + (isPadded ? 1 : 0) + (hasPriority ? 5 : 0);
  const end = frame.end - (isPadded ? frame.bytes[frame.start] ?? 0 : 0);
  if (end < start) {
    throw new RangeError(`Cannot read frame of stream "${frame.streamId}": more padding than payload`);
  }
  return { bytes: frame.bytes, start, end };
}

/** A copy of the bytes. */
export function copied({ bytes, start, end }: ByteRange): Uint8Array {
  return bytes.slice(start, end);
}

/** Whether the bytes are equal to `whole`. */
export function areSame({ bytes, start, end }: ByteRange, whole: Uint8Array): boolean {
  const { length } = whole;
  if (end - start !== length) return false;
  for (let index = 0; index < length; index++) {
    if (bytes[start + index] !== whole[index]) return false;
  }
  return true;
}
