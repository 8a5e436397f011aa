import { lengthAt } from "../native/call_frames.ts";
import { FLAG, FRAME, FRAME_HEADER_BYTES, MAX_FRAME_BYTES, readUint32 } from "../native/frames.ts";
import { MESSAGE_PREFIX_BYTES } from "../native/message_reader.ts";

/** The three frames of a usual answer: HEADERS, DATA with one uncompressed message, and HEADERS that end the stream. */
export class AnswerFrames {
  streamId = 0;
  headStart = 0;
  messageStart = 0;
  messageEnd = 0;
  /** End of the trailers and of the answer. */
  end = 0;

  get headEnd(): number {
    return this.messageStart - MESSAGE_PREFIX_BYTES - FRAME_HEADER_BYTES;
  }

  get trailersStart(): number {
    return this.messageEnd + FRAME_HEADER_BYTES;
  }

  /** Length of the payload of DATA. */
  get bodyBytes(): number {
    return MESSAGE_PREFIX_BYTES + this.messageEnd - this.messageStart;
  }

  /** Reads them from a position; false if they are not whole, or not of this kind. */
  read(bytes: Uint8Array, at: number): boolean {
    const { length } = bytes;
    if (bytes[at + 4] !== FLAG.END_HEADERS) return false;
    const head = at + FRAME_HEADER_BYTES;
    const data = head + lengthAt(bytes, at);
    const body = data + FRAME_HEADER_BYTES;
    if (body + MESSAGE_PREFIX_BYTES > length || bytes[data + 3] !== FRAME.DATA || bytes[data + 4] !== 0) {
      return false;
    }
    const bodyBytes = lengthAt(bytes, data);
    if (bodyBytes > MAX_FRAME_BYTES) return false;
    const trailers = body + bodyBytes;
    const start = trailers + FRAME_HEADER_BYTES;
    if (start > length || bytes[trailers + 3] !== FRAME.HEADERS || bytes[trailers + 4] !== ENDS_ANSWER) {
      return false;
    }
    const end = start + lengthAt(bytes, trailers);
    if (end > length) return false;
    // Not compressed, and exactly one message.
    if (bytes[body] !== 0 || readUint32(bytes, body + 1) !== bodyBytes - MESSAGE_PREFIX_BYTES) return false;
    const streamId = readUint32(bytes, at + 5) & 0x7fffffff;
    if (streamId !== (readUint32(bytes, data + 5) & 0x7fffffff)) return false;
    if (streamId !== (readUint32(bytes, trailers + 5) & 0x7fffffff)) return false;
    this.streamId = streamId;
    this.headStart = head;
    this.messageStart = body + MESSAGE_PREFIX_BYTES;
    this.messageEnd = trailers;
    this.end = end;
    return true;
  }
}

const ENDS_ANSWER = FLAG.END_HEADERS | FLAG.END_STREAM;
