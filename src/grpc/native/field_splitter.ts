/** Takes what a splitter finds. */
interface SplitFields {
  /** Takes whole fields, in a view that is only valid during the call. */
  fields(bytes: Uint8Array): void;
  /** A field is passed over, because its name or value is too long; `isIndexed` if it is meant for the table. */
  dropped(bytes: number, isIndexed: boolean): void;
}

/** Encoded strings beyond this length are passed over: decoded, they are larger than a dynamic table of 4,096 bytes. */
const MAX_STRING_BYTES = 16_384;
/** Above every length, as in the decoder. */
const MAX_INTEGER = 2 ** 24;
const INDEXED = 0x80;
const LITERAL_INDEXED = 0x40;
const TABLE_SIZE = 0x20;
const NO_BYTES = new Uint8Array(0);

/** Kind of the next bytes: a whole field, a part of one, or one up to a name or value that is too long. */
type Found = "whole" | "partial" | "long_name" | "long_value";

/**
 * Cuts a header block that arrives in pieces after its last whole field, so that it is decoded as it arrives. Keeps the
 * field that is incomplete, and nothing of a string that is too long. The cost is linear, however small the pieces are.
 */
export class FieldSplitter {
  readonly #to: SplitFields;
  readonly #held = new HeldBytes();
  /** Number of bytes of a string that are still to be passed over. */
  #skip = 0;
  /** A name was passed over, and its value follows. */
  #isValueDue = false;
  #bytes: Uint8Array = NO_BYTES;
  #at = 0;
  /** The integer that was read last. */
  #value = 0;
  /** The literal field that was read last. */
  readonly #literal = { isIndexed: false, nameBytes: 0 };

  constructor(to: SplitFields) {
    this.#to = to;
  }

  /** True if the block may end here. */
  get isWhole(): boolean {
    return this.#held.length === 0 && this.#skip === 0 && !this.#isValueDue;
  }

  write(piece: Uint8Array): void {
    let bytes = piece;
    const held = this.#held;
    if (held.length > 0) {
      held.add(piece);
      if (held.length < held.needed) return;
      bytes = held.take();
    }
    let from = 0;
    for (;;) {
      const skipped = Math.min(this.#skip, bytes.length - from);
      this.#skip -= skipped;
      from += skipped;
      if (from === bytes.length) return;
      const end = this.#split(bytes, from);
      if (end === from) return held.add(bytes.subarray(from));
      from = end;
    }
  }

  /** Hands on whole fields; returns where they end, or where a long string begins. */
  #split(bytes: Uint8Array, from: number): number {
    this.#bytes = bytes;
    this.#at = from;
    let end = from;
    let found: Found = "whole";
    if (this.#isValueDue) found = this.#integer(7) ? "long_value" : "partial";
    while (found === "whole" && this.#at < bytes.length) {
      found = this.#field();
      if (found === "whole") end = this.#at;
    }
    if (end > from) this.#to.fields(bytes.subarray(from, end));
    this.#held.needed -= end;
    if (found === "whole" || found === "partial") return end;
    this.#skip = this.#value;
    this.#isValueDue = found === "long_name";
    if (!this.#isValueDue) this.#to.dropped(this.#literal.nameBytes + this.#value, this.#literal.isIndexed);
    return this.#at;
  }

  #field(): Found {
    const first = this.#bytes[this.#at] ?? 0;
    if (first >= INDEXED) return this.#integer(7) ? "whole" : "partial";
    if (first >= TABLE_SIZE && first < LITERAL_INDEXED) return this.#integer(5) ? "whole" : "partial";
    const literal = this.#literal;
    literal.isIndexed = first >= LITERAL_INDEXED;
    literal.nameBytes = 0;
    if (!this.#integer(literal.isIndexed ? 6 : 4)) return "partial";
    if (this.#value === 0) {
      if (!this.#integer(7)) return "partial";
      literal.nameBytes = this.#value;
      if (literal.nameBytes > MAX_STRING_BYTES) return "long_name";
      if (!this.#advance(literal.nameBytes)) return "partial";
    }
    if (!this.#integer(7)) return "partial";
    if (this.#value > MAX_STRING_BYTES) return "long_value";
    return this.#advance(this.#value) ? "whole" : "partial";
  }

  #advance(bytes: number): boolean {
    this.#at += bytes;
    this.#held.needed = this.#at;
    return this.#at <= this.#bytes.length;
  }

  /** Reads an integer into `#value`; false if its end is missing. */
  #integer(prefixBits: number): boolean {
    const mask = 2 ** prefixBits - 1;
    if (!this.#advance(1)) return false;
    this.#value = (this.#bytes[this.#at - 1] ?? 0) & mask;
    if (this.#value < mask) return true;
    for (let factor = 1; factor <= MAX_INTEGER; factor *= 128) {
      if (!this.#advance(1)) return false;
      const byte = this.#bytes[this.#at - 1] ?? 0;
      this.#value += (byte & 0x7f) * factor;
      if (byte < 0x80 && this.#value <= MAX_INTEGER) return true;
    }
    throw new RangeError(`Cannot decode header block: an integer above ${MAX_INTEGER}`);
  }
}

/** The bytes of an incomplete field. */
class HeldBytes {
  length = 0;
  /** Number of bytes that are needed before the field is looked at again. */
  needed = 0;
  #buffer: Uint8Array = NO_BYTES;

  /** Adds bytes, in a buffer that grows by doubling. */
  add(bytes: Uint8Array): void {
    const length = this.length + bytes.length;
    if (length > this.#buffer.length) {
      const grown = new Uint8Array(Math.max(length, 2 * this.#buffer.length));
      grown.set(this.#buffer.subarray(0, this.length));
      this.#buffer = grown;
    }
    this.#buffer.set(bytes, this.length);
    this.length = length;
  }

  /** Removes all bytes and returns them. */
  take(): Uint8Array {
    const bytes = this.#buffer.subarray(0, this.length);
    this.#buffer = NO_BYTES;
    this.length = 0;
    return bytes;
  }
}
