import type { Position } from "../base/problem.ts";
import type { RuleEvents } from "./rule_events.ts";
import type { Unit } from "./units.ts";

/** The algorithm that limits the hits of a rule. */
export const ALGORITHMS = ["fixed_window", "sliding_window", "token_bucket", "concurrency"] as const;

/** The name of an algorithm in rule files. */
export type Algorithm = typeof ALGORITHMS[number];

/** The answer to a descriptor while the cache fails. */
export const CACHE_FAILURE_MODES = ["error", "allow", "deny", "local"] as const;

/** `error` fails the call, `allow` and `deny` decide without a count, `local` counts in this instance only. */
export type CacheFailureMode = typeof CACHE_FAILURE_MODES[number];

/** A JSON value. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;
/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** The algorithm of a limit that is not a fixed window. */
export type AlgorithmSource =
  & { readonly at: Position }
  & (
    | { readonly name: "sliding_window" }
    | { readonly name: "token_bucket"; readonly burst: number }
    | { readonly name: "concurrency"; readonly leaseSeconds: number }
  );

/** The `rate_limit` block of a rule, with valid types. */
export interface RateLimitSource {
  readonly at: Position;
  /** Such as `descriptors[0].rate_limit`. */
  readonly path: string;
  readonly unlimited: boolean;
  /** Undefined only with `unlimited` and `concurrency`. */
  readonly unit: Unit | undefined;
  /** With `concurrency`, the maximum in flight. */
  readonly requestsPerUnit: number;
  readonly unitMultiplier: number;
  /** The calendar that the windows follow; undefined to use the setting, false for windows of one length. */
  readonly calendar?: { readonly timezone: string } | false | undefined;
  readonly name: string;
  /** Undefined for fixed windows. */
  readonly algorithm?: AlgorithmSource | undefined;
  readonly replaces: readonly { readonly at: Position; readonly path: string; readonly name: string }[];
  /** The windows after this one in a list `rate_limits`, without names; absent for one window. */
  readonly further?: readonly RateLimitSource[] | undefined;
}

/** Several values of a rule: those of a list, or those in which an expression of RE2 is found. */
export type ValueMatch = { readonly in: readonly string[] } | { readonly regex: string };

/** One rule of a source, with valid types, apart from its place and its limit. */
export interface RuleSource {
  readonly key: string;
  /** Empty for any value, and with `match`. */
  readonly value: string;
  readonly match?: ValueMatch | undefined;
  /** Values without a rule take the limit of the parent and its counter. */
  readonly fallback?: "parent" | undefined;
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  /** Undefined to use the policy. */
  readonly onCacheFailure: CacheFailureMode | undefined;
  readonly detailedMetric: boolean;
  readonly valueToMetric: boolean;
  readonly shareThreshold: boolean;
  /** The value of the entry names a hit that is in flight, and is no part of its counter. */
  readonly identifies: boolean;
  readonly metadata: JsonObject | undefined;
  readonly events?: RuleEvents | undefined;
}

/** One rule of a source and the rules below it. */
export interface DescriptorSource extends RuleSource {
  readonly at: Position;
  /** Such as `descriptors[0].descriptors[2]`. */
  readonly path: string;
  readonly rateLimit: RateLimitSource | undefined;
  readonly descriptors: readonly DescriptorSource[];
}

/** The rules of one domain in one file or resource. */
export interface DomainSource {
  readonly at: Position;
  readonly domain: string;
  readonly descriptors: readonly DescriptorSource[];
}
