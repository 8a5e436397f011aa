import { byteLength } from "../../base/exact_json.ts";
import { InvalidRequestError } from "../errors.ts";
import type { Descriptor, LimitOverride, RateLimitRequest } from "../request.ts";
import { MAX_REQUESTS_PER_UNIT, MAX_UNIT_MULTIPLIER } from "../units.ts";

/** Maximum number of descriptors per request. */
export const MAX_DESCRIPTORS = 1_000;
/** Maximum number of entries per descriptor. */
export const MAX_ENTRIES = 64;
/** Maximum size of a domain in UTF-8. */
const MAX_DOMAIN_BYTES = 8_192;

/**
 * Throws `InvalidRequestError` when the request has no domain or descriptor, or exceeds a limit of a call. A proxy with
 * `failure_mode_deny: false` lets such a call pass: nothing that is checked here may depend on the clients behind it.
 */
export function validateRequest(request: RateLimitRequest): void {
  if (request.domain === "") throw invalid("domain", "rate limit domain must not be empty");
  const { length } = request.descriptors;
  if (length === 0) throw invalid("descriptors", "rate limit descriptor list must not be empty");
  if (length > MAX_DESCRIPTORS) {
    const found = `rate limit descriptor list must not be longer than ${MAX_DESCRIPTORS}, but has ${length}`;
    throw invalid("descriptors", found);
  }
  if (request.domain.length * 3 > MAX_DOMAIN_BYTES && byteLength(request.domain) > MAX_DOMAIN_BYTES) {
    throw invalid("domain", `rate limit domain must not be longer than ${MAX_DOMAIN_BYTES} bytes`);
  }
  for (let index = 0; index < length; index++) {
    const descriptor = request.descriptors[index];
    if (descriptor !== undefined) validateDescriptor(descriptor, index);
  }
}

function validateDescriptor(descriptor: Descriptor, index: number): void {
  const { entries, limit } = descriptor;
  if (entries.length > MAX_ENTRIES) {
    const found = `must not have more than ${MAX_ENTRIES} entries, but has ${entries.length}`;
    throw invalidDescriptor(index, "entries", found);
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
  const { unitMultiplier = 1 } = limit;
  if (!(unitMultiplier >= 1 && unitMultiplier <= MAX_UNIT_MULTIPLIER)) {
    const found = `must have a unit multiplier from 1 to ${MAX_UNIT_MULTIPLIER} in its limit`;
    throw invalidDescriptor(index, "limit.unitMultiplier", found);
  }
}

function invalid(field: string, message: string): InvalidRequestError {
  return new InvalidRequestError(message, { field });
}

function invalidDescriptor(index: number, field: string, found: string): InvalidRequestError {
  return invalid(`descriptors[${index}].${field}`, `descriptor ${index} ${found}`);
}
