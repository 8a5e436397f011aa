import type { CacheFailureMode } from "./cache_failure_mode.ts";
import type { Unit } from "./limit.ts";

/** A value as JSON knows it; rule metadata is made of these. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
/** A mapping of JSON values. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/**
 * Where something stands in its source, ready to print: `file:line:column` for files,
 * `resource "name"` for a configuration server.
 */
export type Position = string;

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

/** Something wrong, or doubtful, in a configuration. Its text begins with the position. */
export interface Problem {
  readonly severity: "error" | "warning";
  readonly at: Position;
  /** Path of the field; empty for the whole document. */
  readonly path: string;
  readonly text: string;
}

/** The problem as one line: position, path of the field, text. */
export function problemText(problem: Problem): string {
  return [problem.at, problem.path, problem.text].filter((part) => part !== "").join(": ");
}
