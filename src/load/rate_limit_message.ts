/** The method that the generator calls. */
export const RATE_LIMIT_PATH = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/** The codes of an answer by their numbers. */
export const ANSWER_CODES = ["UNKNOWN", "OK", "OVER_LIMIT"] as const;
const FIELDS = { code: 1, currentLimit: 2, limitRemaining: 3 } as const;

/** A part of some bytes. */
export interface ByteRange {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** The name of a code of an answer. */
export type AnswerCode = typeof ANSWER_CODES[number];

/** The fields of a `RateLimitResponse` that the generator reads. */
export interface ResponseSummary {
  readonly overallCode: AnswerCode;
  readonly statuses: readonly StatusSummary[];
}

/** The fields of a status that the generator reads. */
export interface StatusSummary {
  readonly code: AnswerCode;
  /** Whether a limit applied to the descriptor. */
  readonly hasLimit: boolean;
  readonly limitRemaining: number;
}

/**
 * Reads a `RateLimitResponse`. It does not use the codec of the service, so that it detects errors of that codec, and
 * throws a `RangeError` for an invalid field.
 */
export function readResponse(message: Uint8Array): ResponseSummary {
  let overallCode: AnswerCode = "UNKNOWN";
  const statuses: StatusSummary[] = [];
  for (const { field, value, bytes, at } of fieldsOf(message)) {
    if ((field === 1) !== (bytes === undefined)) throw badAnswer(at);
    if (bytes === undefined) overallCode = codeOf(value, at);
    else if (field === 2) statuses.push(readStatus(bytes));
  }
  return { overallCode, statuses };
}

function readStatus(message: Uint8Array): StatusSummary {
  let code: AnswerCode = "UNKNOWN";
  let hasLimit = false;
  let limitRemaining = 0;
  for (const { field, value, at } of fieldsOf(message)) {
    if (field === FIELDS.code) code = codeOf(value, at);
    else if (field === FIELDS.currentLimit) hasLimit = true;
    else if (field === FIELDS.limitRemaining) limitRemaining = value;
  }
  return { code, hasLimit, limitRemaining };
}

interface Field {
  readonly field: number;
  /** A number, or the length of the bytes. */
  readonly value: number;
  readonly bytes: Uint8Array | undefined;
  readonly at: number;
}

function fieldsOf(message: Uint8Array): Field[] {
  const fields: Field[] = [];
  let at = 0;
  while (at < message.length) {
    const tag = varint(message, at);
    const wireType = tag.value & 7;
    if (wireType !== 0 && wireType !== 2) throw badAnswer(at);
    const { value, end } = varint(message, tag.end);
    const next = wireType === 0 ? end : end + value;
    if (next > message.length) throw badAnswer(at);
    const bytes = wireType === 0 ? undefined : message.subarray(end, next);
    fields.push({ field: tag.value >> 3, value, bytes, at });
    at = next;
  }
  return fields;
}

function codeOf(value: number, at: number): AnswerCode {
  const code = ANSWER_CODES[value];
  if (code === undefined) throw badAnswer(at);
  return code;
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
