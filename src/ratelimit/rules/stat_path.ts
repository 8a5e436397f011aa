import type { RateLimit, RuleLevel } from "./rules.ts";
import type { Entry } from "../request.ts";
import { hasOneValue } from "./cache_key.ts";

/**
 * The metric key: the domain, then each key with the value that the rule selects. Without a rule, those of
 * `requestLimitValues` have their value; all if it is undefined.
 */
export function metricKey(
  limit: RateLimit,
  domain: string,
  entries: readonly Entry[],
  requestLimitValues?: ReadonlySet<string>,
): string {
  const { rule } = limit;
  if (rule === undefined) return overrideMetricKey(domain, entries, requestLimitValues);
  if (rule.metricKey !== undefined) return rule.metricKey;
  let text = domain;
  for (const [index, level] of rule.path.entries()) {
    const value = entries[index]?.value ?? "";
    text += rule.detailedMetric ? detailedPart(level, value, rule.shares) : plainPart(level, value);
  }
  return text;
}

/** The metric key of a rule; undefined if it depends on the request. */
export function staticMetricKey(
  domain: string,
  path: readonly RuleLevel[],
  detailedMetric: boolean,
): string | undefined {
  let text = domain;
  for (const level of path) {
    if (dependsOnRequest(level, detailedMetric)) return undefined;
    text += detailedMetric ? detailedPart(level, level.value, true) : plainPart(level, "");
  }
  return text;
}

function dependsOnRequest(level: RuleLevel, detailedMetric: boolean): boolean {
  const isConstant = hasOneValue(level) || level.shareThreshold || level.identifies;
  return !isConstant && (detailedMetric || level.valueToMetric);
}

/** One level of a rule without a detailed metric. */
function plainPart(level: RuleLevel, value: string): string {
  if (level.shareThreshold) return part(level.key, level.valueToMetric ? sharedPart(level) : level.value);
  if (level.value !== "" && (hasOneValue(level) || !level.valueToMetric)) {
    return part(level.key, level.value);
  }
  return part(level.key, level.valueToMetric ? value : "");
}

/** One level of a rule with a detailed metric. */
function detailedPart(level: RuleLevel, value: string, someLevelShares: boolean): string {
  if (level.shareThreshold) return part(level.key, sharedPart(level));
  if (level.identifies) return part(level.key, "");
  return someLevelShares ? part(level.key, value) : `.${level.key}_${value}`;
}

function overrideMetricKey(
  domain: string,
  entries: readonly Entry[],
  withValue: ReadonlySet<string> | undefined,
): string {
  let text = domain;
  for (const { key, value } of entries) {
    text += part(key, withValue === undefined || withValue.has(key) ? value : "");
  }
  return text;
}

function part(key: string, value: string): string {
  return value === "" ? `.${key}` : `.${key}_${value}`;
}

/** The text before the `*` of a pattern, or all of the text of several values. */
function sharedPart({ value, match }: RuleLevel): string {
  return match === undefined ? value.slice(0, value.indexOf("*")) : value;
}
