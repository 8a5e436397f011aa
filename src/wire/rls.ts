import { WireReader } from "./reader.ts";
import { integerField, listField, Message, messageField, stringField, structField } from "./message.ts";
import { type WireStruct, writeStructField } from "./struct.ts";
import { LENGTH, VARINT } from "./wire_format.ts";
import { WireWriter } from "./writer.ts";

/** The path of the method. */
export const RATE_LIMIT_PATH = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/** A key and a value. */
export interface WireEntry {
  key: string;
  value: string;
}

/** A `RateLimitDescriptor.RateLimitOverride`. */
interface WireLimitOverride {
  requestsPerUnit: number;
  /** A number of `envoy.type.v3.RateLimitUnit`, or an unknown one. */
  unit: number;
  /** The number of the first other field; only read. */
  unknownField?: number;
}

/** A `RateLimitDescriptor`. */
export interface WireDescriptor {
  readonly entries: readonly WireEntry[];
  readonly limit?: WireLimitOverride | undefined;
  /** 2^53 + 2 for everything above 2^53. */
  readonly hitsAddend?: number | undefined;
  readonly isNegativeHits: boolean;
}

/** An `envoy.service.ratelimit.v3.RateLimitRequest`. */
export interface WireRateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly WireDescriptor[];
  readonly hitsAddend: number;
}

/** A request to write; omitted fields have their default value. */
interface WireRateLimitRequestInit {
  readonly domain: string;
  readonly descriptors: readonly (Partial<WireDescriptor> & Pick<WireDescriptor, "entries">)[];
  readonly hitsAddend?: number | undefined;
}

/** A `RateLimitResponse.RateLimit`. */
export interface WireCurrentLimit {
  name: string;
  requestsPerUnit: number;
  /** A number of `RateLimitResponse.RateLimit.Unit`. */
  unit: number;
}

/** A `RateLimitResponse.DescriptorStatus`. */
export interface WireDescriptorStatus {
  /** A number of `RateLimitResponse.Code`. */
  readonly code: number;
  readonly currentLimit?: WireCurrentLimit | undefined;
  readonly limitRemaining: number;
  /** Whole seconds; fractions are not read. */
  readonly secondsUntilReset?: number | undefined;
}

/** An `envoy.service.ratelimit.v3.RateLimitResponse`, without the fields that Weir never sets. */
export interface WireRateLimitResponse {
  /** A number of `RateLimitResponse.Code`. */
  readonly overallCode: number;
  readonly statuses: readonly WireDescriptorStatus[];
  readonly responseHeadersToAdd: readonly WireEntry[];
  readonly dynamicMetadata?: WireStruct | undefined;
}

/** Maximum numbers of items of a request. */
interface WireRequestBounds {
  readonly descriptors: number;
  /** Per descriptor. */
  readonly entries: number;
}

const ENTRY = new Message<WireEntry>("HeaderValue", { key: stringField(1), value: stringField(2) });
const CURRENT_LIMIT = new Message<WireCurrentLimit>("RateLimitResponse.RateLimit", {
  requestsPerUnit: integerField(1, "uint32"),
  unit: integerField(2, "int32"),
  name: stringField(3),
});
const DURATION = new Message<{ readonly seconds: number }>("Duration", { seconds: integerField(1, "int64") });
type EncodedStatus = Omit<WireDescriptorStatus, "secondsUntilReset"> & {
  readonly durationUntilReset: { readonly seconds: number } | undefined;
};
const STATUS = new Message<EncodedStatus>("RateLimitResponse.DescriptorStatus", {
  code: integerField(1, "int32"),
  currentLimit: messageField(2, CURRENT_LIMIT),
  limitRemaining: integerField(3, "uint32"),
  durationUntilReset: messageField(4, DURATION),
});
const RESPONSE = new Message<
  Omit<WireRateLimitResponse, "statuses"> & { readonly statuses: readonly EncodedStatus[] }
>("RateLimitResponse", {
  overallCode: integerField(1, "int32"),
  statuses: listField(2, () => STATUS),
  responseHeadersToAdd: listField(3, () => ENTRY),
  dynamicMetadata: structField(6),
});

const UNBOUNDED: WireRequestBounds = { descriptors: Infinity, entries: Infinity };

/** Reads a request. Keeps one item more than allowed, to detect the excess, and skips the rest. */
export function decodeRateLimitRequest(bytes: Uint8Array, bounds = UNBOUNDED): WireRateLimitRequest {
  const reader = new WireReader(bytes, "RateLimitRequest");
  const descriptors: WireDescriptor[] = [];
  let domain = "";
  let hitsAddend = 0;
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | LENGTH)) domain = reader.repeatedClientString();
    else if (tag === (2 << 3 | LENGTH) && descriptors.length <= bounds.descriptors) {
      descriptors.push(readDescriptor(reader, bounds.entries));
    } else if (tag === (3 << 3 | VARINT)) hitsAddend = reader.uint32();
    else reader.skip();
  }
  return { domain, descriptors, hitsAddend };
}

/** Writes a request. */
export function encodeRateLimitRequest(request: WireRateLimitRequestInit): Uint8Array<ArrayBuffer> {
  const writer = new WireWriter();
  writer.string(1, request.domain);
  for (const descriptor of request.descriptors) {
    const start = writer.begin(2);
    writeDescriptor(writer, descriptor);
    writer.end(start);
  }
  writer.uint32(3, request.hitsAddend ?? 0);
  return writer.finish();
}

/** Writes the limit of a status. */
export function encodeCurrentLimit(limit: WireCurrentLimit): Uint8Array {
  return CURRENT_LIMIT.encode(limit);
}

/** Reads a response. */
export function decodeRateLimitResponse(bytes: Uint8Array): WireRateLimitResponse {
  const { statuses, ...rest } = RESPONSE.decode(bytes);
  return {
    ...rest,
    statuses: statuses.map(({ durationUntilReset, ...status }) => ({
      ...status,
      secondsUntilReset: durationUntilReset?.seconds,
    })),
  };
}

/** Writes a response. */
export function encodeRateLimitResponse(response: WireRateLimitResponse): Uint8Array<ArrayBuffer> {
  const writer = new WireWriter();
  writer.int32(1, response.overallCode);
  for (const status of response.statuses) writeStatus(writer, status);
  for (const header of response.responseHeadersToAdd) writeEntry(writer, 3, header);
  if (response.dynamicMetadata !== undefined) writeStructField(writer, 6, response.dynamicMetadata);
  return writer.finish();
}

function writeStatus(writer: WireWriter, status: WireDescriptorStatus): void {
  const { code, currentLimit, limitRemaining, secondsUntilReset } = status;
  const start = writer.begin(2);
  writer.int32(1, code);
  if (currentLimit !== undefined) {
    const limit = writer.begin(2);
    writer.uint32(1, currentLimit.requestsPerUnit);
    writer.int32(2, currentLimit.unit);
    writer.string(3, currentLimit.name);
    writer.end(limit);
  }
  writer.uint32(3, limitRemaining);
  if (secondsUntilReset !== undefined) {
    const duration = writer.begin(4);
    writer.int64(1, secondsUntilReset);
    writer.end(duration);
  }
  writer.end(start);
}

function readDescriptor(reader: WireReader, maxEntries: number): WireDescriptor {
  const entries: WireEntry[] = [];
  let limit: WireLimitOverride | undefined;
  let hitsAddend: number | undefined;
  let isNegativeHits = false;
  reader.enter("RateLimitDescriptor");
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | LENGTH) && entries.length <= maxEntries) {
      entries.push(readEntry(reader, "RateLimitDescriptor.Entry"));
    } else if (tag === (2 << 3 | LENGTH)) limit = readOverride(reader, limit);
    else if (tag === (3 << 3 | LENGTH)) hitsAddend = readUint64Value(reader, hitsAddend ?? 0);
    else if (tag === (4 << 3 | VARINT)) isNegativeHits = reader.bool();
    else reader.skip();
  }
  reader.leave();
  return { entries, limit, hitsAddend, isNegativeHits };
}

function readOverride(reader: WireReader, before: WireLimitOverride | undefined): WireLimitOverride {
  const limit = before ?? { requestsPerUnit: 0, unit: 0 };
  reader.enter("RateLimitDescriptor.RateLimitOverride");
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | VARINT)) limit.requestsPerUnit = reader.uint32();
    else if (tag === (2 << 3 | VARINT)) limit.unit = reader.int32();
    else {
      reader.skip();
      limit.unknownField ??= tag >>> 3;
    }
  }
  reader.leave();
  return limit;
}

function writeDescriptor(
  writer: WireWriter,
  descriptor: WireRateLimitRequestInit["descriptors"][number],
): void {
  for (const entry of descriptor.entries) writeEntry(writer, 1, entry);
  if (descriptor.limit !== undefined) {
    const start = writer.begin(2);
    writer.uint32(1, descriptor.limit.requestsPerUnit);
    writer.int32(2, descriptor.limit.unit);
    writer.end(start);
  }
  if (descriptor.hitsAddend !== undefined) {
    const start = writer.begin(3);
    writer.uint64(1, descriptor.hitsAddend);
    writer.end(start);
  }
  writer.bool(4, descriptor.isNegativeHits ?? false);
}

/** Reads a message with `key` 1 and `value` 2. */
function readEntry(reader: WireReader, name: string): WireEntry {
  let key = "";
  let value = "";
  reader.enter(name);
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | LENGTH)) key = reader.repeatedClientString();
    else if (tag === (2 << 3 | LENGTH)) value = reader.clientString();
    else reader.skip();
  }
  reader.leave();
  return { key, value };
}

function writeEntry(writer: WireWriter, field: number, entry: Readonly<WireEntry>): void {
  const start = writer.begin(field);
  writer.string(1, entry.key);
  writer.string(2, entry.value);
  writer.end(start);
}

function readUint64Value(reader: WireReader, before: number): number {
  let value = before;
  reader.enter("UInt64Value");
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | VARINT)) value = reader.uint64();
    else reader.skip();
  }
  reader.leave();
  return value;
}
