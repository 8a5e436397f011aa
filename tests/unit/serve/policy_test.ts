import { assertEquals } from "#assert";
import type { Policy } from "../../../src/ratelimit/decision/policy.ts";
import { policyOf } from "../../../src/serve/decisions.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";

const HEADERS = { limit: "RateLimit-Limit", remaining: "RateLimit-Remaining", reset: "RateLimit-Reset" };
const ON = { LIMIT_RESPONSE_HEADERS_ENABLED: "true" };

/** Settings, and what of the policy differs by them. */
const CASES: readonly (readonly [env: Readonly<Record<string, string>>, policy: Partial<Policy>])[] = [
  [{ CACHE_KEY_PREFIX: "edge:" }, { cacheKeyPrefix: "edge:" }],
  [{ EXPIRATION_JITTER_MAX_SECONDS: "7" }, { expirationJitterMaxSeconds: 7 }],
  [{ NEAR_LIMIT_RATIO: "0.5" }, { nearLimitRatio: 0.5 }],
  [{ SHADOW_MODE: "true" }, { shadowMode: true }],
  [{ QUOTA_MODE: "true" }, { quotaMode: true }],
  [{ USE_CALENDAR_MONTH_RATE_LIMIT: "true" }, { calendarMonths: true }],
  [{ STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: "true" }, { stopIncrementWhenOverLimit: true }],
  [{ CACHE_ON_FAILURE: "local" }, { onCacheFailure: "local" }],
  [{ LIMIT_LIMIT_HEADER: "x-most" }, {}],
  [ON, { responseHeaders: HEADERS }],
  [{ ...ON, LIMIT_LIMIT_HEADER: "x-most" }, { responseHeaders: { ...HEADERS, limit: "x-most" } }],
  [{ ...ON, LIMIT_REMAINING_HEADER: "x-left" }, { responseHeaders: { ...HEADERS, remaining: "x-left" } }],
  [{ ...ON, LIMIT_RESET_HEADER: "x-anew" }, { responseHeaders: { ...HEADERS, reset: "x-anew" } }],
  [{ LIMIT_ALL_DESCRIPTORS_HEADERS_ENABLED: "true" }, {
    unitHeaders: { limit: "ratelimit-limit", remaining: "ratelimit-remaining" },
  }],
  [{ LIMIT_ALL_DESCRIPTORS_HEADERS_ENABLED: "true", LIMIT_LIMIT_HEADER: "X-Most" }, {
    unitHeaders: { limit: "x-most", remaining: "ratelimit-remaining" },
  }],
  [{ LIMIT_STANDARD_HEADERS_ENABLED: "true" }, { standardHeaders: true }],
  [{ STATS_REQUEST_LIMIT_VALUES: "none" }, { requestLimitValues: new Set() }],
  [{ STATS_REQUEST_LIMIT_VALUES: "path,user" }, { requestLimitValues: new Set(["path", "user"]) }],
  [{ RESPONSE_DYNAMIC_METADATA: "true" }, { dynamicMetadata: true }],
];

for (const [env, policy] of CASES) {
  Deno.test(`policy: ${JSON.stringify(env)}`, () => {
    const policyWith = (more: Readonly<Record<string, string>>) =>
      policyOf(readSettings({ BACKEND_TYPE: "memory", ...more }).settings);
    assertEquals(policyWith(env), { ...policyWith({}), ...policy });
  });
}
