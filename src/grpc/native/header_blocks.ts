import { GRPC_CODES, type GrpcCode } from "../grpc_service.ts";

/** What RFC 7541 writes for a literal that no table keeps, with a name of the static table by its index. */
const LITERAL_PREFIX_MAX = 15;
const STATUS_200 = 0x88;
const INDEX_STATUS = 8;
const INDEX_CONTENT_TYPE = 31;
const INDEX_CONTENT_LENGTH = 28;

const ACCEPTED_ENCODINGS: Field = ["grpc-accept-encoding", "identity,deflate,gzip"];
/** Longest `grpc-message`, encoded. */
const MAX_ENCODED_LENGTH = 4_096;

const GRPC_FIELDS: readonly Field[] = [[INDEX_STATUS, "200"], [INDEX_CONTENT_TYPE, "application/grpc"]];

/** The headers before the messages of an answer. */
export const RESPONSE_HEADERS = block(GRPC_FIELDS);

/** The same for the first answer of a connection: clients remember the encodings that the server takes. */
export const FIRST_RESPONSE_HEADERS = block([...GRPC_FIELDS, ACCEPTED_ENCODINGS]);

/** The headers after the messages of a call that went well. */
export const OK_TRAILERS = block([["grpc-status", "0"]]);

/** The headers after the messages of a call that was refused. */
export function trailers(code: GrpcCode, message: string): Uint8Array {
  return block(statusFields(code, message));
}

/** The one block of headers of a call that is refused without any message. */
export function trailersOnly(code: GrpcCode, message: string): Uint8Array {
  const accepted = code === "UNIMPLEMENTED" ? [ACCEPTED_ENCODINGS] : [];
  return block([...GRPC_FIELDS, ...accepted, ...statusFields(code, message)]);
}

/** The headers of an answer to something that is no gRPC; its body has this many octets. */
export function plainHeaders(status: number, bodyLength: number): Uint8Array {
  return block([
    [INDEX_STATUS, String(status)],
    [INDEX_CONTENT_TYPE, "text/plain; charset=utf-8"],
    [INDEX_CONTENT_LENGTH, String(bodyLength)],
  ]);
}

/**
 * A message for `grpc-message`: everything but visible ASCII, and `%` itself, as %XX of its UTF-8 octets.
 * It ends at the last character that fits, because peers bound the headers that they take.
 */
export function percentEncode(message: string): string {
  let text = "";
  for (const character of message) {
    const encoded = /[ -$&-~]/.test(character) ? character : encodeURIComponent(character.toWellFormed());
    if (text.length + encoded.length > MAX_ENCODED_LENGTH) break;
    text += encoded;
  }
  return text;
}

type Field = readonly [name: string | number, value: string];

function statusFields(code: GrpcCode, message: string): Field[] {
  const status: Field = ["grpc-status", String(GRPC_CODES[code])];
  return message === "" ? [status] : [status, ["grpc-message", percentEncode(message)]];
}

/** Fields as literals without indexing and without Huffman, so that a block is the same for every connection. */
function block(fields: readonly Field[]): Uint8Array {
  const octets: number[] = [];
  for (const [name, value] of fields) {
    if (name === INDEX_STATUS && value === "200") {
      octets.push(STATUS_200);
      continue;
    }
    if (typeof name === "number") pushInteger(octets, name, LITERAL_PREFIX_MAX);
    else {
      octets.push(0);
      pushText(octets, name);
    }
    pushText(octets, value);
  }
  return Uint8Array.from(octets);
}

function pushText(octets: number[], text: string): void {
  pushInteger(octets, text.length, 127);
  for (let index = 0; index < text.length; index++) octets.push(text.charCodeAt(index));
}

function pushInteger(octets: number[], value: number, prefixMax: number): void {
  if (value < prefixMax) {
    octets.push(value);
    return;
  }
  octets.push(prefixMax);
  let rest = value - prefixMax;
  while (rest >= 128) {
    octets.push((rest & 127) | 128);
    rest >>>= 7;
  }
  octets.push(rest);
}
