import type { CacheFailureMode } from "../rule_source.ts";

/** The settings of decisions, in addition to the rules. */
export interface Policy {
  readonly cacheKeyPrefix: string;
  /** Maximum random addition to the expiry of counters. */
  readonly expirationJitterMaxSeconds: number;
  /** The share of a limit above which hits are near it, 0 to 1. */
  readonly nearLimitRatio: number;
  readonly shadowMode: boolean;
  /** True if a call is over its limit only when all descriptors are. */
  readonly quotaMode: boolean;
  /** True if limits of requests per month or year have the windows of the calendar in UTC. */
  readonly calendarMonths: boolean;
  /** True if descriptors are not counted if another one of the call is over its limit. */
  readonly stopIncrementWhenOverLimit: boolean;
  /** The default of rules without a mode. */
  readonly onCacheFailure: CacheFailureMode;
  readonly responseHeaders: Readonly<Record<"limit" | "remaining" | "reset", string>> | undefined;
  /**
   * Names of headers without the unit, for each unit and in place of `responseHeaders`. `RateLimit` and
   * `RateLimit-Policy` then list all limits.
   */
  readonly unitHeaders: Readonly<Record<"limit" | "remaining", string>> | undefined;
  /** True if responses have `RateLimit` and `RateLimit-Policy`. */
  readonly standardHeaders: boolean;
  readonly dynamicMetadata: boolean;
  /** Keys whose values are in metric keys of limits that come with requests; undefined for all. */
  readonly requestLimitValues: ReadonlySet<string> | undefined;
}

/** The defaults, without jitter. */
export const PLAIN_POLICY: Policy = {
  cacheKeyPrefix: "",
  expirationJitterMaxSeconds: 0,
  nearLimitRatio: 0.8,
  shadowMode: false,
  quotaMode: false,
  calendarMonths: false,
  stopIncrementWhenOverLimit: false,
  onCacheFailure: "error",
  responseHeaders: undefined,
  unitHeaders: undefined,
  standardHeaders: false,
  dynamicMetadata: false,
  requestLimitValues: undefined,
};

/** True if responses have headers. */
export function hasHeaders({ responseHeaders, unitHeaders, standardHeaders }: Policy): boolean {
  return standardHeaders || responseHeaders !== undefined || unitHeaders !== undefined;
}
