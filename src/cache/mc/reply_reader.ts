import type { Buffer } from "node:buffer";

/** Longest line, and longest value, of a counter or an error. */
const MAX_LINE = 2_048;
const MAX_VALUE = 1_024;
/** Longest value of any server. */
const MAX_ITEM = 2 ** 30;
/** Digits of the largest number of 64 bits. */
const MAX_DIGITS = 20;

const DIGITS = /^\d+$/;
const WORDS = new Set(["STORED", "NOT_STORED", "NOT_FOUND", "DELETED", "END"]);
const TEXTS = /^(?:(?:CLIENT_|SERVER_)?ERROR|VERSION)(?: |$)/;
const VALUE_LINE = /^VALUE [^ ]+ \d+ (\d{1,10})(?: \d+)?$/;

/** Parses replies: each is its line; that of a `get` is `VALUE` and the value, or its length when it is long. */
export class McReplyReader {
  /** The begin of the next reply, one character a byte. */
  #rest = "";
  /** The value of a `get` without its end. */
  #value: string | undefined;
  /** Bytes left of a value that is too long for a counter. */
  #toSkip = 0;
  /** Only the end of its line is left. */
  #isSkipped = false;

  /** Returns the replies that these bytes complete; throws when they are not the protocol. */
  read(bytes: Buffer | string): string[] {
    const text = this.#rest + (typeof bytes === "string" ? bytes : bytes.toString("latin1"));
    const replies: string[] = [];
    let at = this.#skip(text, 0);
    for (let end = text.indexOf("\r\n", at); end !== -1; end = text.indexOf("\r\n", at)) {
      const line = text.slice(at, end);
      if (this.#isSkipped) {
        if (line !== "") throw unreadable(line);
        this.#isSkipped = false;
        at = end + 2;
      } else if (line.startsWith("VALUE ")) {
        const after = this.#takeValue(text, line, end + 2);
        if (after === undefined) break;
        at = after;
      } else {
        replies.push(this.#reply(line));
        at = end + 2;
      }
    }
    this.#rest = text.slice(at);
    if (this.#rest.length > MAX_LINE + MAX_VALUE) throw unreadable(this.#rest);
    return replies;
  }

  /** Keeps the value for its reply; returns where it ends, or nothing when it is incomplete. */
  #takeValue(text: string, line: string, from: number): number | undefined {
    const length = Number(VALUE_LINE.exec(line)?.[1] ?? -1);
    if (length < 0 || length > MAX_ITEM || this.#value !== undefined) throw unreadable(line);
    if (length > MAX_VALUE) {
      // It is no counter, and fails its own key only.
      this.#value = `${length} bytes`;
      this.#toSkip = length;
      return this.#skip(text, from);
    }
    const end = from + length;
    if (text.length < end + 2) return undefined;
    if (!text.startsWith("\r\n", end)) throw unreadable(text.slice(from));
    this.#value = text.slice(from, end);
    return end + 2;
  }

  /** Skips a value that is too long; returns where it ends, or the end of the text. */
  #skip(text: string, from: number): number {
    if (this.#toSkip === 0) return from;
    const skipped = Math.min(this.#toSkip, text.length - from);
    this.#toSkip -= skipped;
    this.#isSkipped = this.#toSkip === 0;
    return from + skipped;
  }

  #reply(line: string): string {
    const value = this.#value;
    if (value !== undefined) {
      this.#value = undefined;
      if (line === "END") return `VALUE ${value}`;
      if (isNumber(line) || WORDS.has(line)) throw unreadable(line);
    }
    if (isNumber(line) || WORDS.has(line) || line.length <= MAX_LINE && TEXTS.test(line)) return line;
    throw unreadable(line);
  }
}

function isNumber(line: string): boolean {
  return line.length <= MAX_DIGITS && DIGITS.test(line);
}

function unreadable(text: string): Error {
  return new Error(`it sent ${JSON.stringify(text.slice(0, 40))}, which is not a reply`);
}
