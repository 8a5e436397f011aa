import type { CurrentLimit, Decision, DescriptorStatus, Header } from "../../ratelimit/decision.ts";
import {
  MAX_REQUESTS_PER_UNIT,
  MAX_UNIT_MULTIPLIER,
  type Unit,
  UNIT_NAMES,
  unitOfNumber,
} from "../../ratelimit/units.ts";
import type { Descriptor, Entry, LimitOverride, RateLimitRequest } from "../../ratelimit/request.ts";
import { MAX_DESCRIPTORS, MAX_ENTRIES } from "../../ratelimit/decision/validate.ts";
import { bucketProblem, MAX_PAIRS } from "../../ratelimit/rules/match_bucket.ts";
import { JsonReader, JsonRequestError, type MessageFields, messageFields } from "../server/json_reader.ts";

/** The largest integer that JSON requests may hold. */
const MAX_WHOLE_NUMBER = 2 ** 53;
const NUMBER = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;
const PLAIN = /^(?:0|[1-9]\d{0,14})$/;
const DIGITS_OF_MAX = String(MAX_WHOLE_NUMBER).length;
const MAX_UINT32 = 4_294_967_295;
const MAX_INT32 = 2_147_483_647;

/** A request for counters, or for the quota of a bucket. */
interface PeekRequest extends RateLimitRequest {
  readonly bucket?: readonly Entry[] | undefined;
}

/** A reader for each field of a rate limit request, for messages that have further fields. */
export const REQUEST_READERS = {
  domain: readText,
  descriptors: (reader: JsonReader) => reader.list(MAX_DESCRIPTORS, readDescriptor),
  hitsAddend: (reader: JsonReader) => readHits(reader, MAX_UINT32),
};
const REQUEST_FIELDS = messageFields<RateLimitRequest>(REQUEST_READERS);
const PEEK_FIELDS = messageFields<PeekRequest>({
  ...REQUEST_READERS,
  bucket: (reader) => reader.list(MAX_PAIRS, readEntry),
});
const DESCRIPTOR_FIELDS = messageFields<Descriptor>({
  entries: (reader) => reader.list(MAX_ENTRIES, readEntry),
  limit: readLimit,
  hitsAddend: (reader) => readHits(reader, MAX_WHOLE_NUMBER),
  isNegativeHits: readFlag,
});
const ENTRY_FIELDS = messageFields<Entry>({ key: readText, value: readText });
const LIMIT_FIELDS = messageFields<LimitOverride>({
  requestsPerUnit: (reader) => readCount(reader, { min: 0, max: MAX_REQUESTS_PER_UNIT }),
  unit: readUnit,
  unitMultiplier: (reader) => readCount(reader, { min: 1, max: MAX_UNIT_MULTIPLIER }),
});

/**
 * Reads a rate limit request in the JSON mapping of proto3: both spellings of a field, null for the default, numbers
 * also as strings. Throws `JsonRequestError` at the first mistake. Does not validate the request, but keeps only the
 * first item beyond the bounds of a call, so that a large body costs no more than its bytes.
 */
export function readRateLimitRequest(text: string): RateLimitRequest {
  return readMessage(text, REQUEST_FIELDS, { domain: "", descriptors: [], hitsAddend: 0 });
}

/** Reads a rate limit request like `readRateLimitRequest`, or the bucket of a quota in place of descriptors. */
export function readPeekRequest(text: string): PeekRequest {
  const request: PeekRequest = readMessage(text, PEEK_FIELDS, { domain: "", descriptors: [], hitsAddend: 0 });
  const { domain, bucket, descriptors } = request;
  if (bucket === undefined) return request;
  const refuse = (field: string, problem: string) => {
    throw new JsonRequestError(field, problem, { offset: text.length });
  };
  if (domain === "") refuse("domain", "must not be empty");
  const problem = descriptors.length > 0 ? "must not be given with descriptors" : bucketProblem(bucket);
  if (problem !== undefined) refuse("bucket", problem);
  return request;
}

/** The draft becomes the message. */
function readMessage<T>(text: string, fields: MessageFields<T>, draft: T): T {
  const reader = new JsonReader(text);
  if (reader.atEnd()) {
    throw new JsonRequestError("body", "empty, expected a JSON object", { offset: text.length });
  }
  const request = reader.message(fields, draft);
  reader.end();
  return request;
}

/**
 * Writes a decision in the JSON mapping of proto3: keys in the order of the message, enums by name, what
 * is zero or empty left out.
 */
export function writeDecision(decision: Decision): string {
  return JSON.stringify({
    overallCode: decision.overallCode,
    statuses: unlessEmpty(decision.statuses.map(statusJson)),
    responseHeadersToAdd: unlessEmpty(decision.responseHeadersToAdd.map(headerJson)),
    dynamicMetadata: decision.dynamicMetadata,
  });
}

function readDescriptor(reader: JsonReader): Descriptor {
  return reader.message(DESCRIPTOR_FIELDS, { entries: [] });
}

function readEntry(reader: JsonReader): Entry {
  return reader.message(ENTRY_FIELDS, { key: "", value: "" });
}

function readLimit(reader: JsonReader): LimitOverride {
  return reader.message(LIMIT_FIELDS, { requestsPerUnit: 0, unit: undefined });
}

/** A unit by its number or its exact name. An unknown number is for the core to refuse. */
function readUnit(reader: JsonReader): Unit | undefined {
  const source = reader.number();
  if (source !== undefined) {
    const number = wholeNumber(source);
    if (number !== undefined && Math.abs(number) <= MAX_INT32) return unitOfNumber(number);
    throw reader.refusal("must be the name or the number of a unit");
  }
  const reason = `must be one of UNKNOWN, ${UNIT_NAMES.join(", ")}, or a number`;
  const given = reader.string();
  if (given === undefined) throw reader.wrongKind(reason);
  if (given === "UNKNOWN") return undefined;
  const unit = UNIT_NAMES.find((name) => name === given);
  if (unit === undefined) throw reader.refusal(reason);
  return unit;
}

/** Reads a text. */
function readText(reader: JsonReader): string {
  const text = reader.string();
  if (text === undefined) throw reader.wrongKind("must be a string");
  return text;
}

/** Reads a truth value. */
function readFlag(reader: JsonReader): boolean {
  if (reader.word("true")) return true;
  if (reader.word("false")) return false;
  throw reader.wrongKind("must be true or false");
}

/** Reads a whole number from `min` to `max`, written as a number or as a string. */
function readCount(reader: JsonReader, { min, max }: { readonly min: number; readonly max: number }): number {
  const reason = `must be a whole number from ${min} to ${max}`;
  const number = readWhole(reader, reason);
  if (number < min || number > max) throw reader.refusal(reason);
  return number;
}

/** Reads hits. More than `max` count as `max`, which is above every limit: a proxy may copy them from a client. */
function readHits(reader: JsonReader, max: number): number {
  return Math.min(readWhole(reader, "must be a whole number of 0 or more"), max);
}

function readWhole(reader: JsonReader, reason: string): number {
  const source = reader.number() ?? reader.string();
  if (source === undefined) throw reader.wrongKind(reason);
  const number = wholeNumber(source);
  if (number === undefined || number < 0) throw reader.refusal(reason);
  return number + 0; // + 0 makes -0 a plain 0
}

function statusJson(status: DescriptorStatus): unknown {
  const { code, currentLimit, limitRemaining, secondsUntilReset } = status;
  return {
    code,
    currentLimit: currentLimit === undefined ? undefined : limitJson(currentLimit),
    limitRemaining: unlessZero(limitRemaining),
    durationUntilReset: secondsUntilReset === undefined ? undefined : `${secondsUntilReset}s`,
  };
}

function limitJson({ name, requestsPerUnit, unit }: CurrentLimit): unknown {
  return { name: unlessEmpty(name), requestsPerUnit: unlessZero(requestsPerUnit), unit };
}

function headerJson({ key, value }: Header): unknown {
  return { key: unlessEmpty(key), value: unlessEmpty(value) };
}

function unlessZero(value: number): number | undefined {
  return value === 0 ? undefined : value;
}

function unlessEmpty<T extends { readonly length: number }>(value: T): T | undefined {
  return value.length === 0 ? undefined : value;
}

/** The integer of a JSON number such as `1.0` or `1e2`; undefined for others, and an infinity beyond 2^53 either way. */
export function wholeNumber(source: string): number | undefined {
  if (PLAIN.test(source)) return Number(source);
  const match = NUMBER.exec(source);
  if (match === null) return undefined;
  const [, sign, whole = "", fraction = "", exponent = "0"] = match;
  const digits = whole + fraction;
  const kept = lengthWithoutTrailingZeros(digits);
  const significant = digits.slice(0, kept).replace(/^0+/, "");
  if (significant === "") return 0;
  const zeros = Number(exponent) - fraction.length + (digits.length - kept);
  if (zeros < 0) return undefined;
  const size = magnitude(significant, zeros);
  return sign === "-" ? -size : size;
}

function magnitude(significant: string, zeros: number): number {
  // Before the zeros are written: an exponent of a billion costs nothing.
  if (significant.length + zeros > DIGITS_OF_MAX) return Infinity;
  const exact = BigInt(significant + "0".repeat(zeros));
  return exact > BigInt(MAX_WHOLE_NUMBER) ? Infinity : Number(exact);
}

function lengthWithoutTrailingZeros(digits: string): number {
  let length = digits.length;
  while (length > 0 && digits[length - 1] === "0") length--;
  return length;
}
