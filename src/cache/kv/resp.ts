import { Buffer } from "node:buffer";

/** An error that the server replied with. */
export class ReplyError extends Error {
  override readonly name = "ReplyError";
}

const UTF8 = new TextEncoder();

/** One argument of a command. */
export function respArgument(argument: string | Uint8Array): Uint8Array {
  const bytes = typeof argument === "string" ? UTF8.encode(argument) : argument;
  return new RespWriter().text(`$${bytes.length}\r\n`).bytes(bytes).text("\r\n").finish();
}

/** One command of arguments that are already in the form of `respArgument`, after its name. */
export function respCommand(name: string, ...args: readonly Uint8Array[]): Uint8Array {
  const writer = new RespWriter().text(`*${args.length + 1}\r\n`).bytes(respArgument(name));
  for (const arg of args) writer.bytes(arg);
  return writer.finish();
}

const [CR, LF, MINUS, ZERO] = [13, 10, 45, 48];
const MAX_ASCII = 127;
/** Copying short pieces in a loop is faster than a call. */
const SHORT_BYTES = 64;
const FIRST_BYTES = 4_096;
/** Writers take turns with a few buffers; larger ones are not kept. */
const KEPT_BYTES = 262_144;
const KEPT_BUFFERS = 8;
const spare: Uint8Array[] = [];
/** The arguments of small numbers, such as hits and expiries. */
const SMALL_NUMBERS = Array.from(
  { length: 128 },
  (_, number) => UTF8.encode(`$${String(number).length}\r\n${number}\r\n`),
);
/** The beginnings of short arguments, by their length. */
const LENGTH_HEADS = Array.from({ length: 128 }, (_, length) => UTF8.encode(`$${length}\r\n`));

/** Collects the bytes of commands. */
export class RespWriter {
  #bytes = spare.pop() ?? new Uint8Array(FIRST_BYTES);
  #length = 0;

  /** Takes back the bytes of a writer that were taken. */
  static give({ buffer }: Uint8Array): void {
    if (buffer.byteLength > KEPT_BYTES || spare.length >= KEPT_BUFFERS) return;
    spare.push(new Uint8Array(buffer));
  }

  /** Adds a text of ASCII characters. */
  text(text: string): this {
    const at = this.#reserve(text.length);
    const bytes = this.#bytes;
    for (let index = 0; index < text.length; index++) bytes[at + index] = text.charCodeAt(index);
    return this;
  }

  /** Adds an argument of a command. */
  argument(value: string | number): this {
    const number = typeof value === "number" ? SMALL_NUMBERS[value] : undefined;
    if (number !== undefined) return this.part(number, 0, number.length);
    const text = String(value);
    const start = this.#length;
    const head = LENGTH_HEADS[text.length];
    if (head === undefined) this.text(`$${text.length}\r\n`);
    else this.bytes(head);
    const at = this.#reserve(text.length + 2);
    const bytes = this.#bytes;
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      if (code > MAX_ASCII) {
        this.#length = start;
        return this.bytes(respArgument(text));
      }
      bytes[at + index] = code;
    }
    bytes[at + text.length] = CR;
    bytes[at + text.length + 1] = LF;
    return this;
  }

  bytes(source: Uint8Array): this {
    const { length } = source;
    if (length <= SHORT_BYTES) return this.part(source, 0, length);
    const at = this.#reserve(length);
    this.#bytes.set(source, at);
    return this;
  }

  /** Adds the short piece between two positions. */
  part(source: Uint8Array, start: number, end: number): this {
    const offset = this.#reserve(end - start) - start;
    const bytes = this.#bytes;
    for (let index = start; index < end; index++) bytes[offset + index] = source[index] ?? 0;
    return this;
  }

  /** A copy of what was collected. The writer must not be used afterwards. */
  finish(): Uint8Array {
    const all = this.#bytes.slice(0, this.#length);
    RespWriter.give(this.#bytes);
    return all;
  }

  /** The collected bytes, without a copy; `give` takes it back. The writer must not be used afterwards. */
  take(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  #reserve(count: number): number {
    const at = this.#length;
    this.#length = at + count;
    if (this.#length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#length, 2 * this.#bytes.length));
      grown.set(this.#bytes.subarray(0, at));
      this.#bytes = grown;
    }
    return at;
  }
}

/** The most of one reply that is kept, and of one line. */
const MAX_REPLY_BYTES = 64 * 2 ** 20;
const MAX_LINE_BYTES = 2 ** 20;
const MAX_DEPTH = 8;
/** Longer numbers are rounded, which adding digit by digit would do many times. */
const EXACT_DIGITS = 15;
const INCOMPLETE = Symbol("incomplete");

/** Parses the replies of one connection, in version 2 of the Redis protocol. */
export class RespReader {
  #chunks: Buffer[] = [];
  #size = 0;
  /** The least number of bytes of the current reply. */
  #needed = 0;
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;

  /**
   * Passes on each complete reply: a text, number, `null`, list or `ReplyError`; throws for another protocol. Texts of
   * values have one character a byte.
   */
  read(chunk: Buffer, onReply: (reply: unknown) => void): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size < this.#needed) return;
    this.#bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    this.#at = 0;
    this.#needed = 0;
    let begin = 0;
    while (begin < this.#bytes.length) {
      const reply = this.#reply(0);
      if (reply === INCOMPLETE) break;
      begin = this.#at;
      onReply(reply);
    }
    const rest = this.#bytes.subarray(begin);
    this.#needed -= begin;
    if (Math.max(rest.length, this.#needed) > MAX_REPLY_BYTES) {
      throw new Error("it sent a reply that is too long");
    }
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#size = rest.length;
  }

  #reply(depth: number): unknown {
    const from = this.#at;
    const end = this.#lineEnd(from);
    if (end === INCOMPLETE) return INCOMPLETE;
    this.#at = end + 2;
    switch (this.#bytes[from]) {
      case 0x3a: // :
        return this.#integer(from, end);
      case 0x2b: // +
        return this.#text(from + 1, end);
      case 0x2d: // -
        return new ReplyError(this.#text(from + 1, end));
      case 0x24: // $
        return this.#bulk(this.#integer(from, end));
      case 0x2a: // *
        if (depth < MAX_DEPTH) return this.#list(this.#integer(from, end), depth + 1);
    }
    throw this.#unreadable(from);
  }

  #lineEnd(from: number): number | typeof INCOMPLETE {
    const bytes = this.#bytes;
    let end = from;
    while (end < bytes.length && bytes[end] !== CR) end++;
    if (end - from > MAX_LINE_BYTES) throw this.#unreadable(from);
    if (end + 1 >= bytes.length) return INCOMPLETE;
    if (bytes[end + 1] !== LF) throw this.#unreadable(from);
    return end;
  }

  /** The number between the first byte of a line and its end. */
  #integer(from: number, end: number): number {
    const bytes = this.#bytes;
    const isNegative = bytes[from + 1] === MINUS;
    const first = isNegative ? from + 2 : from + 1;
    let value = 0;
    for (let at = first; at < end; at++) {
      const digit = (bytes[at] ?? 0) - ZERO;
      if (digit < 0 || digit > 9) throw this.#unreadable(from);
      value = value * 10 + digit;
    }
    if (first === end) throw this.#unreadable(from);
    if (end - first > EXACT_DIGITS) return Number(bytes.toString("latin1", from + 1, end));
    return isNegative ? -value : value;
  }

  #bulk(length: number): string | null | typeof INCOMPLETE {
    if (length < 0) return null;
    const from = this.#at;
    this.#at += length + 2;
    if (this.#at > this.#bytes.length) {
      this.#needed = this.#at;
      return INCOMPLETE;
    }
    if (this.#bytes[this.#at - 2] !== CR || this.#bytes[this.#at - 1] !== LF) throw this.#unreadable(from);
    return this.#bytes.toString("latin1", from, this.#at - 2);
  }

  #list(length: number, depth: number): unknown[] | null | typeof INCOMPLETE {
    if (length < 0) return null;
    const list: unknown[] = [];
    while (list.length < length) {
      const reply = this.#reply(depth);
      if (reply === INCOMPLETE) return INCOMPLETE;
      list.push(reply);
    }
    return list;
  }

  #text(from: number, end: number): string {
    return this.#bytes.toString("utf8", from, end);
  }

  #unreadable(from: number): Error {
    const text = this.#bytes.toString("latin1", from, from + 40);
    return new Error(`it sent ${JSON.stringify(text)}, which is not a reply`);
  }
}
