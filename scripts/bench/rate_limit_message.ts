import { encodeRateLimitRequest } from "../../src/wire/rls.ts";

/** The method that the bench calls. */
export const RATE_LIMIT_PATH = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/** The loads of the bench: `one` body again and again, or many `keys` in turn. */
export const LOADS = ["one", "keys"] as const;
/** The name of a load. */
export type LoadName = typeof LOADS[number];

const OVERALL_CODES = ["UNKNOWN", "OK", "OVER_LIMIT"] as const;
const FRAME_PREFIX_BYTES = 5;

/** The name of the overall code in an answer. */
export type OverallCode = typeof OVERALL_CODES[number];

/** A `RateLimitRequest` of domain `bench` with the entries `load=<load>` and `key=<key>`. */
export function encodeRequest(load: LoadName, key: string): Uint8Array {
  const entries = [{ key: "load", value: load }, { key: "key", value: key }];
  return encodeRateLimitRequest({ domain: "bench", descriptors: [{ entries }] });
}

/** The message behind the prefix of gRPC: not compressed, and its length. */
export function frameMessage(message: Uint8Array): Uint8Array {
  const framed = new Uint8Array(FRAME_PREFIX_BYTES + message.length);
  new DataView(framed.buffer).setUint32(1, message.length);
  framed.set(message, FRAME_PREFIX_BYTES);
  return framed;
}

/** The message of a body that holds exactly one, not compressed; throws `RangeError` for any other. */
export function unframeMessage(body: Uint8Array): Uint8Array {
  const length = body.length < FRAME_PREFIX_BYTES
    ? -1
    : new DataView(body.buffer, body.byteOffset).getUint32(1);
  if (length !== body.length - FRAME_PREFIX_BYTES || body[0] !== 0) {
    throw new RangeError(
      `Cannot read gRPC body of "${body.length}" bytes: it must be one whole plain message`,
    );
  }
  return body.subarray(FRAME_PREFIX_BYTES);
}

/** The overall code of a `RateLimitResponse`; walks all its fields and throws `RangeError` where one is bad. */
export function readOverallCode(message: Uint8Array): OverallCode {
  let code = 0;
  let at = 0;
  while (at < message.length) {
    const tag = varint(message, at);
    const first = varint(message, tag.end);
    const isNumber = (tag.value & 7) === 0;
    if (!isNumber && (tag.value & 7) !== 2) throw badAnswer(at);
    if (isNumber === (tag.value >> 3 !== 1)) throw badAnswer(at);
    if (isNumber) code = first.value;
    at = isNumber ? first.end : first.end + first.value;
  }
  const name = OVERALL_CODES[code];
  if (at > message.length || name === undefined) throw badAnswer(at);
  return name;
}

function badAnswer(at: number): RangeError {
  return new RangeError(`Cannot read answer at byte "${at}": it must be a RateLimitResponse`);
}

function varint(bytes: Uint8Array, start: number): { value: number; end: number } {
  let value = 0;
  for (let index = 0; index < 5; index++) {
    const byte = bytes[start + index];
    if (byte === undefined) break;
    value += (byte & 0x7f) * 2 ** (7 * index);
    if (byte < 0x80) return { value, end: start + index + 1 };
  }
  throw badAnswer(start);
}
