import { FieldSplitter } from "./field_splitter.ts";
import { ConnectionError, FLAG, readUint32, unpadded } from "./frames.ts";
import { type FieldTaker, HpackDecoder } from "./hpack_decoder.ts";
import { FRAME_UNIT_BITS, LIMITS } from "./limits.ts";

const TABLE_BYTES = 4_096;
const PRIORITY_BYTES = 5;

/** Takes the fields of one block after the other. */
export interface BlockTaker extends FieldTaker {
  begin(): void;
}

/** Maximum sizes of one block. */
interface HeaderLimits {
  /** Size of the decoded fields, each plus 32 bytes. */
  readonly headerListBytes: number;
  /** Size of a name or value. */
  readonly headerTextBytes: number;
}

/**
 * Reads the header blocks of one connection from their frames. A block of several frames is decoded as they arrive, and
 * one that is whole in its frame by `decode`.
 */
export class BlockReader {
  readonly #decoder: HpackDecoder;
  readonly #taker: BlockTaker;
  readonly #splitter: FieldSplitter;
  #flags: number = FLAG.END_HEADERS;
  #length = 0;
  #continuations = 0;
  /** The stream of the last block. */
  streamId = 0;
  /** The last block, if it is whole and not decoded. */
  whole: Uint8Array | undefined;
  /** True if its stream depends on itself. */
  isSelfDependent = false;

  constructor(taker: BlockTaker, limits: HeaderLimits = LIMITS) {
    this.#taker = taker;
    this.#decoder = new HpackDecoder(TABLE_BYTES, limits.headerListBytes, limits.headerTextBytes);
    this.#splitter = new FieldSplitter({
      fields: (bytes) => this.#decoder.read(bytes, taker),
      dropped: (bytes, isIndexed) => this.#decoder.drop(bytes, isIndexed),
    });
  }

  /** True if a block has begun and has not ended. */
  get isOpen(): boolean {
    return (this.#flags & FLAG.END_HEADERS) === 0;
  }

  /** True if the last block ends its stream. */
  get endsStream(): boolean {
    return (this.#flags & FLAG.END_STREAM) !== 0;
  }

  get length(): number {
    return this.#length;
  }

  /** Cost of the frames of the last block beyond a single short one, as far as they are not tiny. */
  get cost(): number {
    const frames = Math.min(this.#continuations, Math.floor(this.#length / LIMITS.bytesPerContinuation));
    return (this.#length >>> FRAME_UNIT_BITS) + frames;
  }

  /** Counts changes of the dynamic table: while it is equal, equal blocks have equal fields. */
  get changes(): number {
    return this.#decoder.changes;
  }

  /** True if the fields of the last block are too large, so that they are incomplete. */
  get overflowed(): boolean {
    return this.#decoder.overflowed;
  }

  begin(flags: number, streamId: number, payload: Uint8Array): void {
    let block = (flags & FLAG.PADDED) === 0 ? payload : unpadded(payload);
    this.isSelfDependent = false;
    if ((flags & FLAG.PRIORITY) !== 0) {
      if (block.length < PRIORITY_BYTES) {
        throw new ConnectionError("FRAME_SIZE_ERROR", "HEADERS are too short");
      }
      this.isSelfDependent = (readUint32(block, 0) & 0x7fffffff) === streamId;
      block = block.subarray(PRIORITY_BYTES);
    }
    this.streamId = streamId;
    this.#flags = flags;
    this.#length = block.length;
    this.#continuations = 0;
    this.whole = this.isOpen ? undefined : block;
    if (this.isOpen) this.#begin(() => this.#splitter.write(block));
  }

  continue(flags: number, streamId: number, payload: Uint8Array): void {
    if (!this.isOpen || streamId !== this.streamId) {
      throw new ConnectionError("PROTOCOL_ERROR", "CONTINUATION without the beginning of its block");
    }
    this.#length += payload.length;
    const frames = LIMITS.continuations + this.#length / LIMITS.bytesPerContinuation;
    if (this.#length > LIMITS.blockBytes || ++this.#continuations > frames) {
      throw new ConnectionError("ENHANCE_YOUR_CALM", "a header block is too long");
    }
    this.#flags |= flags & FLAG.END_HEADERS;
    decoding(() => this.#splitter.write(payload));
    if (!this.isOpen && !this.#splitter.isWhole) {
      throw new ConnectionError("COMPRESSION_ERROR", "a header block ends in the middle of a field");
    }
  }

  /** Decodes the block that just ended, unless it is decoded: each may change the table. */
  decode(): void {
    const { whole } = this;
    if (whole === undefined) return;
    this.whole = undefined;
    this.#begin(() => this.#decoder.read(whole, this.#taker));
  }

  #begin(decode: () => void): void {
    this.#decoder.begin();
    this.#taker.begin();
    decoding(decode);
  }
}

function decoding(decode: () => void): void {
  try {
    decode();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ConnectionError("COMPRESSION_ERROR", error.message);
  }
}
