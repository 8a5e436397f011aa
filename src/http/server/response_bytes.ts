import { Buffer } from "node:buffer";
import { STATUS_PHRASES } from "../../base/problem_details.ts";

/** Statuses whose answers have no body and no length. */
const WITHOUT_BODY = [204, 304];
const FRAMING = "transfer-encoding";
const LINE_END = Buffer.from("\r\n");

/** The end of a body in chunks. */
export const LAST_CHUNK = Buffer.from("0\r\n\r\n");

/** Options of `responseHead`. */
interface ResponseHeadOptions {
  /** The length of the body in bytes; absent for one that is sent in parts. */
  readonly length?: number | undefined;
  /** The parts of the body are chunks; otherwise the end of the connection ends it. */
  readonly isChunked?: boolean;
  /** The connection closes after this response. */
  readonly isLast: boolean;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

/** True for a body that is sent while it is made: its handler sets `transfer-encoding`. */
export function isStreamed(response: Response): boolean {
  return response.body !== null && response.headers.has(FRAMING);
}

/** The head of a response in HTTP/1.1. */
export function responseHead({ status, headers }: Response, options: ResponseHeadOptions): Buffer {
  const { length, isChunked = false, isLast, now } = options;
  let head = `HTTP/1.1 ${status} ${STATUS_PHRASES[status] ?? ""}\r\n`;
  for (const [name, value] of headers) if (name !== FRAMING) head += `${name}: ${value}\r\n`;
  if (isChunked) head += `${FRAMING}: chunked\r\n`;
  const hasLength = headers.has("content-length") || headers.has(FRAMING) || WITHOUT_BODY.includes(status);
  if (length !== undefined && !hasLength) head += `content-length: ${length}\r\n`;
  head += `date: ${dateText(now)}\r\n`;
  if (isLast && !headers.has("connection")) head += "connection: close\r\n";
  return Buffer.from(`${head}\r\n`, "latin1");
}

/** A part of a body as a chunk. */
export function chunkOf(part: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, LINE_END]);
}

let shownSecond = -1;
let shownDate = "";

function dateText(now: number): string {
  const second = Math.floor(now / 1_000);
  if (second !== shownSecond) {
    shownSecond = second;
    shownDate = new Date(second * 1_000).toUTCString();
  }
  return shownDate;
}
