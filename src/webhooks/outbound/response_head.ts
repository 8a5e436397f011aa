import { SendError } from "./send_error.ts";

/** The head of a response. */
export interface ResponseHead {
  readonly status: number;
  /** Names in lower case, in their order. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Whether the server keeps the connection, as far as its head says. */
  readonly isKept: boolean;
}

/** Where the body of a response ends: after so many bytes, with its last chunk, or with the connection. */
type BodyEnd = number | "chunks" | "close";

/** The error for an unreadable response, with the code of Node's parser. */
export function unreadable(code: string): SendError {
  return new SendError("protocol", "the response is not valid HTTP", { code });
}

/** Some servers write `HTTP/2.0` and mean HTTP/1.1. */
const STATUS_LINE = /^HTTP\/(1\.[01]|2\.0) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
/** In lower case. */
const NAME = /^[!#$%&'*+.^_`|~\da-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** The platform sorts the headers of a response in quadratic time: 3,000 take two seconds. */
const MAX_HEADERS = 128;
const MAX_INTERIM = 100;
const LENGTH = /^\d{1,15}$/;
/** Statuses whose responses end with their head, whatever it says. */
const BODILESS = [101, 204, 304];

/** Parses the lines of a head, one after the other. */
export class HeadLines {
  readonly #headers: (readonly [string, string])[] = [];
  #version = "";
  #status = 0;
  /** The headers about the body and the connection, several of a name combined. */
  #length: string | undefined;
  #coding: string | undefined;
  #connection: string | undefined;
  #interim = 0;

  /** Whether there was no line yet. */
  get isEmpty(): boolean {
    return this.#version === "";
  }

  get status(): number {
    return this.#status;
  }

  /** Parses a line without its end; throws a `SendError` for an invalid one. */
  take(line: string): void {
    if (this.isEmpty) this.#takeStatus(line);
    else this.#takeHeader(line);
  }

  /** Forgets an interim head, so that another one may follow; false when there were too many. */
  skipInterim(): boolean {
    this.#headers.length = 0;
    this.#version = "";
    this.#length = this.#coding = this.#connection = undefined;
    return ++this.#interim <= MAX_INTERIM;
  }

  head(): ResponseHead {
    const isClosed = this.#connection !== undefined && tokens(this.#connection).includes("close");
    // A careless server may send a body that it announces where none can be.
    const mayHaveMore = this.#status === 204 &&
      (this.#coding !== undefined || Number(this.#length ?? 0) !== 0);
    const isKept = this.#version === "1.1" && !isClosed && !mayHaveMore;
    return { status: this.#status, headers: this.#headers, isKept };
  }

  /** Where the body ends; throws a `SendError` for a contradictory head. */
  bodyEnd(isHeadOnly: boolean): BodyEnd {
    const [length, coding] = [this.#length, this.#coding];
    if (length !== undefined && (coding !== undefined || !LENGTH.test(length))) {
      throw unreadable("HPE_INVALID_CONTENT_LENGTH");
    }
    if (isHeadOnly || this.#status < 200 || BODILESS.includes(this.#status)) return 0;
    if (coding !== undefined) return codedEnd(tokens(coding));
    return length === undefined ? "close" : Number(length);
  }

  #takeStatus(line: string): void {
    const [, version = "", status] = STATUS_LINE.exec(line) ?? [];
    if (status === undefined) throw unreadable(statusFault(line));
    this.#version = version;
    this.#status = Number(status);
  }

  #takeHeader(line: string): void {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).toLowerCase();
    if (!NAME.test(name) || !isLineText(line)) throw unreadable("HPE_INVALID_HEADER_TOKEN");
    if (this.#headers.length >= MAX_HEADERS) throw unreadable("HPE_HEADER_OVERFLOW");
    const value = trimmed(line, colon + 1);
    this.#headers.push([name, value]);
    if (name === "content-length") {
      if (this.#length !== undefined) throw unreadable("HPE_UNEXPECTED_CONTENT_LENGTH");
      this.#length = value;
    } else if (name === "transfer-encoding") this.#coding = combined(this.#coding, value);
    else if (name === "connection") this.#connection = combined(this.#connection, value);
  }
}

function codedEnd(codings: readonly string[]): BodyEnd {
  // Some readers would decode the chunks once, others twice.
  if (codings.filter((coding) => coding === "chunked").length > 1) {
    throw unreadable("HPE_INVALID_TRANSFER_ENCODING");
  }
  return codings.at(-1) === "chunked" ? "chunks" : "close";
}

function combined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`;
}

function tokens(text: string): readonly string[] {
  return text.toLowerCase().split(",").map((token) => token.trim());
}

/** All values of a header, combined; nothing where it did not come. */
export function headerText({ headers }: ResponseHead, wanted: string): string | undefined {
  let text: string | undefined;
  for (const [name, value] of headers) {
    if (name === wanted) text = combined(text, value);
  }
  return text;
}

/** Whether a line holds nothing that another reader could take for a line end. */
export function isLineText(line: string): boolean {
  return VALUE.test(line);
}

/** Whether a text may become the first line of a response. */
export function mayBeStatusLine(text: string): boolean {
  return "HTTP/".startsWith(text.slice(0, 5)) || text === "\r";
}

function statusFault(line: string): string {
  if (!line.startsWith("HTTP/")) return "HPE_INVALID_CONSTANT";
  return /^HTTP\/(?:1\.[01]|2\.0) /.test(line) ? "HPE_INVALID_STATUS" : "HPE_INVALID_VERSION";
}

/** The text from there on, without spaces and tabs around it. */
function trimmed(text: string, from: number): string {
  let [start, end] = [from, text.length];
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
