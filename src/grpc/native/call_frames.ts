import { FLAG, FRAME, FRAME_HEADER_BYTES, readUint32 } from "./frames.ts";
import { MESSAGE_PREFIX_BYTES } from "./message_reader.ts";

/** A block or a payload of this length and longer is not read here. */
const TOO_LONG = 4_096;

/** The two frames of a usual request: HEADERS, and DATA with one uncompressed message that ends the stream. */
export class CallFrames {
  streamId = 0;
  /** End of the header block, which begins behind the first frame header. */
  blockEnd = 0;
  messageStart = 0;
  /** End of message and frame. */
  end = 0;

  /** Reads them from a position; false if they are not whole, or not of this kind. */
  read(bytes: Uint8Array, at: number): boolean {
    if (bytes[at + 4] !== FLAG.END_HEADERS) return false;
    const blockLength = lengthAt(bytes, at);
    const data = at + FRAME_HEADER_BYTES + blockLength;
    const body = data + FRAME_HEADER_BYTES;
    if (blockLength >= TOO_LONG || body + MESSAGE_PREFIX_BYTES > bytes.length) return false;
    if (bytes[data + 3] !== FRAME.DATA || bytes[data + 4] !== FLAG.END_STREAM) return false;
    const length = lengthAt(bytes, data);
    const end = body + length;
    if (length < MESSAGE_PREFIX_BYTES || length >= TOO_LONG || end > bytes.length) return false;
    const streamId = readUint32(bytes, at + 5) & 0x7fffffff;
    if ((streamId & 1) === 0 || streamId !== (readUint32(bytes, data + 5) & 0x7fffffff)) return false;
    // Not compressed, and exactly one message.
    if (bytes[body] !== 0 || readUint32(bytes, body + 1) !== length - MESSAGE_PREFIX_BYTES) return false;
    this.streamId = streamId;
    this.blockEnd = data;
    this.messageStart = body + MESSAGE_PREFIX_BYTES;
    this.end = end;
    return true;
  }
}

/** The 24 bits of length with which a frame begins. */
export function lengthAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
}
