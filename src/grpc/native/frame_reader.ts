import {
  ConnectionError,
  FRAME_HEADER_BYTES,
  joined,
  MAX_FRAME_BYTES,
  type OtherProtocol,
  PREFACE,
  PrefaceError,
  readUint32,
} from "./frames.ts";

/** Takes a frame, whose payload is a view that is only valid during the call; returns whether to go on. */
export type TakeFrame = (
  type: number,
  flags: number,
  streamId: number,
  payload: Uint8Array,
  now: number,
) => boolean;

const NO_BYTES = new Uint8Array(0);

/** Checks the preface of one peer and splits what follows into frames. Throws `ConnectionError` for a bad one. */
export class FrameReader {
  readonly #take: TakeFrame;
  /** Received and not handed on yet. */
  #rest: Uint8Array = NO_BYTES;
  #prefaced = false;

  constructor(take: TakeFrame) {
    this.#take = take;
  }

  /** Takes bytes that arrived at `now` and hands on frames as long as they are accepted. */
  read(chunk: Uint8Array, now: number): void {
    const bytes = this.#rest.length === 0 ? chunk : joined(this.#rest, chunk);
    const { length: total } = bytes;
    let at = 0;
    if (!this.#prefaced) {
      at = this.#readPreface(bytes);
      if (!this.#prefaced) return this.#keepFrom(bytes, 0);
    }
    const take = this.#take;
    while (total - at >= FRAME_HEADER_BYTES) {
      const length = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
      if (length > MAX_FRAME_BYTES) {
        throw new ConnectionError("FRAME_SIZE_ERROR", `a frame has ${length} bytes`);
      }
      const start = at + FRAME_HEADER_BYTES;
      const end = start + length;
      if (end > total) break;
      const type = bytes[at + 3] ?? 0;
      const flags = bytes[at + 4] ?? 0;
      const streamId = readUint32(bytes, at + 5) & 0x7fffffff;
      at = end;
      if (!take(type, flags, streamId, bytes.subarray(start, end), now)) break;
    }
    this.#keepFrom(bytes, at);
  }

  /** Takes bytes and hands on nothing before the next `read`. */
  keep(chunk: Uint8Array): void {
    if (chunk.length > 0) this.#rest = joined(this.#rest, chunk);
  }

  /** Keeps a copy of the rest: a view would keep the whole buffer alive. */
  #keepFrom(bytes: Uint8Array, at: number): void {
    this.#rest = at === bytes.length ? NO_BYTES : bytes.slice(at);
  }

  /** Checks as much of the preface as has arrived; returns its length. */
  #readPreface(bytes: Uint8Array): number {
    const length = Math.min(bytes.length, PREFACE.length);
    for (let index = 0; index < length; index++) {
      if (bytes[index] !== PREFACE[index]) throw new PrefaceError(protocolOf(bytes.subarray(0, length)));
    }
    this.#prefaced = length === PREFACE.length;
    return length;
  }
}

const TLS_HANDSHAKE = 0x16;
const TLS_MAJOR_VERSION = 3;
const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

/** The protocol of a peer that begins with these bytes. */
function protocolOf(first: Uint8Array): OtherProtocol | undefined {
  const [type, version = TLS_MAJOR_VERSION] = first;
  if (type === TLS_HANDSHAKE && version === TLS_MAJOR_VERSION) return "TLS";
  const text = String.fromCharCode(...first);
  const isRequest = METHODS.some((name) => `${name} `.startsWith(text) || text.startsWith(`${name} `));
  return isRequest ? "HTTP/1.1" : undefined;
}
