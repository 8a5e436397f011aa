import type { GrpcMethod } from "../grpc_service.ts";
import { ConnectionError, FLAG, readUint32, StreamError, unpadded } from "./frames.ts";
import { type HeaderField, HpackDecoder } from "./hpack_decoder.ts";
import { LIMITS } from "./limits.ts";
import { readHead, type RequestHead } from "./request_head.ts";

const TABLE_BYTES = 4_096;
const PRIORITY_BYTES = 5;
const NO_BYTES = new Uint8Array(0);
/** Of a list that is too large not all is kept, so nothing of it is looked at. */
const OVERFLOWED_HEAD: RequestHead = {
  fields: [],
  method: undefined,
  path: "",
  refusal: "header_list",
  encoding: "",
  timeoutMs: Infinity,
  contentLength: undefined,
};

/** Puts blocks of headers together and decodes them, one connection's in their order. */
export class HeaderReader {
  readonly #decoder = new HpackDecoder(TABLE_BYTES, LIMITS.headerListBytes);
  readonly #methods: ReadonlyMap<string, GrpcMethod>;
  /** A block has begun and has not ended. */
  open = false;
  /** The stream of the last block. */
  streamId = 0;
  /** The last block ended its stream. */
  ended = false;
  #block: Uint8Array = NO_BYTES;
  #continuations = 0;
  #selfDependent = false;
  /** The block before this one, what it said, and the state of the table then: most calls are alike. */
  #known: Uint8Array = NO_BYTES;
  #knownHead: RequestHead | undefined;
  #knownChanges = 0;

  constructor(methods: ReadonlyMap<string, GrpcMethod>) {
    this.#methods = methods;
  }

  /** Takes a HEADERS frame. */
  begin(flags: number, streamId: number, payload: Uint8Array): void {
    let block = (flags & FLAG.PADDED) === 0 ? payload : unpadded(payload);
    this.#selfDependent = false;
    if ((flags & FLAG.PRIORITY) !== 0) {
      if (block.length < PRIORITY_BYTES) {
        throw new ConnectionError("FRAME_SIZE_ERROR", "HEADERS are too short");
      }
      this.#selfDependent = (readUint32(block, 0) & 0x7fffffff) === streamId;
      block = block.subarray(PRIORITY_BYTES);
    }
    this.streamId = streamId;
    this.ended = (flags & FLAG.END_STREAM) !== 0;
    this.open = (flags & FLAG.END_HEADERS) === 0;
    this.#continuations = 0;
    // A block that goes on outlives the octets that it came in.
    this.#block = this.open ? block.slice() : block;
  }

  /** Takes a CONTINUATION frame. */
  continue(flags: number, streamId: number, payload: Uint8Array): void {
    if (!this.open || streamId !== this.streamId) {
      throw new ConnectionError("PROTOCOL_ERROR", "CONTINUATION without the beginning of its block");
    }
    const length = this.#block.length + payload.length;
    if (length > LIMITS.blockBytes || ++this.#continuations > LIMITS.continuations) {
      throw new ConnectionError("ENHANCE_YOUR_CALM", "a block of headers is too long");
    }
    const block = new Uint8Array(length);
    block.set(this.#block);
    block.set(payload, this.#block.length);
    this.#block = block;
    this.open = (flags & FLAG.END_HEADERS) === 0;
  }

  /** The fields of the block that just ended. */
  fields(): HeaderField[] {
    try {
      return this.#decoder.decode(this.#block);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new ConnectionError("COMPRESSION_ERROR", error.message);
    }
  }

  /** What the block that just ended says of a request. */
  head(): RequestHead {
    if (this.#selfDependent) {
      this.fields();
      throw new StreamError("PROTOCOL_ERROR", this.streamId, "a stream depends on itself");
    }
    const known = this.#knownHead;
    if (
      known !== undefined && this.#knownChanges === this.#decoder.changes && equal(this.#known, this.#block)
    ) {
      return known;
    }
    const { changes } = this.#decoder;
    const fields = this.fields();
    if (this.#decoder.overflowed) return OVERFLOWED_HEAD;
    const head = readHead(fields, this.streamId, this.#methods);
    // A block that changes the table must be decoded each time that it comes.
    if (this.#decoder.changes !== changes) return head;
    this.#known = this.#block.slice();
    this.#knownHead = head;
    this.#knownChanges = changes;
    return head;
  }
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  const { length } = a;
  if (length !== b.length) return false;
  for (let index = 0; index < length; index++) {
    if (a[index] !== b[index]) return false;
  }
  return true;
}
