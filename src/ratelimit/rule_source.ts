import type { Position } from "../base/problem.ts";
import type { CacheFailureMode } from "./cache_failure_mode.ts";
import type { Unit } from "./limit.ts";

/** A value as JSON knows it; rule metadata is made of these. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
/** A mapping of JSON values. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** The `rate_limit` block of a rule, its types already checked. */
export interface RateLimitSource {
  readonly at: Position;
  /** Path of the field, such as `descriptors[0].rate_limit`. */
  readonly path: string;
  readonly unlimited: boolean;
  /** Absent only with `unlimited`. */
  readonly unit: Unit | undefined;
  /** 0 with `unlimited` when nothing was written. */
  readonly requestsPerUnit: number;
  /** How many units make a window, at least 1. */
  readonly unitMultiplier: number;
  readonly name: string;
  readonly replaces: readonly { readonly at: Position; readonly path: string; readonly name: string }[];
}

/** One rule as its source writes it, its types already checked. */
export interface DescriptorSource {
  readonly at: Position;
  /** Path of the field, such as `descriptors[0].descriptors[2]`. */
  readonly path: string;
  readonly key: string;
  /** Empty where the rule has no value. */
  readonly value: string;
  readonly rateLimit: RateLimitSource | undefined;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  /** Absent where the rule leaves it to the policy. */
  readonly onCacheFailure: CacheFailureMode | undefined;
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  readonly shareThreshold: boolean;
  readonly metadata: JsonObject | undefined;
  readonly descriptors: readonly DescriptorSource[];
}

/** All rules of one domain from one file or one resource. */
export interface DomainSource {
  readonly at: Position;
  readonly domain: string;
  readonly descriptors: readonly DescriptorSource[];
}
