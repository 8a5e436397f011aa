import { decodeHuffman } from "./huffman.ts";

/** A header field; each character is a byte. */
export type HeaderField = readonly [name: string, value: string];

/** The static table of RFC 7541, appendix A; its first entry has the index 1. */
const STATIC_TABLE: readonly HeaderField[] = [
  [":authority", ""],
  [":method", "GET"],
  [":method", "POST"],
  [":path", "/"],
  [":path", "/index.html"],
  [":scheme", "http"],
  [":scheme", "https"],
  [":status", "200"],
  [":status", "204"],
  [":status", "206"],
  [":status", "304"],
  [":status", "400"],
  [":status", "404"],
  [":status", "500"],
  ["accept-charset", ""],
  ["accept-encoding", "gzip, deflate"],
  ...[
    "accept-language accept-ranges accept access-control-allow-origin age allow authorization",
    "cache-control content-disposition content-encoding content-language content-length content-location",
    "content-range content-type cookie date etag expect expires from host if-match if-modified-since",
    "if-none-match if-range if-unmodified-since last-modified link location max-forwards",
    "proxy-authenticate proxy-authorization range referer refresh retry-after server set-cookie",
    "strict-transport-security transfer-encoding user-agent vary via www-authenticate",
  ].join(" ").split(" ").map((name): HeaderField => [name, ""]),
];

/** Size of an entry in addition to its bytes (RFC 7541, section 4.1). */
const ENTRY_OVERHEAD = 32;
/** Above the length of every header, and below the limit of shifts. */
const MAX_INTEGER = 2 ** 24;

/**
 * Decodes the header blocks of one direction of one connection (RFC 7541), which must be complete and in order, because
 * each may change the dynamic table. Throws `RangeError` for a bad block; the connection is unusable then.
 */
export class HpackDecoder {
  readonly #limit: number;
  #maxSize: number;
  #size = 0;
  /** Newest entry first. */
  #entries: HeaderField[] = [];
  readonly #maxListBytes: number;
  #block: Uint8Array = new Uint8Array(0);
  #at = 0;
  #changes = 0;
  #listBytes = 0;

  /** `tableSize` is the announced maximum of the dynamic table; `maxListBytes` limits the fields of a block. */
  constructor(tableSize = 4096, maxListBytes = Infinity) {
    this.#limit = tableSize;
    this.#maxSize = tableSize;
    this.#maxListBytes = maxListBytes;
  }

  /** Counts changes of the dynamic table: while it is equal, equal blocks have equal fields. */
  get changes(): number {
    return this.#changes;
  }

  /** Whether the last block exceeded the limit, so that its fields are incomplete. */
  get overflowed(): boolean {
    return this.#listBytes > this.#maxListBytes;
  }

  /** The dynamic table, newest entry first. */
  get dynamicTable(): readonly HeaderField[] {
    return this.#entries;
  }

  /** Size of the dynamic table in bytes. */
  get dynamicTableSize(): number {
    return this.#size;
  }

  /** The fields of one block, in order. */
  decode(block: Uint8Array): HeaderField[] {
    this.#block = block;
    this.#at = 0;
    this.#listBytes = 0;
    const fields: HeaderField[] = [];
    while (this.#at < block.length) {
      const first = block[this.#at] ?? 0;
      if (first >= 0x80) this.#collect(fields, this.#field(this.#integer(7)));
      else if (first >= 0x40) this.#collect(fields, this.#remember(this.#literal(6)));
      else if (first < 0x20) this.#collect(fields, this.#literal(4));
      else this.#resize(this.#listBytes > 0);
    }
    return fields;
  }

  /** Beyond the limit fields are decoded for the dynamic table, but dropped. */
  #collect(fields: HeaderField[], field: HeaderField): void {
    this.#listBytes += sizeOf(field);
    if (this.#listBytes <= this.#maxListBytes) fields.push(field);
  }

  #field(index: number): HeaderField {
    const field = index <= STATIC_TABLE.length
      ? STATIC_TABLE[index - 1]
      : this.#entries[index - 1 - STATIC_TABLE.length];
    if (field === undefined) throw this.#error(`no table has the index ${index}`);
    return field;
  }

  #literal(prefixBits: number): HeaderField {
    const index = this.#integer(prefixBits);
    const name = index === 0 ? this.#string() : this.#field(index)[0];
    return [name, this.#string()];
  }

  #remember(field: HeaderField): HeaderField {
    this.#changes++;
    this.#entries.unshift(field);
    this.#size += sizeOf(field);
    this.#evict();
    return field;
  }

  #resize(afterFields: boolean): void {
    const size = this.#integer(5);
    this.#changes++;
    if (afterFields) throw this.#error("a change of the table's size must come before the first field");
    if (size > this.#limit) {
      throw this.#error(`a table of ${size} bytes; expected at most ${this.#limit}`);
    }
    this.#maxSize = size;
    this.#evict();
  }

  #evict(): void {
    while (this.#size > this.#maxSize) {
      const oldest = this.#entries.pop();
      if (oldest === undefined) return;
      this.#size -= sizeOf(oldest);
    }
  }

  #integer(prefixBits: number): number {
    const mask = 2 ** prefixBits - 1;
    let value = this.#byte() & mask;
    if (value < mask) return value;
    let factor = 1;
    for (;;) {
      const byte = this.#byte();
      value += (byte & 0x7f) * factor;
      if (value > MAX_INTEGER) throw this.#error(`an integer above ${MAX_INTEGER}`);
      if (byte < 0x80) return value;
      factor *= 128;
      if (factor > MAX_INTEGER) throw this.#error("an integer of too many bytes");
    }
  }

  #string(): string {
    const isHuffman = (this.#block[this.#at] ?? 0) >= 0x80;
    const length = this.#integer(7);
    const start = this.#at;
    this.#at += length;
    if (this.#at > this.#block.length) throw this.#error("a string ends beyond the block");
    const bytes = this.#block.subarray(start, this.#at);
    if (isHuffman) return decodeHuffman(bytes);
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return text;
  }

  #byte(): number {
    const byte = this.#block[this.#at];
    if (byte === undefined) throw this.#error("it ends in the middle of a field");
    this.#at++;
    return byte;
  }

  #error(state: string): RangeError {
    return new RangeError(`Cannot decode header block at byte "${this.#at}": ${state}`);
  }
}

function sizeOf(field: HeaderField): number {
  return field[0].length + field[1].length + ENTRY_OVERHEAD;
}
