import { FIXED64, LENGTH, MAX_DEPTH, VARINT, WireError } from "./wire_format.ts";

const SLAB_BYTES = 8_192;
/** A new slab is begun when less than this is left, so that few messages outgrow one. */
const SPARE_BYTES = 512;
const MAX_UINT32 = 4_294_967_295;
const TWO_POW_63 = 2 ** 63;
const TWO_POW_64 = 2 ** 64;
const LONGEST_VARINT_BYTES = 10;
/** Up to this length a loop over characters is faster than a call of the encoder. */
const SHORT_TEXT_CHARS = 64;

const UTF8 = new TextEncoder();

/**
 * Messages are written one behind the other into a larger piece of memory, because getting a piece for
 * each costs more than writing it (0.4 against 0.1 µs). A writer takes the slab away while it writes, so
 * that no two ever share one, and gives it back behind its message.
 */
let slab: Uint8Array<ArrayBuffer> | undefined;
let slabUsed = 0;

/**
 * Writes one message, fields in the order of the calls. Methods named after a type leave the default
 * value out, as proto3 does; where presence counts, `begin` and `end` write even an empty message.
 */
export class WireWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  readonly #start: number;
  #at: number;
  #depth = 0;

  /** A writer of an empty message. */
  constructor() {
    this.#start = slab === undefined ? 0 : slabUsed;
    this.#at = this.#start;
    this.#bytes = slab ?? new Uint8Array(SLAB_BYTES);
    slab = undefined;
  }

  /** The message: a view that leaves out its neighbours in the buffer. The writer is of no use afterwards. */
  finish(): Uint8Array<ArrayBuffer> {
    const message = this.#bytes.subarray(this.#start, this.#at);
    if (this.#at + SPARE_BYTES <= SLAB_BYTES) {
      slab = this.#bytes;
      slabUsed = this.#at;
    }
    return message;
  }

  /** Starts a message as the value of `field`; `end` takes the answer. */
  begin(field: number): number {
    if (++this.#depth > MAX_DEPTH) {
      throw new WireError(
        `Cannot write field ${field}: messages are nested more than ${MAX_DEPTH} deep`,
      );
    }
    this.#tag(field, LENGTH);
    this.#reserve(1);
    return ++this.#at;
  }

  /** Ends the message that began at `start`: its length goes before it, with room made where it needs more. */
  end(start: number): void {
    this.#depth--;
    const length = this.#at - start;
    const extra = varintBytes(length) - 1;
    if (extra > 0) {
      this.#reserve(extra);
      this.#bytes.copyWithin(start + extra, start, this.#at);
    }
    this.#at = start - 1;
    this.#varint(length);
    this.#at += length;
  }

  /** A whole number from 0 to 2^32 - 1. */
  uint32(field: number, value: number): void {
    if (value === 0) return;
    if (!(Number.isInteger(value) && value >= 0 && value <= MAX_UINT32)) {
      throw refusal(field, value, `a whole number from 0 to ${MAX_UINT32}`);
    }
    this.#tag(field, VARINT);
    this.#varint(value);
  }

  /** A signed 32-bit number; enums are of this kind. */
  int32(field: number, value: number): void {
    if (value === 0) return;
    if ((value | 0) !== value) throw refusal(field, value, "a signed 32-bit number");
    this.int64(field, value);
  }

  /** A whole number from 0 to below 2^64. */
  uint64(field: number, value: number): void {
    if (value === 0) return;
    if (!(Number.isInteger(value) && value >= 0 && value < TWO_POW_64)) {
      throw refusal(field, value, "a whole number from 0 to below 2^64");
    }
    this.#tag(field, VARINT);
    this.#varint(value);
  }

  /** A whole number within 2^63 of 0. */
  int64(field: number, value: number): void {
    if (value === 0) return;
    if (!(Number.isInteger(value) && Math.abs(value) < TWO_POW_63)) {
      throw refusal(field, value, "a whole number within 2^63 of 0");
    }
    this.#tag(field, VARINT);
    if (value > 0) this.#varint(value);
    else this.#negative(value);
  }

  /** A boolean. */
  bool(field: number, value: boolean): void {
    if (value) this.choiceBool(field, value);
  }

  /** A text. */
  string(field: number, value: string): void {
    if (value !== "") this.choiceString(field, value);
  }

  /** Bytes. */
  bytes(field: number, value: Uint8Array): void {
    if (value.length > 0) this.choiceBytes(field, value);
  }

  /** A boolean that is written even when false: one of several choices, or an item of a list. */
  choiceBool(field: number, value: boolean): void {
    this.#tag(field, VARINT);
    this.#varint(value ? 1 : 0);
  }

  /** A text that is written even when empty: one of several choices, or an item of a list. */
  choiceString(field: number, value: string): void {
    this.#tag(field, LENGTH);
    if (value.length <= SHORT_TEXT_CHARS && this.#ascii(value)) return;
    const encoded = UTF8.encode(value);
    this.#varint(encoded.length);
    this.#append(encoded);
  }

  /** Bytes that are written even when there are none: one of several choices, or an item of a list. */
  choiceBytes(field: number, value: Uint8Array): void {
    this.#tag(field, LENGTH);
    this.#varint(value.length);
    this.#append(value);
  }

  /** A double that is written even when 0: one of several choices. */
  choiceDouble(field: number, value: number): void {
    this.#tag(field, FIXED64);
    this.#reserve(8);
    new DataView(this.#bytes.buffer).setFloat64(this.#at, value, true);
    this.#at += 8;
  }

  /** An enum that is written even when 0: one of several choices. */
  choiceEnum(field: number, value: number): void {
    if (value !== 0) return this.int32(field, value);
    this.#tag(field, VARINT);
    this.#varint(0);
  }

  /** Writes length and characters; leaves nothing behind and answers false when one is not ASCII. */
  #ascii(text: string): boolean {
    this.#reserve(1 + text.length);
    const bytes = this.#bytes;
    const start = this.#at + 1;
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      if (code > 0x7f) return false;
      bytes[start + index] = code;
    }
    bytes[this.#at] = text.length;
    this.#at = start + text.length;
    return true;
  }

  #append(content: Uint8Array): void {
    this.#reserve(content.length);
    this.#bytes.set(content, this.#at);
    this.#at += content.length;
  }

  #tag(field: number, wireType: number): void {
    this.#varint(field << 3 | wireType);
  }

  #varint(value: number): void {
    this.#reserve(LONGEST_VARINT_BYTES);
    const bytes = this.#bytes;
    let rest = value;
    for (; rest > MAX_UINT32; rest = Math.floor(rest / 128)) bytes[this.#at++] = rest % 128 | 0x80;
    let bits = rest | 0;
    for (; bits >>> 0 > 0x7f; bits >>>= 7) bytes[this.#at++] = bits & 0x7f | 0x80;
    bytes[this.#at++] = bits;
  }

  /** Negative numbers are written as 64 bits in two's complement, always 10 bytes. */
  #negative(value: number): void {
    this.#reserve(LONGEST_VARINT_BYTES);
    let rest = BigInt.asUintN(64, BigInt(value));
    while (rest > 0x7fn) {
      this.#bytes[this.#at++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.#bytes[this.#at++] = Number(rest);
  }

  #reserve(count: number): void {
    if (this.#at + count <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(this.#bytes.length * 2, this.#at + count));
    larger.set(this.#bytes);
    this.#bytes = larger;
  }
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) bytes++;
  return bytes;
}

function refusal(field: number, value: number, right: string): WireError {
  return new WireError(`Cannot write field ${field} as "${value}": it must be ${right}`);
}
