import { encodeCurrentLimit, type WireCurrentLimit } from "./rls.ts";
import { encodeStruct, type WireStruct } from "./struct.ts";
import { LENGTH, VARINT } from "./wire_format.ts";
import { WireWriter } from "./writer.ts";

const UTF8 = new TextEncoder();

/** Fields of a response and of its status, by their numbers. */
const TAGS = { code: [1 << 3 | VARINT], status: [2 << 3 | LENGTH], currentLimit: [2 << 3 | LENGTH] } as const;
const LIMIT_REMAINING_TAG = 3 << 3 | VARINT;
const DURATION_TAG = 4 << 3 | LENGTH;
const SECONDS_TAG = 1 << 3 | VARINT;
const HEADER_FIELD = 3;
const [HEADER_TAG, KEY_TAG, VALUE_TAG] = [HEADER_FIELD << 3 | LENGTH, 1 << 3 | LENGTH, 2 << 3 | LENGTH];
const METADATA_TAG = 6 << 3 | LENGTH;
/** The number of `OK` in `RateLimitResponse.Code`. */
const OK = 1;
/** Positions in a response: each behind its tag, and the status behind its length. */
const CODE_AT = 1;
const STATUS_LENGTH_AT = 3;
const STATUS_CODE_AT = 5;
/** Size of the remaining hits and the duration: two tags, two numbers of at most 5 and 10 bytes, a tag and a length. */
const MAX_STATUS_REST = 19;
/** With it and its own tags a status has less than 128 bytes. */
const MAX_FORM_LIMIT = 100;
/** The longest length that is one byte. */
const MAX_SHORT_LENGTH = 127;
/** Digits of the largest duration in seconds. */
const MAX_DIGITS = 12;
const DIGIT_0 = 0x30;
/** Larger metadata is not kept, because each request has its own. */
const MAX_METADATA_BYTES = 1_024;
/** Size of the tag and the length of metadata. */
const METADATA_HEAD = 3;

/** A header whose values differ only in numbers: constant texts, with a number between each two of them. */
interface WireHeaderForm {
  readonly key: string;
  readonly texts: readonly string[];
  readonly numbers: readonly ("remaining" | "reset")[];
}

/** Writes responses that differ only in numbers. */
export interface ResponseForm {
  readonly maxBytes: number;
  /** Writes a response at a position and returns its end. Codes are numbers of `RateLimitResponse.Code`. */
  write(
    into: Uint8Array,
    at: number,
    overallCode: number,
    code: number,
    limitRemaining: number,
    secondsUntilReset: number,
  ): number;
}

/** Writes responses with one status. `unit` is a number of `RateLimitResponse.RateLimit.Unit`. */
export class LimitResponseForm implements ResponseForm {
  /** The bytes before what remains, which begin with those before the length of the status. */
  readonly #head: Uint8Array;
  readonly #headers: readonly HeaderWriter[];
  readonly maxBytes: number;

  private constructor(limit: Uint8Array, headers: readonly HeaderWriter[]) {
    const status = [...TAGS.code, 0, ...TAGS.currentLimit, limit.length, ...limit];
    this.#head = new Uint8Array([...TAGS.code, 0, ...TAGS.status, 0, ...status]);
    this.#headers = headers;
    const statusBytes = this.#head.length + MAX_STATUS_REST;
    this.maxBytes = headers.reduce((bytes, header) => bytes + header.maxBytes, statusBytes);
  }

  /** The form for this limit; undefined if names are so long that the lengths before numbers have more than one byte. */
  static of(limit: WireCurrentLimit, headers: readonly WireHeaderForm[]): LimitResponseForm | undefined {
    const bytes = encodeCurrentLimit(limit);
    if (bytes.length > MAX_FORM_LIMIT) return undefined;
    const writers = headers.map((header) => HeaderWriter.of(header));
    return writers.every((writer) => writer !== undefined)
      ? new LimitResponseForm(bytes, writers)
      : undefined;
  }

  write(
    into: Uint8Array,
    at: number,
    overallCode: number,
    code: number,
    limitRemaining: number,
    secondsUntilReset: number,
  ): number {
    let end = copyBytes(this.#head, into, at);
    into[at + CODE_AT] = overallCode;
    into[at + STATUS_CODE_AT] = code;
    if (limitRemaining > 0) {
      into[end] = LIMIT_REMAINING_TAG;
      end = writeVarint(into, end + 1, limitRemaining);
    }
    into[end] = DURATION_TAG;
    into[end + 2] = SECONDS_TAG;
    const afterSeconds = writeVarint(into, end + 3, secondsUntilReset);
    into[end + 1] = afterSeconds - end - 2;
    into[at + STATUS_LENGTH_AT] = afterSeconds - at - STATUS_LENGTH_AT - 1;
    end = afterSeconds;
    const headers = this.#headers;
    for (let index = 0; index < headers.length; index++) {
      end = headers[index]?.write(into, end, limitRemaining, secondsUntilReset) ?? end;
    }
    return end;
  }
}

/** Writes responses with metadata, of which those that are not `OK` have only the first part. */
export class MetadataResponseForm implements ResponseForm {
  readonly #form: LimitResponseForm;
  readonly #metadata: Uint8Array;
  readonly #refusedBytes: number;
  readonly maxBytes: number;

  private constructor(form: LimitResponseForm, metadata: Uint8Array, refusedBytes: number) {
    this.#form = form;
    this.#metadata = metadata;
    this.#refusedBytes = refusedBytes;
    this.maxBytes = form.maxBytes + METADATA_HEAD + metadata.length;
  }

  /** The form with the metadata of a response that is `OK`, which begins with that of one that is not; undefined if it is large. */
  static of(
    form: LimitResponseForm,
    { granted, refused }: { readonly granted: WireStruct; readonly refused: WireStruct },
  ): MetadataResponseForm | undefined {
    const metadata = encodeStruct(granted);
    if (metadata.length > MAX_METADATA_BYTES) return undefined;
    return new MetadataResponseForm(form, metadata.slice(), encodeStruct(refused).length);
  }

  write(
    into: Uint8Array,
    at: number,
    overallCode: number,
    code: number,
    limitRemaining: number,
    secondsUntilReset: number,
  ): number {
    const end = this.#form.write(into, at, overallCode, code, limitRemaining, secondsUntilReset);
    const metadata = this.#metadata;
    const length = code === OK ? metadata.length : this.#refusedBytes;
    into[end] = METADATA_TAG;
    const start = writeVarint(into, end + 1, length);
    for (let index = 0; index < length; index++) into[start + index] = metadata[index] ?? 0;
    return start + length;
  }
}

/** Writes one header of a response. */
class HeaderWriter {
  /** The bytes before the first number. */
  readonly #head: Uint8Array;
  /** The position of the length of the value. */
  readonly #valueLengthAt: number;
  readonly #rest: readonly { readonly isReset: boolean; readonly text: Uint8Array }[];
  readonly maxBytes: number;

  private constructor(
    head: Uint8Array,
    valueLengthAt: number,
    rest: readonly { readonly isReset: boolean; readonly text: Uint8Array }[],
  ) {
    this.#head = head;
    this.#valueLengthAt = valueLengthAt;
    this.#rest = rest;
    this.maxBytes = rest.reduce((bytes, { text }) => bytes + MAX_DIGITS + text.length, head.length);
  }

  /** Undefined if a length that depends on numbers may be longer than one byte. */
  static of({ key, texts: [first = "", ...others], numbers }: WireHeaderForm): HeaderWriter | undefined {
    if (numbers.length === 0) return new HeaderWriter(encodeHeader(key, first), 0, []);
    const name = UTF8.encode(key);
    const start = [HEADER_TAG, 0, KEY_TAG, name.length, ...name, VALUE_TAG, 0];
    const rest = numbers.map((number, index) => ({
      isReset: number === "reset",
      text: UTF8.encode(others[index]),
    }));
    const head = new Uint8Array([...start, ...UTF8.encode(first)]);
    const writer = new HeaderWriter(head, start.length - 1, rest);
    return writer.maxBytes > MAX_SHORT_LENGTH ? undefined : writer;
  }

  write(into: Uint8Array, at: number, remaining: number, reset: number): number {
    let end = copyBytes(this.#head, into, at);
    const rest = this.#rest;
    if (rest.length === 0) return end;
    for (let index = 0; index < rest.length; index++) {
      const part = rest[index];
      if (part === undefined) continue;
      end = copyBytes(part.text, into, writeDecimal(into, end, part.isReset ? reset : remaining));
    }
    const valueAt = at + this.#valueLengthAt;
    into[at + 1] = end - at - 2;
    into[valueAt] = end - valueAt - 1;
    return end;
  }
}

function encodeHeader(key: string, value: string): Uint8Array {
  const writer = new WireWriter();
  const start = writer.begin(HEADER_FIELD);
  writer.string(1, key);
  writer.string(2, value);
  writer.end(start);
  // A copy: the writer's bytes are part of a slab.
  return writer.finish().slice();
}

/** Copies bytes to a position and returns their end. Copying short ones in a loop is faster than a call. */
function copyBytes(from: Uint8Array, into: Uint8Array, at: number): number {
  const { length } = from;
  for (let index = 0; index < length; index++) into[at + index] = from[index] ?? 0;
  return at + length;
}

function writeVarint(into: Uint8Array, at: number, value: number): number {
  let rest = value;
  let end = at;
  for (; rest > 0x7fff_ffff; rest = Math.floor(rest / 128)) into[end++] = rest % 128 | 0x80;
  for (; rest > 0x7f; rest >>>= 7) into[end++] = rest & 0x7f | 0x80;
  into[end++] = rest;
  return end;
}

/** Writes the digits of a whole number of at least 0. */
function writeDecimal(into: Uint8Array, at: number, value: number): number {
  let end = at + 1;
  for (let bound = 10; value >= bound; bound *= 10) end++;
  let index = end - 1;
  let rest = value;
  // Division of integers is much faster once they have 31 bits.
  for (; rest > 0x7fff_ffff; index--) {
    const tenth = Math.floor(rest / 10);
    into[index] = DIGIT_0 + rest - tenth * 10;
    rest = tenth;
  }
  for (; index >= at; index--) {
    const tenth = (rest / 10) | 0;
    into[index] = DIGIT_0 + rest - tenth * 10;
    rest = tenth;
  }
  return end;
}
