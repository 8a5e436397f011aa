import { WireReader } from "./reader.ts";
import { readStructField, type WireStruct, writeStructField } from "./struct.ts";
import { LENGTH, VARINT } from "./wire_format.ts";
import { WireWriter } from "./writer.ts";

/** A key and a value. */
export interface WireEntry {
  key: string;
  value: string;
}

/** A `RateLimitDescriptor.RateLimitOverride`. */
export interface WireLimitOverride {
  requestsPerUnit: number;
  /** A number of `envoy.type.v3.RateLimitUnit`, or an unknown one. */
  unit: number;
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
export interface WireRateLimitRequestInit {
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

/** How many items of a request are kept. */
export interface WireRequestBounds {
  readonly descriptors: number;
  /** Per descriptor. */
  readonly entries: number;
}

const UNBOUNDED: WireRequestBounds = { descriptors: Infinity, entries: Infinity };

/** Reads a request. Keeps one item more than allowed, to detect the excess, and skips the rest. */
export function decodeRateLimitRequest(bytes: Uint8Array, bounds = UNBOUNDED): WireRateLimitRequest {
  const reader = new WireReader(bytes, "RateLimitRequest");
  const descriptors: WireDescriptor[] = [];
  let domain = "";
  let hitsAddend = 0;
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | LENGTH)) domain = reader.repeatedString();
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

/** Reads a response. */
export function decodeRateLimitResponse(bytes: Uint8Array): WireRateLimitResponse {
  const reader = new WireReader(bytes, "RateLimitResponse");
  const statuses: WireDescriptorStatus[] = [];
  const responseHeadersToAdd: WireEntry[] = [];
  let overallCode = 0;
  let dynamicMetadata: WireStruct | undefined;
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | VARINT)) overallCode = reader.int32();
    else if (tag === (2 << 3 | LENGTH)) statuses.push(readStatus(reader));
    else if (tag === (3 << 3 | LENGTH)) responseHeadersToAdd.push(readEntry(reader, "HeaderValue"));
    else if (tag === (6 << 3 | LENGTH)) dynamicMetadata = readStructField(reader, dynamicMetadata);
    else reader.skip();
  }
  return { overallCode, statuses, responseHeadersToAdd, dynamicMetadata };
}

/** Writes a response. */
export function encodeRateLimitResponse(response: WireRateLimitResponse): Uint8Array<ArrayBuffer> {
  const writer = new RateLimitResponseWriter(response.overallCode);
  for (const { code, currentLimit, limitRemaining, secondsUntilReset } of response.statuses) {
    writer.beginStatus(code);
    if (currentLimit !== undefined) {
      writer.currentLimit(currentLimit.name, currentLimit.requestsPerUnit, currentLimit.unit);
    }
    writer.endStatus(limitRemaining, secondsUntilReset);
  }
  return writer.finish(response.responseHeadersToAdd, response.dynamicMetadata);
}

/** Writes a response piece by piece, without an intermediate object. */
export class RateLimitResponseWriter {
  readonly #writer = new WireWriter();
  #status = 0;

  /** `overallCode` is a number of `RateLimitResponse.Code`. */
  constructor(overallCode: number) {
    this.#writer.int32(1, overallCode);
  }

  /** Begins the next status. */
  beginStatus(code: number): void {
    this.#status = this.#writer.begin(2);
    this.#writer.int32(1, code);
  }

  /** The limit of the current status. */
  currentLimit(name: string, requestsPerUnit: number, unit: number): void {
    const writer = this.#writer;
    const start = writer.begin(2);
    writer.uint32(1, requestsPerUnit);
    writer.int32(2, unit);
    writer.string(3, name);
    writer.end(start);
  }

  /** Ends the current status. */
  endStatus(limitRemaining: number, secondsUntilReset: number | undefined): void {
    const writer = this.#writer;
    writer.uint32(3, limitRemaining);
    if (secondsUntilReset !== undefined) {
      const start = writer.begin(4);
      writer.int64(1, secondsUntilReset);
      writer.end(start);
    }
    writer.end(this.#status);
  }

  /** The bytes of the response. */
  finish(
    headers: readonly Readonly<WireEntry>[],
    dynamicMetadata: WireStruct | undefined,
  ): Uint8Array<ArrayBuffer> {
    const writer = this.#writer;
    for (const header of headers) writeEntry(writer, 3, header);
    if (dynamicMetadata !== undefined) writeStructField(writer, 6, dynamicMetadata);
    return writer.finish();
  }
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
    if (tag === (1 << 3 | LENGTH)) key = reader.repeatedString();
    else if (tag === (2 << 3 | LENGTH)) value = reader.string();
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

/** A second occurrence of a message continues the first, here and below: protobuf merges them. */
function readOverride(reader: WireReader, before: WireLimitOverride | undefined): WireLimitOverride {
  const limit = before ?? { requestsPerUnit: 0, unit: 0 };
  for (const tag of reader.message("RateLimitDescriptor.RateLimitOverride")) {
    if (tag === (1 << 3 | VARINT)) limit.requestsPerUnit = reader.uint32();
    else if (tag === (2 << 3 | VARINT)) limit.unit = reader.int32();
    else reader.skip();
  }
  return limit;
}

function readUint64Value(reader: WireReader, before: number): number {
  let value = before;
  for (const tag of reader.message("UInt64Value")) {
    if (tag === (1 << 3 | VARINT)) value = reader.uint64();
    else reader.skip();
  }
  return value;
}

function readStatus(reader: WireReader): WireDescriptorStatus {
  let code = 0;
  let currentLimit: WireCurrentLimit | undefined;
  let limitRemaining = 0;
  let secondsUntilReset: number | undefined;
  for (const tag of reader.message("RateLimitResponse.DescriptorStatus")) {
    if (tag === (1 << 3 | VARINT)) code = reader.int32();
    else if (tag === (2 << 3 | LENGTH)) currentLimit = readCurrentLimit(reader, currentLimit);
    else if (tag === (3 << 3 | VARINT)) limitRemaining = reader.uint32();
    else if (tag === (4 << 3 | LENGTH)) secondsUntilReset = readSeconds(reader, secondsUntilReset ?? 0);
    else reader.skip();
  }
  return { code, currentLimit, limitRemaining, secondsUntilReset };
}

function readCurrentLimit(reader: WireReader, before: WireCurrentLimit | undefined): WireCurrentLimit {
  const limit = before ?? { name: "", requestsPerUnit: 0, unit: 0 };
  for (const tag of reader.message("RateLimitResponse.RateLimit")) {
    if (tag === (1 << 3 | VARINT)) limit.requestsPerUnit = reader.uint32();
    else if (tag === (2 << 3 | VARINT)) limit.unit = reader.int32();
    else if (tag === (3 << 3 | LENGTH)) limit.name = reader.string();
    else reader.skip();
  }
  return limit;
}

function readSeconds(reader: WireReader, before: number): number {
  let seconds = before;
  for (const tag of reader.message("Duration")) {
    if (tag === (1 << 3 | VARINT)) seconds = reader.int64();
    else reader.skip();
  }
  return seconds;
}
