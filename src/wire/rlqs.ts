import { WireReader } from "./reader.ts";
import { LENGTH, VARINT, WireError } from "./wire_format.ts";
import { WireWriter } from "./writer.ts";

/** The path of the method. */
export const QUOTA_PATH = "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas";

/** A `RateLimitQuotaUsageReports.BucketQuotaUsage`. */
interface WireBucketUsage {
  /** The bytes of its `BucketId`; a view of the message. Empty if the usage is not valid. */
  readonly id: Uint8Array;
  /** 2^53 + 2 for everything above 2^53, like `denied`. */
  readonly allowed: number;
  readonly denied: number;
  readonly elapsedSeconds: number;
}

/** A `RateLimitQuotaUsageReports`. */
interface WireQuotaReport {
  readonly domain: string;
  /** Read one at a time, since a report may have many. */
  readonly usages: Iterable<WireBucketUsage>;
}

/** A `RateLimitStrategy`. */
export type WireStrategy =
  | { readonly kind: "allow_all" | "deny_all" }
  | {
    readonly kind: "token_bucket";
    readonly maxTokens: number;
    readonly tokensPerFill: number;
    readonly fillSeconds: number;
    readonly fillNanos: number;
  };

/** A `QuotaAssignmentAction`. */
interface WireQuotaAssignment {
  readonly timeToLiveSeconds: number;
  readonly strategy: WireStrategy;
}

/** A pair of a bucket. */
interface WirePair {
  readonly key: string;
  readonly value: string;
}

const NO_BYTES = new Uint8Array(0);
const INVALID: WireBucketUsage = { id: NO_BYTES, allowed: 0, denied: 0, elapsedSeconds: 0 };
const DENY_ALL = 1;
const NAMES = {
  report: "RateLimitQuotaUsageReports",
  usage: "BucketQuotaUsage",
  duration: "Duration",
  id: "BucketId",
  pair: "BucketId.BucketEntry",
} as const;

/** Reads a report; throws `WireError` for one that is not a message. */
export function decodeQuotaReport(message: Uint8Array): WireQuotaReport {
  const reader = new WireReader(message, NAMES.report);
  let domain = "";
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | LENGTH)) domain = reader.clientString();
    else reader.skip();
  }
  return { domain, usages: { [Symbol.iterator]: () => usagesOf(message) } };
}

function* usagesOf(message: Uint8Array): Generator<WireBucketUsage, void> {
  const reader = new WireReader(message, NAMES.report);
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (2 << 3 | LENGTH)) yield usageOf(reader.view());
    else reader.skip();
  }
}

function usageOf(message: Uint8Array): WireBucketUsage {
  let id: Uint8Array = NO_BYTES;
  let [allowed, denied, elapsedSeconds] = [0, 0, 0];
  try {
    const reader = new WireReader(message, NAMES.usage);
    for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
      if (tag === (1 << 3 | LENGTH)) id = reader.view();
      else if (tag === (2 << 3 | LENGTH)) elapsedSeconds = readSeconds(reader);
      else if (tag === (3 << 3 | VARINT)) allowed = reader.uint64();
      else if (tag === (4 << 3 | VARINT)) denied = reader.uint64();
      else reader.skip();
    }
  } catch (error) {
    if (error instanceof WireError) return INVALID;
    throw error;
  }
  return { id, allowed, denied, elapsedSeconds };
}

function readSeconds(reader: WireReader): number {
  let seconds = 0;
  reader.enter(NAMES.duration);
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | VARINT)) seconds = reader.int64();
    else reader.skip();
  }
  reader.leave();
  return seconds;
}

/** The pairs of a `BucketId`, the last one of each key; undefined if it is not a message. */
export function decodeBucketId(id: Uint8Array): readonly WirePair[] | undefined {
  const pairs = new Map<string, string>();
  try {
    const reader = new WireReader(id, NAMES.id);
    for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
      if (tag !== (1 << 3 | LENGTH)) {
        reader.skip();
        continue;
      }
      const { key, value } = readPair(reader);
      pairs.set(key, value);
    }
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
  return [...pairs].map(([key, value]) => ({ key, value }));
}

function readPair(reader: WireReader): WirePair {
  let key = "";
  let value = "";
  reader.enter(NAMES.pair);
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | LENGTH)) key = reader.repeatedClientString();
    else if (tag === (2 << 3 | LENGTH)) value = reader.clientString();
    else reader.skip();
  }
  reader.leave();
  return { key, value };
}

/** The bytes of a `QuotaAssignmentAction`. */
export function encodeQuotaAssignment(
  { timeToLiveSeconds, strategy }: WireQuotaAssignment,
): Uint8Array<ArrayBuffer> {
  const writer = new WireWriter();
  const timeToLive = writer.begin(2);
  writer.int64(1, timeToLiveSeconds);
  writer.end(timeToLive);
  const start = writer.begin(3);
  if (strategy.kind === "token_bucket") writeTokenBucket(writer, strategy);
  else writer.choiceEnum(1, strategy.kind === "deny_all" ? DENY_ALL : 0);
  writer.end(start);
  return writer.finish();
}

function writeTokenBucket(
  writer: WireWriter,
  { maxTokens, tokensPerFill, fillSeconds, fillNanos }: WireStrategy & { readonly kind: "token_bucket" },
): void {
  const bucket = writer.begin(3);
  writer.uint32(1, maxTokens);
  const tokens = writer.begin(2);
  writer.uint32(1, tokensPerFill);
  writer.end(tokens);
  const interval = writer.begin(3);
  writer.int64(1, fillSeconds);
  writer.int32(2, fillNanos);
  writer.end(interval);
  writer.end(bucket);
}

/** Writes one `RateLimitQuotaResponse`. */
export class QuotaResponseWriter {
  readonly #writer = new WireWriter();

  /** `assignment` has the bytes of a `QuotaAssignmentAction`; undefined to abandon the bucket. */
  add(id: Uint8Array, assignment: Uint8Array | undefined): void {
    const start = this.#writer.begin(1);
    this.#writer.choiceBytes(1, id);
    if (assignment === undefined) this.#writer.choiceBytes(3, NO_BYTES);
    else this.#writer.choiceBytes(2, assignment);
    this.#writer.end(start);
  }

  finish(): Uint8Array<ArrayBuffer> {
    return this.#writer.finish();
  }
}
