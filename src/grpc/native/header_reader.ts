import type { GrpcMethod } from "../grpc_service.ts";
import { BlockReader } from "./block_reader.ts";
import { StreamError } from "./frames.ts";
import { HeadReader, type RequestHead } from "./request_head.ts";

/** A header list that is too large: it is incomplete, so none of it is used. */
const OVERFLOWED_HEAD: RequestHead = {
  fields: [],
  method: undefined,
  verb: "",
  path: "",
  refusal: "header_list",
  encoding: "",
  timeout: "",
  timeoutMs: Infinity,
  contentLength: undefined,
};

/** Reads the header blocks of one connection as heads and trailers of requests. */
export class HeaderReader {
  readonly #reader: HeadReader;
  readonly blocks: BlockReader;
  /** The last block that left the table alone, and its head: most calls are alike. */
  #known: { readonly block: Uint8Array; readonly head: RequestHead; readonly changes: number } | undefined;

  constructor(methods: ReadonlyMap<string, GrpcMethod>) {
    this.#reader = new HeadReader(methods);
    this.blocks = new BlockReader(this.#reader);
  }

  /** The head of a request whose block is these bytes, if it is that of the last request and the table is the same. */
  knownHead(bytes: Uint8Array, start: number, end: number): RequestHead | undefined {
    const known = this.#known;
    if (known === undefined || known.changes !== this.blocks.changes) return undefined;
    const { block, head } = known;
    const length = end - start;
    if (block.length !== length) return undefined;
    let index = 0;
    while (index < length && block[index] === bytes[start + index]) index++;
    return index === length ? head : undefined;
  }

  /** The block that just ended as the head of a request. */
  head(): RequestHead {
    const { blocks } = this;
    const { whole, changes, streamId } = blocks;
    if (blocks.isSelfDependent) {
      blocks.decode();
      throw new StreamError("PROTOCOL_ERROR", streamId, "a stream depends on itself");
    }
    const known = whole === undefined ? undefined : this.knownHead(whole, 0, whole.length);
    if (known !== undefined) return known;
    blocks.decode();
    if (blocks.overflowed) return OVERFLOWED_HEAD;
    const head = this.#reader.head(streamId);
    // A block that changes the table has to be decoded each time.
    if (whole !== undefined && blocks.changes === changes) {
      this.#known = { block: whole.slice(), head, changes };
    }
    return head;
  }

  /** Checks the block that just ended, which is decoded, as the trailers of a request. */
  checkTrailers(): void {
    this.#reader.checkTrailers(this.blocks.streamId);
  }
}
