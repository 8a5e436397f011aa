import { Buffer } from "node:buffer";
import { STATUS_PHRASES } from "../base/problem_details.ts";

/** Statuses whose answers have no body and no length. */
const WITHOUT_BODY = [204, 304];

/** What a response is written with. */
export interface ResponseBytesOptions {
  /** The whole body. */
  readonly body: Uint8Array | undefined;
  /** The connection is closed after it. */
  readonly isLast: boolean;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

/** A response as HTTP/1.1 writes it. */
export function responseBytes(response: Response, { body, isLast, now }: ResponseBytesOptions): Buffer {
  const { status, headers } = response;
  let head = `HTTP/1.1 ${status} ${STATUS_PHRASES[status] ?? ""}\r\n`;
  for (const [name, value] of headers) head += `${name}: ${value}\r\n`;
  const hasLength = headers.has("content-length") || WITHOUT_BODY.includes(status);
  if (!hasLength) head += `content-length: ${body?.length ?? 0}\r\n`;
  head += `date: ${dateText(now)}\r\n`;
  if (isLast && !headers.has("connection")) head += "connection: close\r\n";
  const start = Buffer.from(`${head}\r\n`, "latin1");
  return body === undefined ? start : Buffer.concat([start, body]);
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
