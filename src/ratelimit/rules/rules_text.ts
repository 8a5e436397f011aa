import { unitMultiplier } from "../units.ts";
import type { ConditionalRule, RateLimit, Rules } from "./rules.ts";

/** All windows of a limit in short, such as `5 per SECOND and 60 per MINUTE`. */
export function windowsText(limit: RateLimit): string {
  return (limit.windows?.limits ?? [limit]).map(limitText).join(" and ");
}

/** A limit in short, such as `5 per MINUTE`, `5 per 2 MINUTES` or `20 in flight`. */
export function limitText(
  { unlimited, unit, requestsPerUnit, windowSeconds, calendar, conditional }: Pick<
    RateLimit,
    "unlimited" | "unit" | "requestsPerUnit" | "windowSeconds" | "calendar" | "conditional"
  >,
): string {
  if (unlimited) return "unlimited";
  if (conditional?.algorithm === "concurrency") {
    return `${requestsPerUnit} in flight${conditional.limit.kind === "leases" ? ", identified" : ""}`;
  }
  const multiplier = calendar?.multiplier ?? unitMultiplier(unit, windowSeconds);
  const name = unit ?? "UNKNOWN";
  const algorithm = conditional === undefined ? "" : `, ${algorithmText(conditional)}`;
  const zone = calendar === undefined ? "" : `, calendar of ${calendar.timezone}`;
  return `${requestsPerUnit} per ${multiplier === 1 ? name : `${multiplier} ${name}S`}${zone}${algorithm}`;
}

function algorithmText({ algorithm, capacity }: ConditionalRule): string {
  return algorithm === "token_bucket" ? `token bucket of ${capacity}` : algorithm.replace("_", " ");
}

/** Every limit and every window on its own sorted line, after the version, in which control characters are replaced. */
export function rulesText(rules: Rules | undefined, version = ""): string {
  const lines = (rules?.limits ?? []).flatMap((limit) => limit.windows?.limits ?? [limit]).map(ruleText)
    .sort().join("");
  return version === "" ? lines : `# version: ${version.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, "?")}\n${lines}`;
}

function ruleText(limit: RateLimit): string {
  const { unit, requestsPerUnit, windowSeconds, calendar, shadowMode, quotaMode, onCacheFailure, rule } =
    limit;
  const { conditional } = limit;
  const multiplier = calendar?.multiplier ?? unitMultiplier(unit, windowSeconds);
  return `${rule?.fullKey ?? ""}: unit=${unit ?? "UNKNOWN"} requests_per_unit=${requestsPerUnit}, ` +
    `shadow_mode: ${shadowMode}, quota_mode: ${quotaMode}` +
    (multiplier === 1 ? "" : `, unit_multiplier: ${multiplier}`) +
    (calendar === undefined ? "" : `, calendar: true, timezone: ${calendar.timezone}`) +
    (conditional === undefined ? "" : `, algorithm: ${conditional.algorithm}`) +
    (conditional?.algorithm === "token_bucket" ? `, burst: ${conditional.capacity}` : "") +
    (conditional?.algorithm === "concurrency" ? `, lease: ${windowSeconds}s` : "") +
    (conditional?.limit.kind === "leases" ? ", identifies: true" : "") +
    (onCacheFailure === undefined ? "" : `, on_cache_failure: ${onCacheFailure}`) + "\n";
}
