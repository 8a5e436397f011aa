import {
  ConnectionError,
  FRAME_HEADER_BYTES,
  joined,
  MAX_FRAME_BYTES,
  PREFACE,
  readUint32,
} from "./frames.ts";

const NO_BYTES = new Uint8Array(0);

/**
 * Cuts the octets of one peer into frames. `push` takes what came; `next` steps to the next frame that
 * is whole, which then stands in the fields; the rest waits for more. The preface is checked and passed
 * over. Throws `ConnectionError` where there can be no frame.
 */
export class FrameReader {
  type = 0;
  flags = 0;
  /** Without its reserved bit. */
  streamId = 0;
  /** A view of what came: to be copied where it is to outlive the call. */
  payload: Uint8Array = NO_BYTES;
  #bytes: Uint8Array = NO_BYTES;
  #at = 0;
  #prefaced = false;

  /** Takes octets of the peer. */
  push(chunk: Uint8Array): void {
    this.#bytes = this.#at === this.#bytes.length ? chunk : joined(this.#bytes.subarray(this.#at), chunk);
    this.#at = 0;
  }

  /** Steps to the next frame; false when none is whole. */
  next(): boolean {
    if (!this.#prefaced && !this.#readPreface()) return false;
    const bytes = this.#bytes;
    const at = this.#at;
    const start = at + FRAME_HEADER_BYTES;
    if (start > bytes.length) return this.#keepRest();
    const length = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    if (length > MAX_FRAME_BYTES) {
      throw new ConnectionError("FRAME_SIZE_ERROR", `a frame has ${length} octets`);
    }
    const end = start + length;
    if (end > bytes.length) return this.#keepRest();
    this.type = bytes[at + 3] ?? 0;
    this.flags = bytes[at + 4] ?? 0;
    this.streamId = readUint32(bytes, at + 5) & 0x7fffffff;
    this.payload = bytes.subarray(start, end);
    this.#at = end;
    return true;
  }

  /** Copies what is left, so that a few octets do not keep all that came with them; always answers false. */
  #keepRest(): false {
    this.payload = NO_BYTES;
    this.#bytes = this.#at === this.#bytes.length ? NO_BYTES : this.#bytes.slice(this.#at);
    this.#at = 0;
    return false;
  }

  #readPreface(): boolean {
    const length = Math.min(this.#bytes.length, PREFACE.length);
    for (let index = 0; index < length; index++) {
      if (this.#bytes[index] !== PREFACE[index]) {
        throw new ConnectionError("PROTOCOL_ERROR", "this is no HTTP/2");
      }
    }
    this.#prefaced = length === PREFACE.length;
    if (this.#prefaced) this.#at = length;
    else this.#keepRest();
    return this.#prefaced;
  }
}
