import type { Policy } from "../../src/ratelimit/policy.ts";

/** How decisions are made with the defaults of the settings. */
export const DEFAULT_POLICY: Policy = {
  cacheKeyPrefix: "",
  expirationJitterMaxSeconds: 300,
  nearLimitRatio: 0.8,
  shadowMode: false,
  quotaMode: false,
  stopIncrementWhenOverLimit: false,
  onCacheFailure: "error",
  responseHeaders: undefined,
  dynamicMetadata: false,
};
