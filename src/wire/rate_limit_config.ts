import { WireReader } from "./reader.ts";
import { readStructField, type WireStruct, writeStructField } from "./struct.ts";
import { LENGTH, VARINT } from "./wire_format.ts";
import { WireWriter } from "./writer.ts";

/** A `ratelimit.config.ratelimit.v3.RateLimitPolicy`. */
export interface WirePolicy {
  /** A number of `ratelimit.config.ratelimit.v3.RateLimitUnit`, or an unknown one. */
  unit: number;
  requestsPerUnit: number;
  unlimited: boolean;
  name: string;
  readonly replaces: { name: string }[];
}

/** A `ratelimit.config.ratelimit.v3.RateLimitDescriptor`. */
export interface WireRule {
  readonly key: string;
  readonly value: string;
  readonly rateLimit?: WirePolicy | undefined;
  readonly descriptors: readonly WireRule[];
  readonly shadowMode: boolean;
  readonly detailedMetric: boolean;
  readonly quotaMode: boolean;
  readonly metadata?: WireStruct | undefined;
}

/** A `ratelimit.config.ratelimit.v3.RateLimitConfig`: the rules of one domain. */
export interface WireRateLimitConfig {
  /** Names the resource in errors. */
  readonly name: string;
  readonly domain: string;
  readonly descriptors: readonly WireRule[];
}

/** Reads a configuration. */
export function decodeRateLimitConfig(bytes: Uint8Array): WireRateLimitConfig {
  const reader = new WireReader(bytes, "RateLimitConfig");
  const descriptors: WireRule[] = [];
  let name = "";
  let domain = "";
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | LENGTH)) name = reader.string();
    else if (tag === (2 << 3 | LENGTH)) domain = reader.string();
    else if (tag === (3 << 3 | LENGTH)) descriptors.push(readRule(reader));
    else reader.skip();
  }
  return { name, domain, descriptors };
}

/** Writes a configuration. */
export function encodeRateLimitConfig(config: WireRateLimitConfig): Uint8Array<ArrayBuffer> {
  const writer = new WireWriter();
  writer.string(1, config.name);
  writer.string(2, config.domain);
  for (const rule of config.descriptors) writeRule(writer, 3, rule);
  return writer.finish();
}

function readRule(reader: WireReader): WireRule {
  const descriptors: WireRule[] = [];
  let key = "";
  let value = "";
  let rateLimit: WirePolicy | undefined;
  let shadowMode = false;
  let detailedMetric = false;
  let quotaMode = false;
  let metadata: WireStruct | undefined;
  for (const tag of reader.message("RateLimitDescriptor")) {
    if (tag === (1 << 3 | LENGTH)) key = reader.string();
    else if (tag === (2 << 3 | LENGTH)) value = reader.string();
    else if (tag === (3 << 3 | LENGTH)) rateLimit = readPolicy(reader, rateLimit);
    else if (tag === (4 << 3 | LENGTH)) descriptors.push(readRule(reader));
    else if (tag === (5 << 3 | VARINT)) shadowMode = reader.bool();
    else if (tag === (6 << 3 | VARINT)) detailedMetric = reader.bool();
    else if (tag === (7 << 3 | VARINT)) quotaMode = reader.bool();
    else if (tag === (8 << 3 | LENGTH)) metadata = readStructField(reader, metadata);
    else reader.skip();
  }
  return { key, value, rateLimit, descriptors, shadowMode, detailedMetric, quotaMode, metadata };
}

function writeRule(writer: WireWriter, field: number, rule: WireRule): void {
  const start = writer.begin(field);
  writer.string(1, rule.key);
  writer.string(2, rule.value);
  if (rule.rateLimit !== undefined) writePolicy(writer, rule.rateLimit);
  for (const below of rule.descriptors) writeRule(writer, 4, below);
  writer.bool(5, rule.shadowMode);
  writer.bool(6, rule.detailedMetric);
  writer.bool(7, rule.quotaMode);
  if (rule.metadata !== undefined) writeStructField(writer, 8, rule.metadata);
  writer.end(start);
}

/** A second occurrence of a policy continues the first: protobuf merges them. */
function readPolicy(reader: WireReader, before: WirePolicy | undefined): WirePolicy {
  const policy = before ?? { unit: 0, requestsPerUnit: 0, unlimited: false, name: "", replaces: [] };
  for (const tag of reader.message("RateLimitPolicy")) {
    if (tag === (1 << 3 | VARINT)) policy.unit = reader.int32();
    else if (tag === (2 << 3 | VARINT)) policy.requestsPerUnit = reader.uint32();
    else if (tag === (3 << 3 | VARINT)) policy.unlimited = reader.bool();
    else if (tag === (4 << 3 | LENGTH)) policy.name = reader.string();
    else if (tag === (5 << 3 | LENGTH)) policy.replaces.push(readReplaces(reader));
    else reader.skip();
  }
  return policy;
}

function writePolicy(writer: WireWriter, policy: Readonly<WirePolicy>): void {
  const start = writer.begin(3);
  writer.int32(1, policy.unit);
  writer.uint32(2, policy.requestsPerUnit);
  writer.bool(3, policy.unlimited);
  writer.string(4, policy.name);
  for (const replaced of policy.replaces) {
    const item = writer.begin(5);
    writer.string(1, replaced.name);
    writer.end(item);
  }
  writer.end(start);
}

function readReplaces(reader: WireReader): { name: string } {
  let name = "";
  for (const tag of reader.message("RateLimitReplace")) {
    if (tag === (1 << 3 | LENGTH)) name = reader.string();
    else reader.skip();
  }
  return { name };
}
