import { shownText } from "../base/byte_text.ts";
import type { Unit } from "./units.ts";

/** One key and value of a descriptor, both case-sensitive; the value may be empty. */
export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** An entry for people. */
export function shownEntry({ key, value }: Entry): Entry {
  return { key: shownText(key), value: shownText(value) };
}

/** A limit in the request, which takes precedence over the rule. */
export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** Undefined for an unknown unit: the request is invalid. */
  readonly unit: Unit | undefined;
  /** Units per window; 1 when absent. */
  readonly unitMultiplier?: number | undefined;
}

/** An ordered list of entries to decide on. */
export interface Descriptor {
  readonly entries: readonly Entry[];
  readonly limit?: LimitOverride | undefined;
  /** Takes precedence over the hits of the request; 0 checks without counting, and more than 2^53 count as 2^53. */
  readonly hitsAddend?: number | undefined;
  readonly isNegativeHits?: boolean | undefined;
}

/** `envoy.service.ratelimit.v3.RateLimitRequest`. */
export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
  /** Default hits of the descriptors; 0 means 1. */
  readonly hitsAddend: number;
}

/** Parses comma-separated key=value pairs, whose values may contain further equals signs; returns a message for an invalid list. */
export function parseDescriptorText(list: string): Entry[] | string {
  const entries: Entry[] = [];
  for (const pair of list.split(",")) {
    const sign = pair.indexOf("=");
    if (sign < 0) return `"${pair}" has no equals sign: expected key=value`;
    entries.push({ key: pair.slice(0, sign), value: pair.slice(sign + 1) });
  }
  return entries;
}
