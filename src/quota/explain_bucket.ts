import type { CacheFailureMode } from "../ratelimit/rule_source.ts";
import { type Entry, shownEntry } from "../ratelimit/request.ts";
import { matchBucket } from "../ratelimit/rules/match_bucket.ts";
import type { Rules } from "../ratelimit/rules/rules.ts";
import { type QuotaLimit, quotaLimit } from "./quota_limit.ts";

/** The quota of a bucket and its source; serializable as JSON. */
export interface ExplainedBucket {
  /** In the order of the path of the rule, if one matches. */
  readonly pairs: readonly Entry[];
  /** Absent if no rule matches. */
  readonly rule?: BucketRule;
  readonly quota: QuotaLimit;
  readonly why: string;
}

/** The rule of a bucket. */
interface BucketRule {
  /** The full key. */
  readonly name: string;
  readonly file: string;
  readonly line: number;
  /** Absent if the setting decides. */
  readonly onCacheFailure?: CacheFailureMode;
}

/** Explains the quota of a bucket by the rules alone; `shadowMode` is that of all rules. */
export function explainBucket(
  rules: Rules,
  { domain, pairs, shadowMode }: {
    readonly domain: string;
    readonly pairs: readonly Entry[];
    readonly shadowMode: boolean;
  },
): ExplainedBucket {
  const table = rules.domains.get(domain);
  const match = table === undefined ? undefined : matchBucket(table, pairs);
  const quota = quotaLimit(match?.limit, shadowMode);
  const { rule, unlimited = false, onCacheFailure } = match?.limit ?? {};
  if (match === undefined || rule === undefined) {
    const why = table === undefined ? "unknown domain" : "no rule matches all pairs";
    return { pairs: pairs.map(shownEntry), quota, why };
  }
  const { fullKey: name, file, line } = rule;
  return {
    pairs: match.entries.map(shownEntry),
    rule: onCacheFailure === undefined ? { name, file, line } : { name, file, line, onCacheFailure },
    quota,
    why: unlimited
      ? "its rule is unlimited"
      : quota.kind === "allow" && !match.limit.shadowMode
      ? "SHADOW_MODE is set"
      : quota.kind === "rate" && match.entries.length > rule.path.length
      ? "its rule takes the limit of its parent"
      : reasonOf(quota),
  };
}

function reasonOf({ kind }: QuotaLimit): string {
  switch (kind) {
    case "allow":
      return "its rule is in shadow mode";
    case "deny":
      return "its rule has a limit of 0";
    case "rate":
      return "its rule has a limit";
    case "impossible":
      return "a rule with the algorithm concurrency cannot be a quota; its on_cache_failure decides";
  }
}
