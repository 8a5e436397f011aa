import { GRPC_CODES, type GrpcCode } from "../grpc_service.ts";

/** HPACK: the prefix of a literal without indexing, and indices of the static table (RFC 7541). */
const LITERAL_PREFIX_MAX = 15;
const STATUS_200 = 0x88;
const INDEX_STATUS = 8;
const INDEX_CONTENT_TYPE = 31;
const INDEX_CONTENT_LENGTH = 28;

const ACCEPTED_ENCODINGS: Field = ["grpc-accept-encoding", "identity,deflate,gzip"];
/** Maximum length of an encoded `grpc-message`. */
const MAX_ENCODED_LENGTH = 4_096;

const GRPC_FIELDS: readonly Field[] = [[INDEX_STATUS, "200"], [INDEX_CONTENT_TYPE, "application/grpc"]];

/** The response headers. */
export const RESPONSE_HEADERS = literalBlock(GRPC_FIELDS);

/** The headers of the first response of a connection, from which clients learn the accepted encodings. */
export const FIRST_RESPONSE_HEADERS = literalBlock([...GRPC_FIELDS, ACCEPTED_ENCODINGS]);

/** The trailers of a successful call. */
export const OK_TRAILERS = literalBlock([["grpc-status", "0"]]);

/** The trailers of a failed call. */
export function trailers(code: GrpcCode, message: string): Uint8Array {
  return literalBlock(statusFields(code, message));
}

/** The only header block of a call that fails without a message. */
export function trailersOnly(code: GrpcCode, message: string): Uint8Array {
  const accepted = code === "UNIMPLEMENTED" ? [ACCEPTED_ENCODINGS] : [];
  return literalBlock([...GRPC_FIELDS, ...accepted, ...statusFields(code, message)]);
}

/** The headers of a response that is not gRPC. */
export function plainHeaders(status: number, bodyLength: number): Uint8Array {
  return literalBlock([
    [INDEX_STATUS, String(status)],
    [INDEX_CONTENT_TYPE, "text/plain; charset=utf-8"],
    [INDEX_CONTENT_LENGTH, String(bodyLength)],
  ]);
}

/** Percent-encodes a `grpc-message`, cut at a limit because peers limit the headers that they accept. */
export function percentEncode(message: string): string {
  let text = "";
  for (const character of message) {
    const encoded = /[ -$&-~]/.test(character) ? character : encodeURIComponent(character.toWellFormed());
    if (text.length + encoded.length > MAX_ENCODED_LENGTH) break;
    text += encoded;
  }
  return text;
}

/** A field of a block. */
type Field = readonly [name: string | number, value: string];

function statusFields(code: GrpcCode, message: string): Field[] {
  const status: Field = ["grpc-status", String(GRPC_CODES[code])];
  return message === "" ? [status] : [status, ["grpc-message", percentEncode(message)]];
}

/**
 * Literals without indexing and Huffman coding, so that a block is the same on every connection. A name may be its index
 * in the static table.
 */
export function literalBlock(fields: readonly Field[]): Uint8Array {
  const bytes: number[] = [];
  for (const [name, value] of fields) {
    if (name === INDEX_STATUS && value === "200") {
      bytes.push(STATUS_200);
      continue;
    }
    if (typeof name === "number") pushInteger(bytes, name, LITERAL_PREFIX_MAX);
    else {
      bytes.push(0);
      pushText(bytes, name);
    }
    pushText(bytes, value);
  }
  return Uint8Array.from(bytes);
}

/** Adds a string without Huffman coding; each character is a byte. */
export function pushText(bytes: number[], text: string): void {
  pushInteger(bytes, text.length, 127);
  for (let index = 0; index < text.length; index++) bytes.push(text.charCodeAt(index));
}

/** Adds an integer after the bits of `kind`, with a prefix that holds up to `prefixMax`. */
export function pushInteger(bytes: number[], value: number, prefixMax: number, kind = 0): void {
  if (value < prefixMax) {
    bytes.push(kind | value);
    return;
  }
  bytes.push(kind | prefixMax);
  let rest = value - prefixMax;
  while (rest >= 128) {
    bytes.push((rest & 127) | 128);
    rest >>>= 7;
  }
  bytes.push(rest);
}
