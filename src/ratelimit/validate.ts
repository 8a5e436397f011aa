import { InvalidRequestError } from "./errors.ts";
import type { Descriptor, LimitOverride, RateLimitRequest } from "./request.ts";
import { MAX_REQUESTS_PER_UNIT } from "./limit.ts";

/** Maximum number of descriptors per request. */
export const MAX_DESCRIPTORS = 1_000;
/** Maximum number of entries per descriptor. */
export const MAX_ENTRIES = 64;
/** Maximum size of the keys and values of a descriptor in UTF-8. */
const MAX_DESCRIPTOR_BYTES = 8_192;
const MAX_HITS = 2 ** 53;

/** Throws `InvalidRequestError` when the request has no domain or descriptor, or exceeds a limit of a call. */
export function validateRequest(request: RateLimitRequest): void {
  if (request.domain === "") throw invalid("domain", "rate limit domain must not be empty");
  const { length } = request.descriptors;
  if (length === 0) throw invalid("descriptors", "rate limit descriptor list must not be empty");
  if (length > MAX_DESCRIPTORS) {
    const found = `rate limit descriptor list must not be longer than ${MAX_DESCRIPTORS}, but has ${length}`;
    throw invalid("descriptors", found);
  }
  if (utf8LengthExceeds([request.domain], MAX_DESCRIPTOR_BYTES)) {
    throw invalid("domain", `rate limit domain must not be longer than ${MAX_DESCRIPTOR_BYTES} bytes`);
  }
  for (let index = 0; index < length; index++) {
    const descriptor = request.descriptors[index];
    if (descriptor !== undefined) validateDescriptor(descriptor, index);
  }
}

function validateDescriptor(descriptor: Descriptor, index: number): void {
  const { entries, limit, hitsAddend } = descriptor;
  if (entries.length > MAX_ENTRIES) {
    const found = `must not have more than ${MAX_ENTRIES} entries, but has ${entries.length}`;
    throw invalidDescriptor(index, "entries", found);
  }
  let units = 0;
  for (const { key, value } of entries) units += key.length + value.length;
  if (units * 3 > MAX_DESCRIPTOR_BYTES && utf8LengthExceeds(textsOf(descriptor), MAX_DESCRIPTOR_BYTES)) {
    const found = `must not have keys and values of more than ${MAX_DESCRIPTOR_BYTES} bytes`;
    throw invalidDescriptor(index, "entries", found);
  }
  if (hitsAddend !== undefined && !(hitsAddend >= 0 && hitsAddend <= MAX_HITS)) {
    throw invalidDescriptor(index, "hitsAddend", "must not have a hits_addend beyond 2^53");
  }
  if (limit !== undefined) validateOverride(limit, index);
}

function validateOverride(limit: LimitOverride, index: number): void {
  if (limit.unit === undefined) {
    const found = "must name a known unit in its limit: SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR";
    throw invalidDescriptor(index, "limit.unit", found);
  }
  if (!(limit.requestsPerUnit >= 0 && limit.requestsPerUnit <= MAX_REQUESTS_PER_UNIT)) {
    const found = `must not have a limit beyond ${MAX_REQUESTS_PER_UNIT}`;
    throw invalidDescriptor(index, "limit.requestsPerUnit", found);
  }
}

function invalid(field: string, message: string): InvalidRequestError {
  return new InvalidRequestError(message, { field });
}

function invalidDescriptor(index: number, field: string, found: string): InvalidRequestError {
  return invalid(`descriptors[${index}].${field}`, `descriptor ${index} ${found}`);
}

function textsOf(descriptor: Descriptor): string[] {
  return descriptor.entries.flatMap(({ key, value }) => [key, value]);
}

function utf8LengthExceeds(texts: readonly string[], bound: number): boolean {
  const units = texts.reduce((sum, text) => sum + text.length, 0);
  if (units * 3 <= bound) return false;
  const encoder = new TextEncoder();
  return texts.reduce((sum, text) => sum + encoder.encode(text).length, 0) > bound;
}
