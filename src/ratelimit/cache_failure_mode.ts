/** What may become of a descriptor that the cache did not count, as settings and rule files write it. */
export const CACHE_FAILURE_MODES = ["error", "allow", "deny", "local"] as const;

/**
 * `error` fails the whole call, `allow` and `deny` answer without a count, `local` counts in this
 * instance alone.
 */
export type CacheFailureMode = typeof CACHE_FAILURE_MODES[number];
