import { type Frame, FRAME_HEADER_BYTES } from "./h2_frames.ts";

/** The largest frame that a peer may send to one that did not ask for more. */
const MAX_FRAME_BYTES = 16_384;

/** Cuts what a socket reads into frames. */
export class FrameReader {
  #rest: Uint8Array = new Uint8Array(0);

  /** Calls `take` for each frame that is whole by now; the rest waits for the next chunk. */
  read(chunk: Uint8Array, take: (frame: Frame) => void): void {
    const octets = this.#rest.length === 0 ? chunk : joined(this.#rest, chunk);
    let at = 0;
    while (octets.length - at >= FRAME_HEADER_BYTES) {
      const length = number24(octets, at);
      if (length > MAX_FRAME_BYTES) {
        throw new RangeError(
          `Cannot read frame of "${length}" octets: at most ${MAX_FRAME_BYTES} are allowed`,
        );
      }
      const start = at + FRAME_HEADER_BYTES;
      if (octets.length < start + length) break;
      take({
        type: octets[at + 3] ?? 0,
        flags: octets[at + 4] ?? 0,
        streamId: number31(octets, at + 5),
        payload: octets.subarray(start, start + length),
      });
      at = start + length;
    }
    this.#rest = at === octets.length ? new Uint8Array(0) : octets.slice(at);
  }
}

/** The unsigned number of 31 bits at this place; the first bit is reserved. */
export function number31(octets: Uint8Array, at: number): number {
  return (((octets[at] ?? 0) & 0x7f) << 24) | number24(octets, at + 1);
}

/** Both, one after the other. */
export function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const whole = new Uint8Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}

function number24(octets: Uint8Array, at: number): number {
  return ((octets[at] ?? 0) << 16) | ((octets[at + 1] ?? 0) << 8) | (octets[at + 2] ?? 0);
}
