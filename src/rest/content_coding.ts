import { codeOf } from "./shown_text.ts";

const IS_DENO = "Deno" in globalThis;
/** A server platform, whose codings are known; browsers decode all that they ask for. */
const IS_NODE = !IS_DENO && "process" in globalThis;
/** Codings that `fetch` decodes by itself: on Deno one of these alone, on Node any sequence. */
const DECODED_BY_DENO = ["", "identity", "gzip", "br"];
const DECODED_BY_NODE = ["gzip", "x-gzip", "deflate", "br"];
/** A larger piece would become too much in one step: a thousand times as many bytes, and megabytes for brotli. */
const STEP_BYTES = 4_096;
const BROTLI_STEP_BYTES = 16;

/** Errors of decoders: the codes of Node, and the messages of Deno. */
const CODES = /^(?:Z_\w+|ERR_?_ERROR_\w+|ERR_BROTLI\w*|ERR_ZLIB\w*)$/;
const WORDS =
  /gzip|deflate|brotli|^Invalid Data$|^(?:reached )?unexpected (?:end of file|EOF)$|^CRC computed|^amount of bytes read|^failed to write whole buffer$/;

/** A body that cannot be decoded. */
class DecodingError extends Error {}

/** Returns true for an error of a decoder, and false for one of the connection. */
export function isDecodingFailure(error: unknown): boolean {
  for (let one = error, depth = 0; one instanceof Error && depth < 8; one = one.cause, depth++) {
    if (one instanceof DecodingError || CODES.test(codeOf(one) ?? "") || WORDS.test(one.message)) return true;
  }
  return false;
}

/** Returns true if `fetch` decodes the body by itself, or there is nothing to decode. */
export function isDecoded({ url, headers }: globalThis.Response): boolean {
  const coding = headers.get("content-encoding")?.toLowerCase() ?? "";
  // Transports other than `fetch`, whose responses have no URL, decode what they receive.
  if (coding === "" || url === "" || !(IS_DENO || IS_NODE)) return true;
  if (IS_DENO) return DECODED_BY_DENO.includes(coding);
  // One unknown item, such as `identity`, and Node decodes none.
  const isDecodedByNode = coding.split(",").every((one) => DECODED_BY_NODE.includes(one.trim()));
  return isDecodedByNode || codingsOf(coding).length === 0;
}

/** The body with its content encoding decoded. */
export function decodedBody(response: globalThis.Response): ReadableStream<Uint8Array<ArrayBuffer>> | null {
  const { body, headers } = response;
  if (body === null || isDecoded(response)) return body;
  return codingsOf(headers.get("content-encoding") ?? "").reduceRight(withoutCoding, body);
}

function codingsOf(header: string): readonly string[] {
  const codings = header.toLowerCase().split(",").map((one) => one.trim());
  return codings.filter((one) => one !== "" && one !== "identity");
}

/** The stream without one coding. An empty one stays empty: some servers name a coding and send nothing. */
function withoutCoding(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  coding: string,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = stream.getReader();
  let pieces: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;
  return new ReadableStream({
    async pull(controller) {
      try {
        pieces ??= await piecesOf(reader, coding);
        const { done, value } = await pieces.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        reader.cancel(error).catch(() => {});
        throw error;
      }
    },
    cancel: (reason) => (pieces ?? reader).cancel(reason),
  }, { highWaterMark: 0 });
}

async function piecesOf(
  reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>,
  coding: string,
): Promise<ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>> {
  let { value = new Uint8Array(), done } = await reader.read();
  if (done) return new Blob().stream().getReader();
  const format = formatOf(coding, value);
  const stepBytes = coding === "br" ? BROTLI_STEP_BYTES : STEP_BYTES;
  const steps = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      while (!done && value.byteLength === 0) ({ value = new Uint8Array(), done } = await reader.read());
      if (done) return controller.close();
      controller.enqueue(value.subarray(0, stepBytes));
      value = value.subarray(stepBytes);
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
  return steps.pipeThrough(new DecompressionStream(format)).getReader();
}

function formatOf(coding: string, [first = 0, second = 0]: Uint8Array): CompressionFormat {
  // Node has no stream for brotli.
  switch (coding === "br" && !IS_DENO ? "" : coding) {
    case "gzip":
    case "x-gzip":
      return "gzip";
    case "br":
      // Not in the list of the web's types yet.
      return "brotli" as CompressionFormat;
    case "deflate":
      // Some servers leave the header of zlib out.
      return (first & 0x0f) === 8 && (first * 256 + second) % 31 === 0 ? "deflate" : "deflate-raw";
    default:
      throw new DecodingError("the content encoding is unknown");
  }
}
