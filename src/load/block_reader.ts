import { HpackDecoder } from "../grpc/native/hpack_decoder.ts";
import { areSame, type ByteRange, copied } from "./h2_frames.ts";

/** The fields of a header block of an answer that the generator reads. */
export interface Block {
  readonly httpStatus: string | undefined;
  readonly grpcStatus: string | undefined;
  readonly grpcMessage: string | undefined;
  readonly contentType: string | undefined;
}

interface KnownBlock {
  readonly bytes: Uint8Array;
  /** The decoder's `changes`, which reading this block leaves as it is. */
  readonly changes: number;
  readonly block: Block;
}

/**
 * Reads the header blocks of one connection. Most answers begin and end with the same bytes, so a block
 * that is equal to the previous one of its kind is not decoded again until the table changes.
 */
export class BlockReader {
  readonly #decoder = new HpackDecoder();
  #known: { first: KnownBlock | undefined; last: KnownBlock | undefined } = {
    first: undefined,
    last: undefined,
  };

  /** Reads the block that begins an answer, or its `last` one. Every block must be read, in order. */
  read(range: ByteRange, place: "first" | "last"): Block {
    const known = this.#known[place];
    if (known !== undefined && known.changes === this.#decoder.changes && areSame(range, known.bytes)) {
      return known.block;
    }
    const changesBefore = this.#decoder.changes;
    const bytes = copied(range);
    const block = blockOf(new Map(this.#decoder.decode(bytes)));
    const { changes } = this.#decoder;
    // A block that changes the table must be decoded each time.
    this.#known[place] = changes === changesBefore ? { bytes, changes, block } : undefined;
    return block;
  }
}

function blockOf(fields: ReadonlyMap<string, string>): Block {
  return {
    httpStatus: fields.get(":status"),
    grpcStatus: fields.get("grpc-status"),
    grpcMessage: fields.get("grpc-message"),
    contentType: fields.get("content-type"),
  };
}
