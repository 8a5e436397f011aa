import { SendError } from "./send_error.ts";

/** The head of a response. */
export interface ResponseHead {
  readonly status: number;
  /** Names in lower case, in their order. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The server keeps the connection, according to its head. */
  readonly isKept: boolean;
  /** A line of it was repaired or left out. */
  readonly isRepaired: boolean;
}

/** The end of a body: after so many bytes, with its last chunk, or with the connection. */
type BodyEnd = number | "chunks" | "close";

/** The error for an unreadable response, with the code of Node's parser. */
export function unreadable(code: string): SendError {
  return new SendError("protocol", "the response is not valid HTTP", { code });
}

/** Some servers write `HTTP/2.0` and mean HTTP/1.1. The reason may be anything. */
const STATUS_LINE = /^HTTP\/(1\.[01]|2\.0) ([1-9]\d\d)(?: |$)/;
/** In lower case. */
const NAME = /^[!#$%&'*+.^_`|~\da-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** The platform sorts the headers of a response in quadratic time: 3,000 take two seconds. */
const MAX_HEADERS = 128;
/** Headers that decide about the response: as many again are kept, however many others came before. */
const DECISIVE = ["connection", "content-encoding", "content-type", "keep-alive", "retry-after"];
/** Headers that decide where the body ends. */
export const FRAMING = ["content-length", "transfer-encoding"];
/** Most bytes of one header; a longer one is left out. */
export const MAX_LINE_BYTES = 16_384;
const MAX_INTERIM = 100;
const LENGTH = /^\d{1,15}$/;
/** Statuses whose responses always end with their head. */
const BODILESS = [101, 204, 304];

/**
 * Parses the lines of a head, one after the other: the status line strictly, what follows it leniently, because the
 * outcome of the request is known by then.
 */
export class HeadLines {
  #headers: [name: string, value: string][] = [];
  #first: { readonly version: string; readonly status: number } | undefined;
  /** A line was repaired or left out: the connection is not used again. */
  #isRepaired = false;
  /** A header that was left out would decide where the body ends. */
  #isUnframed = false;
  /** The line before was kept, so that another one may continue it. */
  #isContinuable = false;
  #interim = 0;

  /** There was no line yet. */
  get isEmpty(): boolean {
    return this.#first === undefined;
  }

  get status(): number {
    return this.#first?.status ?? 0;
  }

  /** The status line of a response came that is not an interim one. */
  get isFinal(): boolean {
    return this.status === 101 || this.status >= 200;
  }

  /** Parses a line, `isRepaired` if it was cut or did not end with CR LF. Throws a `SendError` for no status line. */
  take(line: string, isRepaired: boolean): void {
    this.#isRepaired ||= isRepaired || line.length >= MAX_LINE_BYTES;
    if (this.isEmpty) this.#takeStatus(line);
    else if (isBlank(line.charCodeAt(0))) this.#continue(trimmed(line, 0));
    else this.#takeHeader(line);
  }

  /** Forgets an interim head, so that another one may follow; false when there were too many. */
  skipInterim(): boolean {
    this.#headers = [];
    this.#first = undefined;
    this.#isRepaired = this.#isUnframed = this.#isContinuable = false;
    return ++this.#interim <= MAX_INTERIM;
  }

  /** The head so far; its headers grow with further lines. */
  head(): ResponseHead {
    const { status } = this;
    const length = this.#text("content-length");
    const coding = this.#text("transfer-encoding");
    const isClosed = tokens(this.#text("connection")).includes("close");
    // A careless server may send a body that it announces where none can be.
    const mayHaveMore = status === 204 && (coding !== undefined || Number(length ?? 0) !== 0);
    const isRepaired = this.#isRepaired ||
      (length !== undefined && (coding !== undefined || !LENGTH.test(length)));
    const isKept = this.#first?.version === "1.1" && !isClosed && !mayHaveMore && !isRepaired;
    return { status, headers: this.#headers, isKept, isRepaired };
  }

  /** The end of the body; throws a `SendError` for a head that does not state it. */
  bodyEnd(isHeadOnly: boolean): BodyEnd {
    if (isHeadOnly || BODILESS.includes(this.status)) return 0;
    if (this.#isUnframed) throw unreadable("HPE_INVALID_HEADER_TOKEN");
    const codings = tokens(this.#text("transfer-encoding")).filter((coding) => coding !== "identity");
    // It takes precedence over a length.
    if (codings.length > 0) return codedEnd(codings);
    const lengths = this.#text("content-length")?.split(",").map((text) => text.trim());
    if (lengths === undefined) return "close";
    const length = Number(lengths[0]);
    if (lengths.every((text) => LENGTH.test(text) && Number(text) === length)) return length;
    throw unreadable("HPE_INVALID_CONTENT_LENGTH");
  }

  #text(name: string): string | undefined {
    return headerText({ headers: this.#headers }, name);
  }

  #takeStatus(line: string): void {
    const [, version = "", status] = STATUS_LINE.exec(line) ?? [];
    if (status === undefined) throw unreadable(statusFault(line));
    this.#first = { version, status: Number(status) };
    this.#isRepaired ||= !isLineText(line);
  }

  #takeHeader(line: string): void {
    const colon = line.indexOf(":");
    const written = line.slice(0, Math.max(0, colon));
    const name = trimmed(written, 0).toLowerCase();
    this.#isRepaired ||= name.length !== written.length;
    this.#isContinuable = false;
    const isFraming = FRAMING.includes(name);
    const most = isFraming || DECISIVE.includes(name) ? 2 * MAX_HEADERS : MAX_HEADERS;
    const isReadable = NAME.test(name) && isLineText(line) && line.length < MAX_LINE_BYTES;
    if (!isReadable || this.#headers.length >= most) {
      this.#isRepaired = true;
      this.#isUnframed ||= isFraming;
      return;
    }
    this.#headers.push([name, trimmed(line, colon + 1)]);
    this.#isContinuable = true;
  }

  /** A folded line: a form of HTTP/1.0 that some servers still write. */
  #continue(more: string): void {
    const last = this.#headers.at(-1);
    this.#isRepaired = true;
    if (last === undefined || !this.#isContinuable) return;
    if (isLineText(more) && last[1].length + more.length < MAX_LINE_BYTES) {
      last[1] += last[1] === "" || more === "" ? more : ` ${more}`;
      return;
    }
    this.#isUnframed ||= FRAMING.includes(last[0]);
    this.#headers.pop();
    this.#isContinuable = false;
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

/** The items of a list in lower case, without empty ones. */
export function tokens(text = ""): readonly string[] {
  return text.toLowerCase().split(",").map((token) => token.trim()).filter((token) => token !== "");
}

/** All values of a header, combined; nothing where it did not come. */
export function headerText(
  { headers }: Pick<ResponseHead, "headers">,
  header: string,
): string | undefined {
  let text: string | undefined;
  for (const [name, value] of headers) {
    if (name === header) text = combined(text, value);
  }
  return text;
}

/** Returns true for a line without anything that another reader could take for a line end. */
export function isLineText(line: string): boolean {
  return VALUE.test(line);
}

/** Returns true for a text that may become the first line of a response. */
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
