import { FRAME_HEADER_BYTES, joined, MAX_FRAME_BYTES, readUint32 } from "../grpc/native/frames.ts";
import type { Frame } from "./h2_frames.ts";

/** Splits the bytes of a socket into frames. */
export class FrameReader {
  #rest: Uint8Array = new Uint8Array(0);
  /** One object for all frames: an object per frame would take a tenth of the generator's time. */
  readonly #frame = { type: 0, flags: 0, streamId: 0, bytes: this.#rest, start: 0, end: 0 };

  /** Calls `take` for each complete frame; the rest waits for the next chunk. */
  read(chunk: Uint8Array, take: (frame: Frame) => void): void {
    const bytes = this.#rest.length === 0 ? chunk : joined(this.#rest, chunk);
    const frame = this.#frame;
    frame.bytes = bytes;
    const { length: size } = bytes;
    let at = 0;
    while (size - at >= FRAME_HEADER_BYTES) {
      const length = number24(bytes, at);
      if (length > MAX_FRAME_BYTES) throw tooLong(length);
      const start = at + FRAME_HEADER_BYTES;
      if (size < start + length) break;
      frame.type = bytes[at + 3] ?? 0;
      frame.flags = bytes[at + 4] ?? 0;
      frame.streamId = number31(bytes, at + 5);
      frame.start = start;
      frame.end = start + length;
      take(frame);
      at = start + length;
    }
    this.#rest = at === size ? NOTHING : bytes.slice(at);
  }
}

const NOTHING = new Uint8Array(0);

/** The unsigned number of 31 bits at this place; the first bit is reserved. */
export function number31(bytes: Uint8Array, at: number): number {
  return readUint32(bytes, at) & 0x7fff_ffff;
}

function tooLong(length: number): RangeError {
  return new RangeError(`Cannot read frame of "${length}" bytes: at most ${MAX_FRAME_BYTES} are allowed`);
}

function number24(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
}
