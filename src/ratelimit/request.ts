import type { Unit } from "./limit.ts";

/** One key and value of a descriptor. Both are case-sensitive; the value may be empty. */
export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** A limit that the request brings along; it takes the place of the rule. */
export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** Absent when the request named no unit, or one that nobody knows: the call is then invalid. */
  readonly unit: Unit | undefined;
}

/** What one decision is asked for: an ordered list of entries. */
export interface Descriptor {
  readonly entries: readonly Entry[];
  readonly limit?: LimitOverride | undefined;
  /** Wins over the hits of the request when present; 0 checks without counting. */
  readonly hitsAddend?: number | undefined;
  /** The hits are given back instead of added. */
  readonly isNegativeHits?: boolean | undefined;
}

/** A question to the service. Source: `envoy.service.ratelimit.v3.RateLimitRequest`. */
export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
  /** Hits of every descriptor that names none; 0 means 1. */
  readonly hitsAddend: number;
}
