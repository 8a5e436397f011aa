import type { DirectResponse } from "../grpc_service.ts";
import { FRAME, FRAME_HEADER_BYTES } from "./frames.ts";
import { MESSAGE_PREFIX_BYTES } from "./message_reader.ts";

const FIRST_BYTES = 4_096;
/** Larger buffers are not reused. */
const KEPT_BYTES = 262_144;

/** Collects the bytes for one peer until they are taken. Writing never fails: the caller watches `length`. */
export class Output {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(FIRST_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Writes a frame header. */
  frame(length: number, type: number, flags: number, streamId: number): void {
    const at = this.#reserve(FRAME_HEADER_BYTES);
    const bytes = this.#bytes;
    bytes[at] = length >>> 16;
    bytes[at + 1] = length >>> 8;
    bytes[at + 2] = length;
    bytes[at + 3] = type;
    bytes[at + 4] = flags;
    bytes[at + 5] = streamId >>> 24;
    bytes[at + 6] = streamId >>> 16;
    bytes[at + 7] = streamId >>> 8;
    bytes[at + 8] = streamId;
  }

  /** Writes bytes. Copying short ones in a loop is faster than a call. */
  bytes(source: Uint8Array): void {
    const { length } = source;
    const at = this.#reserve(length);
    if (length > 64) {
      this.#bytes.set(source, at);
      return;
    }
    const bytes = this.#bytes;
    for (let index = 0; index < length; index++) bytes[at + index] = source[index] ?? 0;
  }

  /** Writes an encoded frame, on another stream than it was encoded for. */
  encoded(frame: Uint8Array, streamId: number): void {
    const at = this.#length + 5;
    this.bytes(frame);
    const bytes = this.#bytes;
    bytes[at] = streamId >>> 24;
    bytes[at + 1] = streamId >>> 16;
    bytes[at + 2] = streamId >>> 8;
    bytes[at + 3] = streamId;
  }

  /** Writes a DATA frame with one message; returns the length of its payload. */
  message(streamId: number, response: DirectResponse): number {
    const at = this.#reserve(FRAME_HEADER_BYTES + MESSAGE_PREFIX_BYTES + response.maxBytes);
    const bytes = this.#bytes;
    const start = at + FRAME_HEADER_BYTES + MESSAGE_PREFIX_BYTES;
    const end = response.write(bytes, start);
    this.#length = at;
    this.frame(end - start + MESSAGE_PREFIX_BYTES, FRAME.DATA, 0, streamId);
    this.byte(0);
    this.uint32(end - start);
    this.#length = end;
    return end - start + MESSAGE_PREFIX_BYTES;
  }

  byte(value: number): void {
    const at = this.#reserve(1);
    this.#bytes[at] = value;
  }

  /** Writes a big-endian unsigned 32-bit integer. */
  uint32(value: number): void {
    const at = this.#reserve(4);
    const bytes = this.#bytes;
    bytes[at] = value >>> 24;
    bytes[at + 1] = value >>> 16;
    bytes[at + 2] = value >>> 8;
    bytes[at + 3] = value;
  }

  /** Everything collected so far, as a view that stays unchanged until `give` returns it. */
  take(): Uint8Array<ArrayBuffer> {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#bytes = this.#spare ?? new Uint8Array(FIRST_BYTES);
    this.#spare = undefined;
    this.#length = 0;
    return taken;
  }

  /** Returns the buffer of written output for reuse. */
  give(taken: Uint8Array<ArrayBuffer>): void {
    if (taken.buffer.byteLength <= KEPT_BYTES) this.#spare = new Uint8Array(taken.buffer);
  }
  #spare: Uint8Array<ArrayBuffer> | undefined;

  #reserve(count: number): number {
    const at = this.#length;
    const needed = at + count;
    if (needed > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
      grown.set(this.#bytes.subarray(0, at));
      this.#bytes = grown;
    }
    this.#length = needed;
    return at;
  }
}
