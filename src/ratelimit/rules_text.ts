import { unitMultiplier } from "./limit.ts";
import type { RateLimit, Rules } from "./rules.ts";

/** A limit in short, such as `5 per MINUTE` or `5 per 2 MINUTES`. */
export function limitText(
  { unlimited, unit, requestsPerUnit, windowSeconds }: Pick<
    RateLimit,
    "unlimited" | "unit" | "requestsPerUnit" | "windowSeconds"
  >,
): string {
  if (unlimited) return "unlimited";
  const multiplier = unitMultiplier(unit, windowSeconds);
  const name = unit ?? "UNKNOWN";
  return `${requestsPerUnit} per ${multiplier === 1 ? name : `${multiplier} ${name}S`}`;
}

/** Every limit on its own sorted line, after the version, in which control characters are replaced. */
export function rulesText(rules: Rules | undefined, version = ""): string {
  const lines = (rules?.limits ?? []).map(ruleText).sort().join("");
  return version === "" ? lines : `# version: ${version.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, "?")}\n${lines}`;
}

function ruleText(limit: RateLimit): string {
  const { unit, requestsPerUnit, windowSeconds, shadowMode, quotaMode, onCacheFailure, rule } = limit;
  const multiplier = unitMultiplier(unit, windowSeconds);
  return `${rule?.fullKey ?? ""}: unit=${unit ?? "UNKNOWN"} requests_per_unit=${requestsPerUnit}, ` +
    `shadow_mode: ${shadowMode}, quota_mode: ${quotaMode}` +
    (multiplier === 1 ? "" : `, unit_multiplier: ${multiplier}`) +
    (onCacheFailure === undefined ? "" : `, on_cache_failure: ${onCacheFailure}`) + "\n";
}
