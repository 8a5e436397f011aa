import type { Entry } from "./request.ts";
import type { RateLimit } from "./rules.ts";

/**
 * Name of the counter: prefix, domain, every key and value, and the start of the window, joined by
 * `_` and not escaped, so that the counters can be shared with the best-known implementation.
 * A level that shares its threshold stands with its pattern instead of the value.
 */
export function cacheKey(
  prefix: string,
  domain: string,
  entries: readonly Entry[],
  limit: RateLimit,
  windowStart: number,
): string {
  let key = `${prefix}${domain}_`;
  const rule = limit.rule;
  if (rule === undefined || !rule.shares) {
    for (const entry of entries) key += `${entry.key}_${entry.value}_`;
    return `${key}${windowStart}`;
  }
  for (const [index, entry] of entries.entries()) {
    const level = rule.path[index];
    const value = level?.shareThreshold === true ? level.value : entry.value;
    key += `${entry.key}_${value}_`;
  }
  return `${key}${windowStart}`;
}
