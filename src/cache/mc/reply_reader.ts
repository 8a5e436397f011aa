import type { Buffer } from "node:buffer";

/** Longest line, and longest value, that a counter or an error text can need. */
const MAX_LINE = 2_048;
const MAX_VALUE = 1_024;
/** Longest value that a server can be told to take. */
const MAX_ITEM = 2 ** 30;
/** Digits of the largest number of 64 bits. */
const MAX_DIGITS = 20;

const WORDS = new Set(["STORED", "NOT_STORED", "NOT_FOUND", "DELETED", "END"]);
const TEXTS = /^(?:(?:CLIENT_|SERVER_)?ERROR|VERSION)(?: |$)/;
const VALUE_LINE = /^VALUE [^ ]+ \d+ (\d{1,10})(?: \d+)?$/;

/**
 * Finds the replies in what a node of a memcached-style cache sends. Each is the line as it came; that of
 * a `get` which found something is `VALUE` and the value, or how long it is when it is too long for a counter.
 */
export class McReplyReader {
  /** What has come of a reply that is not whole yet, one character an octet. */
  #rest = "";
  /** The value of a `get` whose end has not come yet. */
  #value: string | undefined;
  /** Octets to come of a value that is too long for a counter, and of which nothing is kept. */
  #toSkip = 0;
  /** Its last octet has come, and the end of its line has not. */
  #skipped = false;

  /**
   * Takes what was read, a text with one character an octet, and answers the replies that are whole now.
   * Throws when it is not the protocol.
   */
  read(bytes: Buffer | string): string[] {
    const text = this.#rest + (typeof bytes === "string" ? bytes : bytes.toString("latin1"));
    const replies: string[] = [];
    let at = this.#skip(text, 0);
    for (let end = text.indexOf("\r\n", at); end !== -1; end = text.indexOf("\r\n", at)) {
      const line = text.slice(at, end);
      if (this.#skipped) {
        if (line !== "") throw unreadable(line);
        this.#skipped = false;
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

  /** Keeps the value for its reply; answers where it ends, or nothing when it is not all there. */
  #takeValue(text: string, line: string, from: number): number | undefined {
    const length = Number(VALUE_LINE.exec(line)?.[1] ?? -1);
    if (length < 0 || length > MAX_ITEM || this.#value !== undefined) throw unreadable(line);
    if (length > MAX_VALUE) {
      // Somebody else's, which is to fail its own key only.
      this.#value = `${length} octets`;
      this.#toSkip = length;
      return this.#skip(text, from);
    }
    const end = from + length;
    if (text.length < end + 2) return undefined;
    if (!text.startsWith("\r\n", end)) throw unreadable(text.slice(from));
    this.#value = text.slice(from, end);
    return end + 2;
  }

  /** Passes over a value that is too long; answers where it ends, or the end of the text. */
  #skip(text: string, from: number): number {
    if (this.#toSkip === 0) return from;
    const octets = Math.min(this.#toSkip, text.length - from);
    this.#toSkip -= octets;
    this.#skipped = this.#toSkip === 0;
    return from + octets;
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
  if (line.length === 0 || line.length > MAX_DIGITS) return false;
  for (let index = 0; index < line.length; index++) {
    const code = line.charCodeAt(index);
    if (code < 0x30 || code > 0x39) return false;
  }
  return true;
}

function unreadable(text: string): Error {
  return new Error(`it sent ${JSON.stringify(text.slice(0, 40))}, which is no answer`);
}
