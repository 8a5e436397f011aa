import type { Entry } from "./request.ts";
import type { CounterName, RateLimit, RuleLevel } from "./rules.ts";

/** Shared by all rules whose counters do not depend on the request. */
const NOTHING_VARIES: readonly number[] = [];

/**
 * Names of the counters of a rule: domain, every key and value, joined and ended by `_`. A level that
 * shares its threshold stands with its pattern instead of the value.
 */
export function counterName(domain: string, path: readonly RuleLevel[]): CounterName {
  const texts: string[] = [];
  const varying: number[] = [];
  // Joined at the end: texts that are hung on to each other take more memory.
  let text = [domain, "_"];
  for (const [index, { key, value, pattern, shareThreshold }] of path.entries()) {
    if (shareThreshold || (value !== "" && pattern === undefined)) {
      text.push(key, "_", value, "_");
      continue;
    }
    texts.push([...text, key, "_"].join(""));
    varying.push(index);
    text = ["_"];
  }
  texts.push(text.join(""));
  return { texts, varying: varying.length === 0 ? NOTHING_VARIES : varying };
}

/**
 * Name of the counter: prefix, domain, every key and value, and the start of the window, joined by
 * `_` and not escaped, so that the counters can be shared with the best-known implementation.
 */
export function cacheKey(
  prefix: string,
  domain: string,
  entries: readonly Entry[],
  limit: RateLimit,
  windowStart: number,
): string {
  const { rule } = limit;
  if (rule === undefined) {
    let key = `${prefix}${domain}_`;
    for (const entry of entries) key += `${entry.key}_${entry.value}_`;
    return key + windowStart;
  }
  const { texts, varying } = rule.counterName;
  const last = varying.length;
  let key = prefix;
  for (let index = 0; index < last; index++) {
    key += (texts[index] ?? "") + (entries[varying[index] ?? -1]?.value ?? "");
  }
  // The end is put together first: short texts are cheaper to join than to hang on to a long one.
  return key + ((texts[last] ?? "") + windowStart);
}
