import { LOCAL_CACHE_METRICS } from "../cache/metrics.ts";
import { OverLimitCache } from "../cache/over_limit_cache.ts";
import type { OpenCache } from "./cache.ts";
import { LiveCounters } from "../ratelimit/forecast/live_counters.ts";
import type { Policy } from "../ratelimit/decision/policy.ts";
import { RateLimitService } from "../ratelimit/decision/service.ts";
import type { ServiceParts } from "./parts.ts";
import type { Settings } from "../settings/table.ts";

/** The policy of the settings. */
export function policyOf(settings: Settings): Policy {
  return {
    cacheKeyPrefix: settings.CACHE_KEY_PREFIX,
    expirationJitterMaxSeconds: settings.EXPIRATION_JITTER_MAX_SECONDS,
    nearLimitRatio: settings.NEAR_LIMIT_RATIO,
    shadowMode: settings.SHADOW_MODE,
    quotaMode: settings.QUOTA_MODE,
    calendarMonths: settings.USE_CALENDAR_MONTH_RATE_LIMIT,
    stopIncrementWhenOverLimit: settings.STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT,
    onCacheFailure: settings.CACHE_ON_FAILURE,
    responseHeaders: settings.LIMIT_RESPONSE_HEADERS_ENABLED
      ? {
        limit: settings.LIMIT_LIMIT_HEADER,
        remaining: settings.LIMIT_REMAINING_HEADER,
        reset: settings.LIMIT_RESET_HEADER,
      }
      : undefined,
    unitHeaders: settings.LIMIT_ALL_DESCRIPTORS_HEADERS_ENABLED
      ? {
        limit: settings.LIMIT_LIMIT_HEADER.toLowerCase(),
        remaining: settings.LIMIT_REMAINING_HEADER.toLowerCase(),
      }
      : undefined,
    standardHeaders: settings.LIMIT_STANDARD_HEADERS_ENABLED,
    dynamicMetadata: settings.RESPONSE_DYNAMIC_METADATA,
    requestLimitValues: settings.STATS_REQUEST_LIMIT_VALUES,
  };
}

/** The service that decides. */
export interface OpenService {
  readonly service: RateLimitService;
  /** Removes keys from the local cache of this thread. */
  readonly forget: (keys: readonly string[]) => void;
}

/** Opens the service that decides, over this cache. */
export function openService(
  { settings, clock, random, stats, limitEvents }: ServiceParts,
  { cache, fallback }: Pick<OpenCache, "cache" | "fallback">,
): OpenService {
  const bytes = settings.LOCAL_CACHE_SIZE_IN_BYTES;
  const localCache = bytes > 0 ? new OverLimitCache(bytes) : undefined;
  if (localCache !== undefined) stats.addMetrics(LOCAL_CACHE_METRICS, localCache.metrics);
  const policy = policyOf(settings);
  const service = new RateLimitService({
    cache,
    fallback,
    localCache,
    stats,
    policy,
    clock,
    random,
    limitEvents,
  });
  const forget = (keys: readonly string[]) => {
    for (const key of keys) localCache?.forget(key);
  };
  return { service, forget };
}

/** Opens the counters of this service for administrators; `forget` removes keys from the local caches of all threads. */
export function openCounters(
  { settings, clock }: ServiceParts,
  { cache, service }: { readonly cache: OpenCache; readonly service: RateLimitService },
  forget: (keys: readonly string[]) => Promise<void>,
): LiveCounters {
  const rules = () => service.rules;
  const { cache: counters, fallback } = cache;
  return new LiveCounters({ rules, cache: counters, fallback, forget, policy: policyOf(settings), clock });
}
