import { HpackDecoder } from "../../../src/grpc/native/hpack_decoder.ts";
import { areSame, copied, type Octets } from "./h2_frames.ts";

/** What a header block of an answer says, as far as the bench looks. */
export interface Block {
  readonly httpStatus: string | undefined;
  readonly grpcStatus: string | undefined;
  readonly grpcMessage: string | undefined;
  readonly contentType: string | undefined;
}

interface KnownBlock {
  readonly octets: Uint8Array;
  /** What the decoder's `changes` was before and after. */
  readonly changes: number;
  readonly block: Block;
}

/**
 * Reads the header blocks of one connection. Most answers begin and end with the same octets, so a block
 * like the last one of its kind is not decoded again, as long as no table has changed in between.
 */
export class BlockReader {
  readonly #decoder = new HpackDecoder();
  #known: { first: KnownBlock | undefined; last: KnownBlock | undefined } = {
    first: undefined,
    last: undefined,
  };

  /** The block that begins an answer, or its `last` one. Every block must come here, in order. */
  read(octets: Octets, place: "first" | "last"): Block {
    const known = this.#known[place];
    if (known !== undefined && known.changes === this.#decoder.changes && areSame(octets, known.octets)) {
      return known.block;
    }
    const changesBefore = this.#decoder.changes;
    const own = copied(octets);
    const block = blockOf(new Map(this.#decoder.decode(own)));
    const { changes } = this.#decoder;
    // A block that changes the table would change it each time, so it has to be decoded each time.
    this.#known[place] = changes === changesBefore ? { octets: own, changes, block } : undefined;
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
