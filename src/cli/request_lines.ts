import { joinBytes } from "../base/bytes.ts";
import { InvalidRequestError } from "../ratelimit/errors.ts";
import type { RateLimitRequest } from "../ratelimit/request.ts";
import { validateRequest } from "../ratelimit/decision/validate.ts";
import { parseTime } from "../base/rfc3339.ts";
import { REQUEST_READERS } from "../http/routes/rate_limit_json.ts";
import { JsonReader, JsonRequestError, messageFields } from "../http/server/json_reader.ts";
import { decodeText } from "../wire/text.ts";

/** A request and when it was made. */
export interface TimedRequest extends RateLimitRequest {
  readonly time: number;
}

/** A line of a file of requests: what it asks, or what is wrong with it. */
export type RequestLine =
  & { readonly number: number }
  & ({ readonly request: TimedRequest } | { readonly problem: string });

/** Most bytes of a line: those of a body of `/json`. */
const MAX_LINE_BYTES = 1_048_576;
/** The last second of the year 9999, the largest that RFC 3339 can write. */
const MAX_TIME_MS = 253_402_300_799_999;
const LINE_BREAK = 10;
const BYTE_ORDER_MARK = /^\ufeff/;
const WANTED_TIME = "must be a time such as 2026-01-31T12:00:00Z, or seconds since the epoch";

const FIELDS = messageFields<TimedRequest>({ ...REQUEST_READERS, time: readTime });

/**
 * Reads requests as JSON, one a line, each as `/json` takes it with the field `time`. Lines are numbered
 * from 1; empty ones are passed over. Never more than a line and a piece of the stream are held.
 */
export async function* requestLines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<RequestLine> {
  let number = 0;
  for await (const bytes of byteLines(stream)) {
    number++;
    if (bytes === undefined) {
      yield { number, problem: `longer than ${MAX_LINE_BYTES} bytes` };
      continue;
    }
    const text = decodeText(bytes).replace(BYTE_ORDER_MARK, "");
    if (text.trim() !== "") yield { number, ...readLine(text) };
  }
}

/** The lines of a stream without their ends; undefined for one that is too long. */
async function* byteLines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array | undefined> {
  let parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  const take = (part: Uint8Array) => {
    length += part.byteLength;
    if (length > MAX_LINE_BYTES) parts = [];
    else if (part.byteLength > 0) parts.push(new Uint8Array(part));
  };
  const line = () => {
    const whole = length > MAX_LINE_BYTES ? undefined : joinBytes(parts);
    parts = [];
    length = 0;
    return whole;
  };
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_BREAK); end >= 0; end = chunk.indexOf(LINE_BREAK, start)) {
      take(chunk.subarray(start, end));
      yield line();
      start = end + 1;
    }
    take(chunk.subarray(start));
  }
  if (length > 0) yield line();
}

function readLine(text: string): { readonly request: TimedRequest } | { readonly problem: string } {
  try {
    const reader = new JsonReader(text);
    const request = reader.message(FIELDS, { domain: "", descriptors: [], hitsAddend: 0, time: NaN });
    reader.end();
    if (Number.isNaN(request.time)) return { problem: `time: is missing, it ${WANTED_TIME}` };
    validateRequest(request);
    return { request };
  } catch (error) {
    if (error instanceof JsonRequestError) return { problem: problemOf(error) };
    if (!(error instanceof InvalidRequestError)) throw error;
    return { problem: error.field === undefined ? error.message : `${error.field}: ${error.message}` };
  }
}

/** The text is one line already, so the number that the reader gives it says nothing. */
function problemOf({ field, reason }: JsonRequestError): string {
  return field === "body" ? reason.replace("at line 1 column", "at column") : `${field}: ${reason}`;
}

function readTime(reader: JsonReader): number {
  const seconds = reader.number();
  const time = seconds === undefined ? timeOfText(reader) : Number(seconds) * 1_000;
  if (time === undefined || !(time >= 0 && time <= MAX_TIME_MS)) throw reader.refusal(WANTED_TIME);
  return time;
}

function timeOfText(reader: JsonReader): number | undefined {
  const text = reader.string();
  if (text === undefined) throw reader.wrongKind(WANTED_TIME);
  return parseTime(text);
}
