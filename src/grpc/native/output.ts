import { FRAME_HEADER_BYTES } from "./frames.ts";

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
    const wanted = at + count;
    if (wanted > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(wanted, this.#bytes.length * 2));
      grown.set(this.#bytes.subarray(0, at));
      this.#bytes = grown;
    }
    this.#length = wanted;
    return at;
  }
}
