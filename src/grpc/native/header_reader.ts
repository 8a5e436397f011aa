import type { GrpcMethod } from "../grpc_service.ts";
import { ConnectionError, FLAG, joined, readUint32, StreamError, unpadded } from "./frames.ts";
import { type HeaderField, HpackDecoder } from "./hpack_decoder.ts";
import { LIMITS } from "./limits.ts";
import { readHead, type RequestHead } from "./request_head.ts";

const TABLE_BYTES = 4_096;
const PRIORITY_BYTES = 5;
const NO_BYTES = new Uint8Array(0);
/** A header list that is too large: it is incomplete, so none of it is used. */
const OVERFLOWED_HEAD: RequestHead = {
  fields: [],
  method: undefined,
  path: "",
  refusal: "header_list",
  encoding: "",
  timeoutMs: Infinity,
  contentLength: undefined,
};

/** Assembles header blocks and decodes them, one connection's in their order. */
export class HeaderReader {
  readonly #decoder = new HpackDecoder(TABLE_BYTES, LIMITS.headerListBytes);
  readonly #methods: ReadonlyMap<string, GrpcMethod>;
  /** The last block that left the table alone, and its head: most calls are alike. */
  #known: { readonly block: Uint8Array; readonly head: RequestHead; readonly changes: number } | undefined;
  #flags: number = FLAG.END_HEADERS;
  /** The stream of the last block. */
  streamId = 0;
  #block: Uint8Array = NO_BYTES;
  #continuations = 0;
  #isSelfDependent = false;

  constructor(methods: ReadonlyMap<string, GrpcMethod>) {
    this.#methods = methods;
  }

  /** Whether a block has begun and has not ended. */
  get isOpen(): boolean {
    return (this.#flags & FLAG.END_HEADERS) === 0;
  }

  /** Whether the last block ends its stream. */
  get endsStream(): boolean {
    return (this.#flags & FLAG.END_STREAM) !== 0;
  }

  /** Takes a HEADERS frame. */
  begin(flags: number, streamId: number, payload: Uint8Array): void {
    let block = (flags & FLAG.PADDED) === 0 ? payload : unpadded(payload);
    this.#isSelfDependent = false;
    if ((flags & FLAG.PRIORITY) !== 0) {
      if (block.length < PRIORITY_BYTES) {
        throw new ConnectionError("FRAME_SIZE_ERROR", "HEADERS are too short");
      }
      this.#isSelfDependent = (readUint32(block, 0) & 0x7fffffff) === streamId;
      block = block.subarray(PRIORITY_BYTES);
    }
    this.streamId = streamId;
    this.#flags = flags;
    this.#continuations = 0;
    // A block that goes on outlives the buffer of its frame.
    this.#block = this.isOpen ? block.slice() : block;
  }

  /** Takes a CONTINUATION frame. */
  continue(flags: number, streamId: number, payload: Uint8Array): void {
    if (!this.isOpen || streamId !== this.streamId) {
      throw new ConnectionError("PROTOCOL_ERROR", "CONTINUATION without the beginning of its block");
    }
    const length = this.#block.length + payload.length;
    if (length > LIMITS.blockBytes || ++this.#continuations > LIMITS.continuations) {
      throw new ConnectionError("ENHANCE_YOUR_CALM", "a header block is too long");
    }
    this.#block = joined(this.#block, payload);
    this.#flags |= flags & FLAG.END_HEADERS;
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

  /** The head of a request whose block is these bytes, if it is that of the last request and the table is the same. */
  knownHead(bytes: Uint8Array, start: number, end: number): RequestHead | undefined {
    const known = this.#known;
    if (known === undefined || known.changes !== this.#decoder.changes) return undefined;
    const { block, head } = known;
    const length = end - start;
    if (block.length !== length) return undefined;
    let index = 0;
    while (index < length && block[index] === bytes[start + index]) index++;
    return index === length ? head : undefined;
  }

  /** The block that just ended as the head of a request. */
  head(): RequestHead {
    if (this.#isSelfDependent) {
      this.fields();
      throw new StreamError("PROTOCOL_ERROR", this.streamId, "a stream depends on itself");
    }
    const known = this.knownHead(this.#block, 0, this.#block.length);
    if (known !== undefined) return known;
    const { changes } = this.#decoder;
    const fields = this.fields();
    if (this.#decoder.overflowed) return OVERFLOWED_HEAD;
    const head = readHead(fields, this.streamId, this.#methods);
    // A block that changes the table has to be decoded each time.
    if (this.#decoder.changes === changes) this.#known = { block: this.#block.slice(), head, changes };
    return head;
  }
}
