import type { Buffer } from "node:buffer";
import {
  HeadLines,
  isLineText,
  MAX_LINE_BYTES,
  mayBeStatusLine,
  type ResponseHead,
  unreadable,
} from "./response_head.ts";

/** Receives a response as it comes. */
export interface ResponseParts {
  /** The status line of the final head: from here on the outcome is known. The headers grow until `onHead`. */
  onStatus?(head: ResponseHead): void;
  /** The final head; interim ones are skipped. */
  onHead(head: ResponseHead): void;
  /** The next piece of the body, a view of a larger buffer. */
  onBody(piece: Uint8Array<ArrayBuffer>): void;
}

/** Most bytes up to the end of a status line, and of the rest of its head, of which one line is buffered. */
const MAX_STATUS_BYTES = 16_384;
const MAX_HEAD_BYTES = 1_048_576;
/** Most bytes of trailers. */
const MAX_TRAILER_BYTES = 16_384;
/** Most bytes of the size line of a chunk. */
const MAX_SIZE_BYTES = 256;

/** The part of a response that comes next. */
type Phase = "head" | "bytes" | "size" | "chunk" | "chunk end" | "trailers" | "until close" | "over";

/**
 * Parses one response of HTTP/1.1 from the pieces in which it comes, and buffers no more than one line. It is strict
 * up to the end of the status line, and lenient from there on as long as it is clear where the body ends.
 */
export class ResponseParser {
  readonly #parts: ResponseParts;
  readonly #isHeadOnly: boolean;
  #phase: Phase = "head";
  readonly #lines = new HeadLines();
  #head: ResponseHead | undefined;
  #line = "";
  /** Bytes of lines that may still come, and of the body or the chunk. */
  #lineBytes = MAX_STATUS_BYTES;
  #bodyBytes = 0;
  /** The next response would begin right behind this one. */
  #isClean = false;

  constructor(parts: ResponseParts, isHeadOnly: boolean) {
    this.#parts = parts;
    this.#isHeadOnly = isHeadOnly;
  }

  get head(): ResponseHead | undefined {
    return this.#head;
  }

  /** The status of the response is known. */
  get hasStatus(): boolean {
    return this.#lines.isFinal;
  }

  get isOver(): boolean {
    return this.#phase === "over";
  }

  /** It is over, and another request may follow on its connection. */
  get isClean(): boolean {
    return this.isOver && this.#isClean;
  }

  /**
   * Parses a piece. Throws a `SendError` for an invalid one, after which no other may follow; `onStatus` was called
   * where the outcome is known nevertheless.
   */
  push(piece: Buffer<ArrayBuffer>): void {
    let at = 0;
    while (at < piece.length && !this.isOver) at = this.#take(piece, at);
    if (at < piece.length) this.#isClean = false;
  }

  /** The connection ended; answers whether that ends the response as well. */
  end(): boolean {
    if (this.#phase === "until close" || this.#phase === "trailers") this.#phase = "over";
    if (this.isOver) this.#isClean = false;
    return this.isOver;
  }

  /** Parses some of a piece, at least a byte; answers where it goes on. */
  #take(piece: Buffer<ArrayBuffer>, at: number): number {
    switch (this.#phase) {
      case "bytes":
      case "chunk":
        return this.#takeBytes(piece, at);
      case "until close":
        this.#parts.onBody(at === 0 ? piece : piece.subarray(at));
        return piece.length;
      default:
        return this.#takeLines(piece, at);
    }
  }

  #takeBytes(piece: Buffer<ArrayBuffer>, at: number): number {
    const end = Math.min(piece.length, at + this.#bodyBytes);
    this.#bodyBytes -= end - at;
    if (this.#bodyBytes === 0) {
      if (this.#phase === "chunk") this.#expect("chunk end", 2);
      else this.#phase = "over";
    }
    this.#parts.onBody(piece.subarray(at, end));
    return end;
  }

  /** Parses as many lines of the phase as there are; an incomplete one is kept. */
  #takeLines(piece: Buffer<ArrayBuffer>, at: number): number {
    // In latin1 one byte is one character; a size line is short, so the chunk behind it is not decoded.
    const kept = this.#line.length;
    const end = Math.min(piece.length, at + Math.min(this.#lineBytes, MAX_LINE_BYTES) + 1);
    const text = this.#line + piece.toString("latin1", at, end);
    let from = 0;
    for (let feed = text.indexOf("\n", kept); feed !== -1; feed = text.indexOf("\n", from)) {
      this.#checkBegin(text.slice(from, feed));
      this.#spend(feed + 1 - Math.max(from, kept));
      const phase = this.#phase;
      this.#endLine(text.slice(from, feed));
      from = feed + 1;
      if (this.#phase === phase) continue;
      this.#line = "";
      return at + from - kept;
    }
    this.#line = text.slice(from);
    this.#spend(text.length - Math.max(from, kept));
    this.#checkBegin(this.#line);
    // One more, so that a line that was cut is too long without its end.
    this.#line = this.#line.slice(0, MAX_LINE_BYTES + 1);
    return at + text.length - kept;
  }

  /** Another protocol is rejected with its first bytes: its first line might never end. */
  #checkBegin(line: string): void {
    if (this.#phase !== "head" || !this.#lines.isEmpty || mayBeStatusLine(line)) return;
    throw unreadable("HPE_INVALID_CONSTANT");
  }

  #spend(bytes: number): void {
    this.#lineBytes -= bytes;
    if (this.#lineBytes >= 0) return;
    if (this.#phase === "trailers" || this.isOver) {
      // The body is complete.
      this.#isClean = false;
      this.#phase = "over";
      return;
    }
    throw unreadable(this.#phase === "size" ? "HPE_INVALID_CHUNK_SIZE" : "HPE_HEADER_OVERFLOW");
  }

  /** A line may end with LF alone. */
  #endLine(text: string): void {
    const hasReturn = text.endsWith("\r");
    const line = text.slice(0, hasReturn ? -1 : undefined);
    const isRepaired = line.length >= MAX_LINE_BYTES || !hasReturn;
    if (isRepaired) this.#isClean = false;
    switch (this.#phase) {
      case "head":
        if (line !== "") return this.#takeHeadLine(line, isRepaired);
        if (!this.#lines.isEmpty) this.#endHead(isRepaired);
        return;
      case "size":
        return this.#beginChunk(line);
      case "chunk end":
        if (line !== "") throw unreadable("HPE_STRICT");
        return this.#expect("size", MAX_SIZE_BYTES);
      default:
        if (line === "") this.#phase = "over";
        else if (!isLineText(line)) this.#isClean = false;
    }
  }

  #takeHeadLine(line: string, isRepaired: boolean): void {
    const isFirst = this.#lines.isEmpty;
    this.#lines.take(line, isRepaired);
    if (isFirst) this.#lineBytes = MAX_HEAD_BYTES;
    if (isFirst && this.#lines.isFinal) this.#parts.onStatus?.(this.#lines.head());
  }

  #endHead(isRepaired: boolean): void {
    const lines = this.#lines;
    if (!lines.isFinal) {
      if (!lines.skipInterim()) throw unreadable("HPE_HEADER_OVERFLOW");
      this.#lineBytes = MAX_STATUS_BYTES;
      return;
    }
    this.#head = lines.head();
    this.#parts.onHead(this.#head);
    const end = lines.bodyEnd(this.#isHeadOnly);
    this.#isClean = this.#head.isKept && !isRepaired && end !== "close";
    if (end === "chunks") this.#expect("size", MAX_SIZE_BYTES);
    else if (end === "close") this.#phase = "until close";
    else {
      this.#bodyBytes = end;
      this.#phase = end === 0 ? "over" : "bytes";
    }
  }

  #beginChunk(line: string): void {
    const [, digits] = /^([\da-f]{1,12})[\t ]*(?:;|$)/i.exec(line) ?? [];
    if (digits === undefined || !isLineText(line)) throw unreadable("HPE_INVALID_CHUNK_SIZE");
    this.#bodyBytes = parseInt(digits, 16);
    if (this.#bodyBytes === 0) this.#expect("trailers", MAX_TRAILER_BYTES);
    else this.#expect("chunk", 0);
  }

  #expect(phase: Phase, lineBytes: number): void {
    this.#phase = phase;
    this.#lineBytes = lineBytes;
  }
}
