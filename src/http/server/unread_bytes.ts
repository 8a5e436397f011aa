import { Buffer } from "node:buffer";
import { MAX_HEAD_BYTES } from "./request_head.ts";

const EMPTY = Buffer.alloc(0);
const [CR, LF] = [13, 10];

/** The head of a request without its final empty line, or why there is none yet. */
type ReceivedHead = { readonly text: string } | "none" | "incomplete" | "too large";

/** Bytes of a connection that are received and not read yet. */
export class UnreadBytes {
  #bytes: Buffer = EMPTY;
  /** Bytes at the start that hold no end of a head. */
  #searched = 0;

  get length(): number {
    return this.#bytes.length;
  }

  add(bytes: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? bytes : Buffer.concat([this.#bytes, bytes]);
  }

  clear(): void {
    this.#bytes = EMPTY;
  }

  /** Takes the head of the next request, decoded as Latin-1, if it is complete. */
  takeHead(): ReceivedHead {
    // Empty lines before a request are ignored (RFC 9112, section 2.2).
    while (this.#bytes[0] === CR && this.#bytes[1] === LF) this.#bytes = this.#bytes.subarray(2);
    const [first] = this.#bytes;
    if (first === undefined) return "none";
    const end = this.#bytes.indexOf("\r\n\r\n", this.#searched, "latin1");
    if (end > MAX_HEAD_BYTES || (end < 0 && this.#bytes.length > MAX_HEAD_BYTES)) return "too large";
    const isText = first === CR || (first > 32 && first < 127);
    if (end < 0 && isText) {
      this.#searched = Math.max(0, this.#bytes.length - 3);
      return "incomplete";
    }
    const text = this.#bytes.toString("latin1", 0, end);
    this.#bytes = this.#bytes.subarray(end + 4);
    this.#searched = 0;
    return { text };
  }

  /** Lets `read` use bytes from the start, which are gone afterwards. */
  use<T extends { readonly used: number }>(read: (bytes: Buffer) => T | undefined): T | undefined {
    const result = read(this.#bytes);
    if (result !== undefined) this.#bytes = this.#bytes.subarray(result.used);
    return result;
  }
}
