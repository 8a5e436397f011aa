import type { CacheFailureMode } from "./cache_failure_mode.ts";

/** How decisions are made, beside the rules: the settings of the whole service. */
export interface Policy {
  /** Stands before every cache key. */
  readonly cacheKeyPrefix: string;
  /** Counters are kept up to this many seconds longer than their window; 0 switches that off. */
  readonly expirationJitterMaxSeconds: number;
  /** Share of a limit from which hits count as near it, 0 to 1. */
  readonly nearLimitRatio: number;
  /** The overall code of every call is OK. */
  readonly shadowMode: boolean;
  /** Every descriptor is one of a quota: the call is over only when all of them are. */
  readonly quotaMode: boolean;
  /** When one descriptor of a call is over its limit, the others are not counted. */
  readonly stopIncrementWhenOverLimit: boolean;
  /** What becomes of descriptors that the cache did not count, where their rule names nothing else. */
  readonly onCacheFailure: CacheFailureMode;
  /** Names of the headers that tell the limit to the caller; absent when they are not sent. */
  readonly responseHeaders: HeaderNames | undefined;
  /** Answers carry what was asked and the metadata of the rules that let it pass. */
  readonly dynamicMetadata: boolean;
}

/** How decisions are made where no setting says otherwise, and with no jitter, so that they are always the same. */
export const PLAIN_POLICY: Policy = {
  cacheKeyPrefix: "",
  expirationJitterMaxSeconds: 0,
  nearLimitRatio: 0.8,
  shadowMode: false,
  quotaMode: false,
  stopIncrementWhenOverLimit: false,
  onCacheFailure: "error",
  responseHeaders: undefined,
  dynamicMetadata: false,
};

/** Names of the three headers that tell of a limit. */
export interface HeaderNames {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}
