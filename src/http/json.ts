import type { CurrentLimit, Decision, DescriptorStatus, Header } from "../ratelimit/decision.ts";
import { MAX_REQUESTS_PER_UNIT, type Unit, UNIT_NAMES, unitOfNumber } from "../ratelimit/limit.ts";
import type { Descriptor, Entry, LimitOverride, RateLimitRequest } from "../ratelimit/request.ts";
import { fieldNames, Fields, JsonRequestError } from "./json_fields.ts";
import { JsonNumber, MAX_WHOLE_NUMBER, parseJson, wholeNumber } from "./json_number.ts";

/** What `readRateLimitRequest` throws. */
export { JsonRequestError } from "./json_fields.ts";

const MAX_UINT32 = 4_294_967_295;
const MAX_INT32 = 2_147_483_647;

const REQUEST_FIELDS = fieldNames("domain", "descriptors", "hitsAddend");
const DESCRIPTOR_FIELDS = fieldNames("entries", "limit", "hitsAddend", "isNegativeHits");
const ENTRY_FIELDS = fieldNames("key", "value");
const LIMIT_FIELDS = fieldNames("requestsPerUnit", "unit");

/**
 * Reads a rate limit request in the JSON mapping of proto3: both spellings of a field, null for the
 * default, numbers also as strings. Throws `JsonRequestError` at the first field that is wrong. What a
 * request must hold to be answered is not asked here.
 */
export function readRateLimitRequest(text: string): RateLimitRequest {
  const fields = new Fields(parseBody(text), "", REQUEST_FIELDS);
  return {
    domain: fields.text("domain"),
    descriptors: fields.list("descriptors", readDescriptor),
    hitsAddend: fields.count("hitsAddend", MAX_UINT32) ?? 0,
  };
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

function parseBody(text: string): unknown {
  if (text.trim() === "") throw new JsonRequestError("body", "empty, a JSON object would be right");
  try {
    return parseJson(text);
  } catch (cause) {
    throw new JsonRequestError("body", `not valid JSON${placeOf(cause)}`, { cause });
  }
}

/** Where the text is wrong, as the parser tells it; its message itself would repeat parts of the body. */
function placeOf(error: unknown): string {
  if (error instanceof RangeError) return ", nested too deep";
  const message = error instanceof Error ? error.message : "";
  const place = /line \d+ column \d+/.exec(message);
  return place === null ? "" : ` at ${place[0]}`;
}

function readDescriptor(value: unknown, path: string): Descriptor {
  const fields = new Fields(value, path, DESCRIPTOR_FIELDS);
  const entries = fields.list("entries", readEntry);
  const limit = fields.value("limit");
  const hitsAddend = fields.count("hitsAddend", MAX_WHOLE_NUMBER);
  const isNegativeHits = fields.flag("isNegativeHits");
  return {
    entries,
    ...(limit === undefined ? {} : { limit: readLimit(limit, fields.path("limit")) }),
    ...(hitsAddend === undefined ? {} : { hitsAddend }),
    ...(isNegativeHits === undefined ? {} : { isNegativeHits }),
  };
}

function readEntry(value: unknown, path: string): Entry {
  const fields = new Fields(value, path, ENTRY_FIELDS);
  return { key: fields.text("key"), value: fields.text("value") };
}

function readLimit(value: unknown, path: string): LimitOverride {
  const fields = new Fields(value, path, LIMIT_FIELDS);
  return {
    requestsPerUnit: fields.count("requestsPerUnit", MAX_REQUESTS_PER_UNIT) ?? 0,
    unit: readUnit(fields.value("unit"), fields.path("unit")),
  };
}

/** A unit by its number or its exact name. A number that nobody knows is for the core to refuse. */
function readUnit(value: unknown, path: string): Unit | undefined {
  if (value === undefined || value === "UNKNOWN") return undefined;
  if (value instanceof JsonNumber) {
    const number = wholeNumber(value.source);
    if (number !== undefined && Math.abs(number) <= MAX_INT32) return unitOfNumber(number);
    throw new JsonRequestError(path, "must be the name or the number of a unit");
  }
  const unit = UNIT_NAMES.find((name) => name === value);
  if (unit === undefined) {
    throw new JsonRequestError(path, `must be one of UNKNOWN, ${UNIT_NAMES.join(", ")}, or a number`);
  }
  return unit;
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
