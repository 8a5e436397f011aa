import { decodeText } from "./text.ts";
import {
  END_GROUP,
  FIXED32,
  FIXED64,
  LENGTH,
  MAX_DEPTH,
  START_GROUP,
  VARINT,
  WireError,
} from "./wire_format.ts";

const MAX_VARINT_BYTES = 10;
const TWO_POW_32 = 4_294_967_296;
/** High half of 2^53, from which not every integer is a JavaScript number. */
const UNSAFE_HIGH = 0x20_0000;
const TOO_LARGE = 2 ** 53 + 2;
/** Up to this length, joining characters is faster than calling the decoder (measured). */
const SHORT_TEXT_BYTES = 64;

/** The last short texts by a hash of their bytes. */
const KNOWN_TEXTS = 256;
const KNOWN = new Array<string>(KNOWN_TEXTS).fill("");

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads one message. `next` returns the tag of a field; the caller then calls the method that reads its value, or
 * `skip`. All of them throw `WireError` for invalid bytes.
 */
export class WireReader {
  readonly #bytes: Uint8Array;
  readonly #outerEnds: number[] = [];
  readonly #outerNames: string[] = [];
  #name: string;
  #at = 0;
  #end: number;
  #tag = 0;
  #low = 0;
  #high = 0;

  /** `name` is the name of the message in errors. */
  constructor(bytes: Uint8Array, name: string) {
    this.#bytes = bytes;
    this.#end = bytes.length;
    this.#name = name;
  }

  /** The tag of the next field, `number << 3 | wire type`; 0 at the end of the message. */
  next(): number {
    this.#tag = 0;
    if (this.#at >= this.#end) return 0;
    this.#varint();
    if (this.#high !== 0) throw this.#error("its tag is longer than 32 bits");
    if (this.#low >>> 3 === 0) throw this.#error("0 is not a field number");
    this.#tag = this.#low >>> 0;
    return this.#tag;
  }

  /** Enters the message that is the value of this field. */
  enter(name: string): void {
    const length = this.#length();
    if (this.#outerEnds.length >= MAX_DEPTH) throw this.#tooDeep();
    this.#outerEnds.push(this.#end);
    this.#outerNames.push(this.#name);
    this.#end = this.#at + length;
    this.#name = name;
  }

  /** Leaves it, after `next` returned 0. */
  leave(): void {
    this.#end = this.#outerEnds.pop() ?? this.#end;
    this.#name = this.#outerNames.pop() ?? this.#name;
  }

  /** The tags of the message that is the value of this field. Not for the hot path: it is a generator. */
  *message(name: string): Generator<number, void> {
    this.enter(name);
    for (let tag = this.next(); tag !== 0; tag = this.next()) yield tag;
    this.leave();
  }

  /** An unsigned 32-bit integer. */
  uint32(): number {
    this.#varint();
    return this.#low >>> 0;
  }

  /** A signed 32-bit integer or an enum. */
  int32(): number {
    this.#varint();
    return this.#low;
  }

  /** An unsigned 64-bit integer; 2^53 + 2 for everything above 2^53. */
  uint64(): number {
    this.#varint();
    if (this.#high < 0 || this.#high >= UNSAFE_HIGH) {
      return this.#high === UNSAFE_HIGH && this.#low === 0 ? 2 ** 53 : TOO_LARGE;
    }
    return this.#high * TWO_POW_32 + (this.#low >>> 0);
  }

  /** A signed 64-bit integer, rounded beyond 2^53. */
  int64(): number {
    this.#varint();
    return this.#high * TWO_POW_32 + (this.#low >>> 0);
  }

  bool(): boolean {
    this.#varint();
    return (this.#low | this.#high) !== 0;
  }

  double(): number {
    const start = this.#take(8);
    return new DataView(this.#bytes.buffer, this.#bytes.byteOffset + start, 8).getFloat64(0, true);
  }

  /** A text, which must be UTF-8. */
  string(): string {
    const length = this.#length();
    const start = this.#take(length);
    const ascii = this.#shortAscii(start, length);
    if (ascii !== undefined) return ascii;
    try {
      return UTF8.decode(this.#bytes.subarray(start, start + length));
    } catch (cause) {
      throw this.#error("its text is not UTF-8", { cause });
    }
  }

  /** A text from the clients of a proxy, which need not be UTF-8: see `decodeText`. */
  clientString(): string {
    const length = this.#length();
    return this.#clientText(this.#take(length), length);
  }

  /** The same for one that probably repeats, such as a key: a known one is not created again. */
  repeatedClientString(): string {
    const length = this.#length();
    const start = this.#take(length);
    if (length === 0 || length > SHORT_TEXT_BYTES) return this.#clientText(start, length);
    const bytes = this.#bytes;
    const slot = ((bytes[start] ?? 0) * 31 + (bytes[start + length - 1] ?? 0) * 7 + length) % KNOWN_TEXTS;
    const known = KNOWN[slot];
    if (known !== undefined && known.length === length && this.#isAt(known, start)) return known;
    return KNOWN[slot] = this.#clientText(start, length);
  }

  #isAt(text: string, start: number): boolean {
    const bytes = this.#bytes;
    for (let index = 0; index < text.length; index++) {
      const byte = bytes[start + index] ?? 0;
      if (byte !== text.charCodeAt(index) || byte > 0x7f) return false;
    }
    return true;
  }

  #clientText(start: number, length: number): string {
    return this.#shortAscii(start, length) ?? decodeText(this.#bytes.subarray(start, start + length));
  }

  #shortAscii(start: number, length: number): string | undefined {
    return length <= SHORT_TEXT_BYTES ? this.#ascii(start, start + length) : undefined;
  }

  /** The bytes, as a view of the message. */
  view(): Uint8Array {
    const length = this.#length();
    const start = this.#take(length);
    return this.#bytes.subarray(start, start + length);
  }

  /** A copy of the bytes. */
  bytes(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.view());
  }

  /** Skips the value. */
  skip(): void {
    const wireType = this.#tag & 7;
    if (wireType === VARINT) this.#varint();
    else if (wireType === LENGTH) this.#take(this.#length());
    else if (wireType === FIXED64) this.#take(8);
    else if (wireType === FIXED32) this.#take(4);
    else if (wireType === START_GROUP) this.#skipGroup();
    else if (wireType === END_GROUP) throw this.#error("a group ends that has not begun");
    else throw this.#error(`${wireType} is not a wire type`);
  }

  /** Skips a group with everything inside. */
  #skipGroup(): void {
    const groups = [this.#tag >>> 3];
    while (groups.length > 0) {
      if (this.#outerEnds.length + groups.length > MAX_DEPTH) throw this.#tooDeep();
      const tag = this.next();
      if (tag === 0) throw this.#error("a group has no end");
      const wireType = tag & 7;
      if (wireType === START_GROUP) groups.push(tag >>> 3);
      else if (wireType !== END_GROUP) this.skip();
      else if (groups.pop() !== tag >>> 3) {
        throw this.#error("another group ends than the one that has begun");
      }
    }
  }

  /** The text of these bytes; undefined when one is not ASCII. */
  #ascii(start: number, end: number): string | undefined {
    const bytes = this.#bytes;
    let text = "";
    let at = start;
    for (; at + 4 <= end; at += 4) {
      const a = bytes[at] ?? 0;
      const b = bytes[at + 1] ?? 0;
      const c = bytes[at + 2] ?? 0;
      const d = bytes[at + 3] ?? 0;
      if ((a | b | c | d) > 0x7f) return undefined;
      text += String.fromCharCode(a, b, c, d);
    }
    for (; at < end; at++) {
      const byte = bytes[at] ?? 0;
      if (byte > 0x7f) return undefined;
      text += String.fromCharCode(byte);
    }
    return text;
  }

  #length(): number {
    this.#varint();
    const length = (this.#high >>> 0) * TWO_POW_32 + (this.#low >>> 0);
    const left = this.#end - this.#at;
    if (length > left) throw this.#error(`length ${length} goes beyond the ${count(left)} left`);
    return length;
  }

  #take(length: number): number {
    const start = this.#at;
    const left = this.#end - start;
    if (length > left) throw this.#error(`its ${count(length)} go beyond the ${count(left)} left`);
    this.#at = start + length;
    return start;
  }

  /** Reads a varint into two halves, so that none of its 64 bits is rounded. */
  #varint(): void {
    const first = this.#bytes[this.#at] ?? 0;
    if (first < 0x80 && this.#at < this.#end) {
      this.#at++;
      this.#low = first;
      this.#high = 0;
      return;
    }
    this.#longVarint();
  }

  #longVarint(): void {
    const start = this.#at;
    let low = 0;
    let high = 0;
    for (let index = 0; index < MAX_VARINT_BYTES; index++) {
      if (start + index >= this.#end) throw this.#error(`its number is cut off after ${count(index)}`);
      const byte = this.#bytes[start + index] ?? 0;
      const bits = byte & 0x7f;
      const shift = 7 * index;
      if (shift < 32) low |= bits << shift;
      if (shift === 28) high = bits >>> 4;
      else if (shift > 28) high |= bits << (shift - 32);
      if (byte < 0x80) {
        this.#at = start + index + 1;
        this.#low = low;
        this.#high = high;
        return;
      }
    }
    throw this.#error(`its number is longer than ${MAX_VARINT_BYTES} bytes`);
  }

  #tooDeep(): WireError {
    return this.#error(`messages are nested more than ${MAX_DEPTH} deep`);
  }

  #error(state: string, options?: ErrorOptions): WireError {
    const field = this.#tag === 0 ? "a field" : `field ${this.#tag >>> 3}`;
    return new WireError(`Cannot read ${field} of "${this.#name}": ${state}`, options);
  }
}

function count(bytes: number): string {
  return bytes === 1 ? "1 byte" : `${bytes} bytes`;
}
