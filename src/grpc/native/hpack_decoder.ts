import { decodeHuffman, MAX_EXPANSION } from "./huffman.ts";

/** A header field; each character is a byte. */
export type HeaderField = readonly [name: string, value: string];

/** Takes the fields of header blocks. */
export interface FieldTaker {
  /** Called for every field; returns whether its value is to be taken. The answer depends on the name only. */
  keeps(name: string): boolean;
  take(name: string, value: string): void;
}

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

/** Buffer for decoded Huffman strings, one at a time. */
let scratch = new Uint8Array(256);

/**
 * Decodes the header blocks of one direction of one connection (RFC 7541), which must be complete and in order, because
 * each may change the dynamic table. Values that are not kept never become texts. Throws `RangeError` for a bad block;
 * the connection is unusable then.
 */
export class HpackDecoder {
  readonly #table: DynamicTable;
  readonly #maxListBytes: number;
  readonly #maxTextBytes: number;
  #block: Uint8Array = new Uint8Array(0);
  #at = 0;
  #listBytes = 0;
  /** The string that was read last, decoded. */
  #string: Uint8Array = this.#block;

  /**
   * `tableSize` is the announced maximum of the dynamic table, and `maxListBytes` limits the fields of a block. A longer
   * value than `maxTextBytes` is passed over, or cut if it is meant for the table, as names are.
   */
  constructor(tableSize = 4096, maxListBytes = Infinity, maxTextBytes = Infinity) {
    this.#table = new DynamicTable(tableSize);
    this.#maxListBytes = maxListBytes;
    this.#maxTextBytes = maxTextBytes;
  }

  /** Counts changes of the dynamic table: while it is equal, equal blocks have equal fields. */
  get changes(): number {
    return this.#table.changes;
  }

  /** True if the last block exceeded the limit, so that its fields are incomplete. */
  get overflowed(): boolean {
    return this.#listBytes > this.#maxListBytes;
  }

  /** The fields of one block, in order. */
  decode(block: Uint8Array): HeaderField[] {
    const fields: HeaderField[] = [];
    this.begin();
    this.read(block, { keeps: () => true, take: (name, value) => void fields.push([name, value]) });
    return fields;
  }

  begin(): void {
    this.#listBytes = 0;
  }

  /** Reads whole fields of the block that has begun. Beyond the limit it only keeps the dynamic table right. */
  read(fields: Uint8Array, taker: FieldTaker): void {
    this.#block = fields;
    this.#at = 0;
    while (this.#at < fields.length) {
      const first = fields[this.#at] ?? 0;
      if (first >= 0x80) this.#readIndexed(taker);
      else if (first >= 0x40) this.#readLiteral(6, taker);
      else if (first < 0x20) this.#readLiteral(4, taker);
      else this.#resize();
    }
  }

  /** Passes over a field of the block that is larger than the table; `isIndexed` if it is meant for the table. */
  drop(bytes: number, isIndexed: boolean): void {
    this.#listBytes += bytes + ENTRY_OVERHEAD;
    if (isIndexed) this.#table.add(["", ""], bytes + ENTRY_OVERHEAD);
  }

  #readIndexed(taker: FieldTaker): void {
    const index = this.#integer(7);
    const field = this.#field(index);
    this.#listBytes += this.#table.sizes[index - 1 - STATIC_TABLE.length] ?? sizeOf(field);
    if (!this.overflowed && taker.keeps(field[0])) taker.take(...field);
  }

  #readLiteral(prefixBits: 4 | 6, taker: FieldTaker): void {
    const index = this.#integer(prefixBits);
    let name: string;
    let size = ENTRY_OVERHEAD;
    if (index === 0) {
      this.#readString();
      name = this.#text();
      size += this.#string.length;
    } else {
      [name] = this.#field(index);
      size += name.length;
    }
    const isKept = taker.keeps(name);
    const isForTable = prefixBits === 6;
    const isDecoded = this.#readString(isForTable ? Infinity : this.#maxTextBytes);
    size += this.#string.length;
    const value = isKept && isDecoded ? this.#text() : "";
    if (isForTable) this.#table.add([name, value], size);
    this.#listBytes += size;
    if (isKept && isDecoded && !this.overflowed) taker.take(name, value);
  }

  #field(index: number): HeaderField {
    const field = index <= STATIC_TABLE.length
      ? STATIC_TABLE[index - 1]
      : this.#table.entries[index - 1 - STATIC_TABLE.length];
    if (field === undefined) throw this.#error(`no table has the index ${index}`);
    return field;
  }

  #resize(): void {
    const size = this.#integer(5);
    if (this.#listBytes > 0) {
      throw this.#error("a change of the table's size must come before the first field");
    }
    const { limit } = this.#table;
    if (size > limit) throw this.#error(`a table of ${size} bytes; expected at most ${limit}`);
    this.#table.resize(size);
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

  /** Reads a string into `#string`; false for one that is longer than `maxBytes`, which is not decoded. */
  #readString(maxBytes = Infinity): boolean {
    const isHuffman = (this.#block[this.#at] ?? 0) >= 0x80;
    const length = this.#integer(7);
    const start = this.#at;
    this.#at += length;
    if (this.#at > this.#block.length) throw this.#error("a string ends beyond the block");
    const bytes = this.#block.subarray(start, this.#at);
    this.#string = bytes;
    if (length > maxBytes) return false;
    if (!isHuffman) return true;
    const room = Math.ceil(length * MAX_EXPANSION);
    if (scratch.length < room) scratch = new Uint8Array(room);
    this.#string = scratch.subarray(0, decodeHuffman(bytes, scratch));
    return true;
  }

  /** The string that was read last, as a text. */
  #text(): string {
    const length = Math.min(this.#string.length, this.#maxTextBytes);
    let text = "";
    for (let index = 0; index < length; index++) text += String.fromCharCode(this.#string[index] ?? 0);
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

/** The fields to which later blocks refer by their position. */
class DynamicTable {
  /** The announced maximum size. */
  readonly limit: number;
  /** Newest entry first; the value is empty if it is not kept. */
  readonly entries: HeaderField[] = [];
  /** The size of each entry. */
  readonly sizes: number[] = [];
  /** Counts changes. */
  changes = 0;
  #maxSize: number;
  #size = 0;

  constructor(limit: number) {
    this.limit = limit;
    this.#maxSize = limit;
  }

  add(field: HeaderField, size: number): void {
    this.entries.unshift(field);
    this.sizes.unshift(size);
    this.#size += size;
    this.#evict();
  }

  resize(maxSize: number): void {
    this.#maxSize = maxSize;
    this.#evict();
  }

  #evict(): void {
    this.changes++;
    while (this.#size > this.#maxSize) {
      this.entries.pop();
      this.#size -= this.sizes.pop() ?? 0;
    }
  }
}

function sizeOf(field: HeaderField): number {
  return field[0].length + field[1].length + ENTRY_OVERHEAD;
}
