import { gunzipSync, inflateSync } from "node:zlib";
import { GrpcError } from "../grpc_service.ts";

/** Largest message that is taken, before and after decompression. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** Octets before a message: whether it is compressed, and its length. */
export const MESSAGE_PREFIX_BYTES = 5;

const NO_BYTES = new Uint8Array(0);
const DECOMPRESS = new Map([["gzip", gunzipSync], ["deflate", inflateSync]]);

/**
 * Puts the messages of one stream together from the pieces that come. A message that comes in one
 * piece is a view of that piece; others are copied once. Throws `GrpcError` for a message that is too
 * large or compressed in a way that was not announced.
 */
export class MessageReader {
  readonly #encoding: string;
  /** What came of a message that is not whole. */
  #held: Uint8Array = NO_BYTES;
  #heldLength = 0;

  /** `encoding` is what the stream announced as `grpc-encoding`; empty for none. */
  constructor(encoding: string) {
    this.#encoding = encoding;
  }

  /** Octets kept until their message is whole. */
  get held(): number {
    return this.#heldLength;
  }

  /** Takes a piece; answers the messages that are whole with it, in order. */
  read(piece: Uint8Array): Uint8Array[] {
    const messages: Uint8Array[] = [];
    let rest = piece;
    if (this.#heldLength > 0) {
      rest = this.#joined(piece);
    }
    for (;;) {
      const end = wholeLength(rest);
      if (end === undefined || rest.length < end) break;
      messages.push(this.#message(rest.subarray(0, end)));
      rest = rest.subarray(end);
    }
    this.#hold(rest);
    return messages;
  }

  /** Appends the piece to what is held. The buffer has room for the whole message once its length is known. */
  #joined(piece: Uint8Array): Uint8Array {
    const length = this.#heldLength + piece.length;
    if (length > this.#held.length) {
      const wanted = wholeLength(this.#held.subarray(0, this.#heldLength)) ?? 0;
      const grown = new Uint8Array(Math.max(length, Math.min(wanted, length * 2)));
      grown.set(this.#held.subarray(0, this.#heldLength));
      this.#held = grown;
    }
    this.#held.set(piece, this.#heldLength);
    this.#heldLength = length;
    return this.#held.subarray(0, length);
  }

  #hold(rest: Uint8Array): void {
    this.#heldLength = rest.length;
    if (rest.length === 0) {
      // Not the empty rest itself: it is a view that would keep all that came with it.
      this.#held = NO_BYTES;
    } else if (rest.buffer !== this.#held.buffer || rest.byteOffset !== this.#held.byteOffset) {
      this.#held = rest.slice();
    }
  }

  #message(framed: Uint8Array): Uint8Array {
    const message = framed.subarray(MESSAGE_PREFIX_BYTES);
    const flag = framed[0];
    if (flag === 0) return message;
    if (flag !== 1) throw new GrpcError("INTERNAL", "Cannot read a message: its first byte is unknown");
    return decompressed(message, this.#encoding);
  }
}

/** How many octets the first message takes with its prefix; absent while the prefix is not whole. */
function wholeLength(bytes: Uint8Array): number | undefined {
  if (bytes.length < MESSAGE_PREFIX_BYTES) return undefined;
  const length = (bytes[1] ?? 0) * 0x1000000 +
    (((bytes[2] ?? 0) << 16) | ((bytes[3] ?? 0) << 8) | (bytes[4] ?? 0));
  if (length > MAX_MESSAGE_BYTES) {
    const text = `Received message larger than max (${length} vs ${MAX_MESSAGE_BYTES})`;
    throw new GrpcError("RESOURCE_EXHAUSTED", text);
  }
  return MESSAGE_PREFIX_BYTES + length;
}

function decompressed(message: Uint8Array, encoding: string): Uint8Array {
  if (encoding === "" || encoding === "identity") {
    const state = "it is compressed, but grpc-encoding names no compression";
    throw new GrpcError("INTERNAL", `Cannot read a message: ${state}`);
  }
  const decompress = DECOMPRESS.get(encoding);
  if (decompress === undefined) {
    const text = `Received message compressed with unsupported encoding "${encoding}"`;
    throw new GrpcError("UNIMPLEMENTED", text);
  }
  try {
    return decompress(message, { maxOutputLength: MAX_MESSAGE_BYTES });
  } catch (error) {
    if (!(error instanceof RangeError)) {
      throw new GrpcError("INTERNAL", "Failed to decompress message", { cause: error });
    }
    const text = `Received message that decompresses to a size larger than ${MAX_MESSAGE_BYTES}`;
    throw new GrpcError("RESOURCE_EXHAUSTED", text);
  }
}
