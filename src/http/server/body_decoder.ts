import { Buffer } from "node:buffer";

/** The longest line between two chunks, and all trailers together, in bytes. */
const MAX_LINE_BYTES = 1_024;
const MAX_TRAILER_BYTES = 8_192;
const TRAILER = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*$/;
const CHUNK_SIZE = /^([0-9A-Fa-f]{1,8})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/;

/** The number of used bytes, and the part of the body in them. */
interface BodyPart {
  readonly used: number;
  readonly part?: Buffer;
}

/** Finds the parts of one body in the bytes of its connection. */
export class BodyDecoder {
  readonly #isChunked: boolean;
  /** Missing bytes of the body or of its chunk. */
  #missing: number;
  #trailerBytes = 0;
  #state: "data" | "size" | "data end" | "trailer" | "done";

  constructor(body: number | "chunked") {
    this.#missing = body === "chunked" ? 0 : body;
    this.#isChunked = body === "chunked";
    this.#state = this.#isChunked ? "size" : body === 0 ? "done" : "data";
  }
  get isDone(): boolean {
    return this.#state === "done";
  }

  /** Reads up to the next part of the body; undefined where the bytes are malformed. */
  next(bytes: Buffer): BodyPart | undefined {
    let used = 0;
    while (this.#state !== "done") {
      if (this.#state === "data") {
        const part = bytes.subarray(used, used + this.#missing);
        if (part.length === 0) return { used };
        this.#missing -= part.length;
        if (this.#missing === 0) this.#state = this.#isChunked ? "data end" : "done";
        return { used: used + part.length, part };
      }
      const end = bytes.indexOf("\r\n", used, "latin1");
      if (end < 0) return bytes.length - used > MAX_LINE_BYTES ? undefined : { used };
      if (end - used > MAX_LINE_BYTES || !this.#takeLine(bytes.toString("latin1", used, end))) {
        return undefined;
      }
      used = end + 2;
    }
    return { used };
  }

  /** Reads a line between the data; false where it is malformed. */
  #takeLine(line: string): boolean {
    switch (this.#state) {
      case "data end":
        this.#state = "size";
        return line === "";
      case "trailer":
        this.#trailerBytes += line.length;
        if (line === "") this.#state = "done";
        return this.#trailerBytes <= MAX_TRAILER_BYTES && (line === "" || TRAILER.test(line));
      default: {
        const size = CHUNK_SIZE.exec(line)?.[1];
        this.#missing = Number.parseInt(size ?? "0", 16);
        this.#state = this.#missing === 0 ? "trailer" : "data";
        return size !== undefined;
      }
    }
  }
}
