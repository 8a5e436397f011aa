import { gunzipSync, inflateSync } from "node:zlib";
import { GrpcError } from "../grpc_service.ts";
import { readUint32 } from "./frames.ts";

/** Maximum size of a message, before and after decompression, unless another one is set. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** The prefix of a message: a compression flag and its length. */
export const MESSAGE_PREFIX_BYTES = 5;

/** A message with the prefix of gRPC, which says whether it is compressed. */
export function framed(message: Uint8Array, isCompressed = false): Uint8Array {
  const whole = new Uint8Array(MESSAGE_PREFIX_BYTES + message.length);
  whole[0] = isCompressed ? 1 : 0;
  new DataView(whole.buffer).setUint32(1, message.length);
  whole.set(message, MESSAGE_PREFIX_BYTES);
  return whole;
}

const NO_BYTES = new Uint8Array(0);
const DECOMPRESS = new Map([["gzip", gunzipSync], ["deflate", inflateSync]]);

/**
 * Assembles the messages of one stream. A message that arrives in one piece is a view of it; others are copied once.
 * Throws `GrpcError` for a message that is too large or whose compression was not announced.
 */
export class MessageReader {
  readonly #encoding: string;
  readonly #maxBytes: number;
  /** The incomplete message. */
  #held: Uint8Array = NO_BYTES;
  #heldLength = 0;

  /** `encoding` is the `grpc-encoding` of the stream; empty for none. */
  constructor(encoding: string, maxBytes = MAX_MESSAGE_BYTES) {
    this.#encoding = encoding;
    this.#maxBytes = maxBytes;
  }

  /** Bytes of the incomplete message. */
  get held(): number {
    return this.#heldLength;
  }

  /** Takes a piece; returns the messages that it completes. */
  read(piece: Uint8Array): Uint8Array[] {
    const messages: Uint8Array[] = [];
    let rest = piece;
    if (this.#heldLength > 0) {
      rest = this.#joined(piece);
    }
    for (;;) {
      const end = this.#wholeLength(rest);
      if (end === undefined || rest.length < end) break;
      messages.push(this.#message(rest.subarray(0, end)));
      rest = rest.subarray(end);
    }
    this.#hold(rest);
    return messages;
  }

  /** Appends the piece to the incomplete message; the buffer grows to the message's length at most twice at a time. */
  #joined(piece: Uint8Array): Uint8Array {
    const length = this.#heldLength + piece.length;
    if (length > this.#held.length) {
      const needed = this.#wholeLength(this.#held.subarray(0, this.#heldLength)) ?? 0;
      const grown = new Uint8Array(Math.max(length, Math.min(needed, length * 2)));
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
      // Not the empty rest itself: that view would keep its buffer alive.
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
    return decompressed(message, this.#encoding, this.#maxBytes);
  }

  /** The length of the first message with its prefix; undefined while the prefix is incomplete. */
  #wholeLength(bytes: Uint8Array): number | undefined {
    if (bytes.length < MESSAGE_PREFIX_BYTES) return undefined;
    const length = readUint32(bytes, 1);
    if (length > this.#maxBytes) {
      const text = `Received message larger than max (${length} vs ${this.#maxBytes})`;
      throw new GrpcError("RESOURCE_EXHAUSTED", text);
    }
    return MESSAGE_PREFIX_BYTES + length;
  }
}

function decompressed(message: Uint8Array, encoding: string, maxBytes: number): Uint8Array {
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
    return decompress(message, { maxOutputLength: maxBytes });
  } catch (error) {
    if (!(error instanceof RangeError)) {
      throw new GrpcError("INTERNAL", "Failed to decompress message", { cause: error });
    }
    const text = `Received message that decompresses to a size larger than ${maxBytes}`;
    throw new GrpcError("RESOURCE_EXHAUSTED", text);
  }
}
