import { unitMultiplier } from "./limit.ts";
import type { RateLimit } from "./rules.ts";

/** A limit in a few words, such as `5 per MINUTE` or `5 per 2 MINUTES`. */
export function limitText(
  { unlimited, unit, requestsPerUnit, windowSeconds }: Pick<
    RateLimit,
    "unlimited" | "unit" | "requestsPerUnit" | "windowSeconds"
  >,
): string {
  if (unlimited) return "unlimited";
  const multiplier = unitMultiplier(unit, windowSeconds);
  return `${requestsPerUnit} per ${multiplier === 1 ? "" : `${multiplier} `}${unit ?? "UNKNOWN"}${
    multiplier === 1 ? "" : "S"
  }`;
}
