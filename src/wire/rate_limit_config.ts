import {
  boolField,
  integerField,
  listField,
  Message,
  messageField,
  stringField,
  structField,
} from "./message.ts";
import type { WireStruct } from "./struct.ts";

/** A `ratelimit.config.ratelimit.v3.RateLimitPolicy`. */
export interface WirePolicy {
  /** A number of `ratelimit.config.ratelimit.v3.RateLimitUnit`, or an unknown one. */
  unit: number;
  requestsPerUnit: number;
  unlimited: boolean;
  name: string;
  readonly replaces: readonly { readonly name: string }[];
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

const REPLACES = new Message<{ readonly name: string }>("RateLimitReplace", { name: stringField(1) });
const POLICY = new Message<WirePolicy>("RateLimitPolicy", {
  unit: integerField(1, "int32"),
  requestsPerUnit: integerField(2, "uint32"),
  unlimited: boolField(3),
  name: stringField(4),
  replaces: listField(5, () => REPLACES),
});
const RULE: Message<WireRule> = new Message<WireRule>("RateLimitDescriptor", {
  key: stringField(1),
  value: stringField(2),
  rateLimit: messageField(3, POLICY),
  descriptors: listField(4, () => RULE),
  shadowMode: boolField(5),
  detailedMetric: boolField(6),
  quotaMode: boolField(7),
  metadata: structField(8),
});

/** Reads and writes configurations. */
export const RATE_LIMIT_CONFIG = new Message<WireRateLimitConfig>("RateLimitConfig", {
  name: stringField(1),
  domain: stringField(2),
  descriptors: listField(3, () => RULE),
});
