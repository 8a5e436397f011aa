import type { RateLimit, Rules } from "./rules.ts";
import { unitMultiplier } from "./limit.ts";

/**
 * Every limit of the rules as a line, sorted; empty without rules. A version stands before them, as far as
 * it can be shown on one line: its text is a peer's.
 */
export function rulesText(rules: Rules | undefined, version = ""): string {
  const lines = (rules?.limits ?? []).map(limitText).sort().join("");
  return version === "" ? lines : `# version: ${version.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, "?")}\n${lines}`;
}

function limitText(limit: RateLimit): string {
  const { unit, requestsPerUnit, windowSeconds, shadowMode, quotaMode, onCacheFailure, rule } = limit;
  const multiplier = unitMultiplier(unit, windowSeconds);
  return `${rule?.fullKey ?? ""}: unit=${unit ?? "UNKNOWN"} requests_per_unit=${requestsPerUnit}, ` +
    `shadow_mode: ${shadowMode}, quota_mode: ${quotaMode}` +
    (multiplier === 1 ? "" : `, unit_multiplier: ${multiplier}`) +
    (onCacheFailure === undefined ? "" : `, on_cache_failure: ${onCacheFailure}`) + "\n";
}
