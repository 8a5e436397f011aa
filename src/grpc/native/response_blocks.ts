import { GRPC_CODES, type GrpcCode } from "../grpc_service.ts";
import { type Field, INDEX_STATUS, literalBlock } from "./hpack_encoder.ts";

/** Indices of the static table (RFC 7541). */
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

function statusFields(code: GrpcCode, message: string): Field[] {
  const status: Field = ["grpc-status", String(GRPC_CODES[code])];
  return message === "" ? [status] : [status, ["grpc-message", percentEncode(message)]];
}
