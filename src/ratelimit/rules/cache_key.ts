import type { Entry } from "../request.ts";
import type { CounterName, RateLimit, RuleLevel } from "./rules.ts";
import { sharedText } from "./value_match.ts";

const NOTHING_VARIES: readonly number[] = [];

/**
 * The counter name of a rule: domain, keys and values, each followed by `_`; a shared level has a constant text as value,
 * and one that identifies has none. With a tag it is in braces: in a cluster, keys that differ only after it are on one node.
 */
export function counterName(domain: string, path: readonly RuleLevel[], hasTag: boolean): CounterName {
  const texts: string[] = [];
  const varying: number[] = [];
  // Joined once: concatenated strings take more memory.
  let text = [hasTag ? "{" : "", domain, "_"];
  for (const [index, level] of path.entries()) {
    const { key, value, match, shareThreshold } = level;
    if (level.identifies) {
      text.push(key, "_");
      continue;
    }
    if (shareThreshold || hasOneValue(level)) {
      text.push(key, "_", match === undefined ? value : sharedText(domain, path.slice(0, index + 1)), "_");
      continue;
    }
    texts.push([...text, key, "_"].join(""));
    varying.push(index);
    text = ["_"];
  }
  const last = text.join("");
  const end = hasTag ? `${last.slice(0, -1)}}_` : last;
  // A list that grew has room for more: most names have one text.
  return texts.length === 0
    ? { texts: [end], varying: NOTHING_VARIES }
    : { texts: texts.concat(end), varying: varying.slice() };
}

/** True if a level is for the one value that is written. */
export function hasOneValue({ value, pattern, match }: RuleLevel): boolean {
  return value !== "" && pattern === undefined && match === undefined;
}

/** Seconds since the epoch at which the window of a cache key begins; not a number if the key has no such window. */
export function windowStartOf(key: string): number {
  return Number(key.slice(key.lastIndexOf("_") + 1));
}

/** Prefix, domain, keys, values and start of the window or the end of another algorithm, joined by `_` and not escaped, for compatibility. */
export function cacheKey(
  prefix: string,
  domain: string,
  entries: readonly Entry[],
  limit: RateLimit,
  windowStart: number | string,
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
  // Joining the short texts first is cheaper.
  return key + ((texts[last] ?? "") + windowStart);
}
