import type { RateLimit } from "../ratelimit/rules/rules.ts";

/** The limit of a quota. */
export type QuotaLimit =
  /** Everything passes; in shadow mode, what is above a rate is counted. */
  | { readonly kind: "allow"; readonly shadowPerSecond: number | undefined }
  | { readonly kind: "deny" }
  | RateQuota
  /** Requests in flight cannot be limited by those that count requests. */
  | { readonly kind: "impossible" };

/** A rate, and the most requests that pass together after a pause. */
interface RateQuota {
  readonly kind: "rate";
  readonly perSecond: number;
  readonly burst: number;
  /** True for a limit per second. */
  readonly isPerSecond: boolean;
}

/** The limit of a rule as a quota; `shadowMode` is that of all rules. Of several windows, the lowest rate and burst hold in all. */
export function quotaLimit(limit: RateLimit | undefined, shadowMode = false): QuotaLimit {
  if (limit === undefined || limit.unlimited) return { kind: "allow", shadowPerSecond: undefined };
  const windows = limit.windows?.limits ?? [limit];
  const isConcurrency = limit.conditional?.algorithm === "concurrency";
  const perSecond = Math.min(...windows.map((window) => window.requestsPerUnit / window.windowSeconds));
  if (limit.shadowMode || shadowMode) {
    return { kind: "allow", shadowPerSecond: isConcurrency ? undefined : perSecond };
  }
  if (isConcurrency) return { kind: "impossible" };
  if (perSecond === 0) return { kind: "deny" };
  const burst = Math.min(
    ...windows.map(({ conditional, requestsPerUnit }) => conditional?.capacity ?? requestsPerUnit),
  );
  return { kind: "rate", perSecond, burst, isPerSecond: windows.every(({ unit }) => unit === "SECOND") };
}
