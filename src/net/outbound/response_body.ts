import { Buffer } from "node:buffer";
import {
  brotliDecompressSync,
  createBrotliDecompress,
  gunzipSync,
  inflateRawSync,
  inflateSync,
} from "node:zlib";
import { charsetOf } from "../../base/body_text.ts";
import { strictText } from "../../base/bytes.ts";
import { headerText, type ResponseHead, tokens } from "./response_head.ts";
import { SendError } from "./send_error.ts";

/** The content codings that requests accept and responses are decoded from. */
export const ACCEPTED_CODINGS = "gzip, deflate, br";
/** Most codings of one body. */
const MAX_CODINGS = 3;
/** Bytes that one step of a decoder takes: but for brotli, it makes at most about a thousand times as many of them. */
const STEP_BYTES = 1_024;
const FORMATS: ReadonlyMap<string, CompressionFormat> = new Map([
  ["gzip", "gzip"],
  ["x-gzip", "gzip"],
  ["deflate", "deflate"],
  ["br", "brotli"],
]);
/** Media types whose bytes are no text in any charset. */
const BINARY_TYPE = /^(?:image|audio|video|font)\/(?![\w.+-]+\+(?:xml|json)[\t ]*(?:;|$))/i;
const SHOWN_LABEL = /^[\w.:+-]{1,40}$/;
/** The codings of a body, in the order in which they were applied. */
export function codingsOf(head: Pick<ResponseHead, "headers">): readonly string[] {
  const transfer = tokens(headerText(head, "transfer-encoding")).filter((coding) => coding !== "chunked");
  const codings = [...tokens(headerText(head, "content-encoding")), ...transfer];
  return codings.filter((coding) => coding !== "identity");
}

/** Undoes the codings of a body, which may have at most so many bytes after each. Throws a `SendError`. */
export async function withoutCodings(
  bytes: Uint8Array<ArrayBuffer>,
  codings: readonly string[],
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  if (codings.length > MAX_CODINGS) throw unsupported();
  let decoded = bytes;
  // Some servers name a coding and send nothing.
  for (const coding of decoded.byteLength === 0 ? [] : codings.toReversed()) {
    decoded = await withoutCoding(decoded, coding, maxBytes);
  }
  return decoded;
}

/** The error for a body that is too large. */
export function tooLarge(maxBytes: number): SendError {
  return new SendError("protocol", `the response body has more than ${maxBytes} bytes`);
}

async function withoutCoding(
  bytes: Uint8Array<ArrayBuffer>,
  coding: string,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const options = { maxOutputLength: maxBytes };
  try {
    switch (coding) {
      case "gzip":
      case "x-gzip":
        return copied(gunzipSync(bytes, options));
      case "deflate":
        // Some servers leave the header of zlib out.
        return copied(hasZlibHeader(bytes) ? inflateSync(bytes, options) : inflateRawSync(bytes, options));
      case "br":
        return await withoutBrotli(bytes, maxBytes);
    }
  } catch (error) {
    if (error instanceof SendError) throw error;
    // Node's way to tell that the bound was reached.
    if (error instanceof RangeError) throw tooLarge(maxBytes);
    throw new SendError("protocol", `the response body is not valid ${coding}`);
  }
  throw unsupported();
}

function unsupported(): SendError {
  return new SendError("protocol", `the response body has a content coding other than ${ACCEPTED_CODINGS}`);
}

function copied(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}

function hasZlibHeader([first = 0, second = 0]: Uint8Array): boolean {
  return (first & 0x0f) === 8 && (first * 256 + second) % 31 === 0;
}

async function withoutBrotli(
  bytes: Uint8Array<ArrayBuffer>,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  // Stops at the bound, but does not notice a body that was cut. The stream notices it, but stops only between its
  // steps, and one step may make gigabytes.
  brotliDecompressSync(bytes, { maxOutputLength: maxBytes });
  return Buffer.concat(await Array.fromAsync(decompressed(bytes, "brotli")));
}

/** At least so many bytes of the beginning of a body, of which not all has to be there; nothing where it is unreadable. */
export async function beginningOf(
  bytes: Uint8Array<ArrayBuffer>,
  codings: readonly string[],
  minBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const [coding, ...others] = codings;
  if (coding === undefined) return bytes;
  const format = FORMATS.get(coding);
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  if (format === undefined || others.length > 0) return Buffer.concat(pieces);
  const isRaw = format === "deflate" && !hasZlibHeader(bytes);
  let left = minBytes;
  try {
    const decoded = format === "brotli"
      ? beginningOfBrotli(bytes)
      : decompressed(bytes, isRaw ? "deflate-raw" : format);
    for await (const piece of decoded) {
      pieces.push(piece);
      left -= piece.byteLength;
      if (left <= 0) break;
    }
  } catch {
    // What came before the end, or the error, is enough.
  }
  return Buffer.concat(pieces);
}

/** The pieces that are taken, even of a body that was cut. */
function beginningOfBrotli(bytes: Uint8Array<ArrayBuffer>): AsyncIterable<Uint8Array<ArrayBuffer>> {
  const decoder = createBrotliDecompress();
  decoder.end(bytes);
  return decoder;
}

/** Decompresses in small steps, so that not much more is decompressed than is taken; for brotli, that may be any size. */
function decompressed(
  bytes: Uint8Array<ArrayBuffer>,
  format: CompressionFormat,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = 0;
  const steps = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      controller.enqueue(bytes.subarray(at, at += STEP_BYTES));
      if (at >= bytes.byteLength) controller.close();
    },
  }, { highWaterMark: 0 });
  return steps.pipeThrough(new DecompressionStream(format));
}

/** The text of a body, or why it has none. */
type BodyText =
  | { readonly text: string; readonly problem?: undefined }
  | { readonly text?: undefined; readonly problem: string };

/** Decodes a body by its byte order mark, its declared charset, or else as UTF-8. */
export function textOfBody(bytes: Uint8Array<ArrayBuffer>, contentType: string): BodyText {
  if (bytes.byteLength === 0) return { text: "" };
  if (BINARY_TYPE.test(contentType)) return { problem: "is not text" };
  const charset = charsetOf(bytes, contentType);
  const label = SHOWN_LABEL.test(charset) ? charset : "declared charset";
  const { text, problem } = strictText(bytes, charset);
  if (problem === "unknown charset") return { problem: `has an unknown charset (${label})` };
  if (text === undefined) return { problem: `is not valid ${label}` };
  return text.includes("\0") ? { problem: "is not text" } : { text };
}
