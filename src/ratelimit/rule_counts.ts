import type { PlannedDescriptor } from "./plan.ts";
import type { RuleStats } from "./rule_stats.ts";
import type { Rules } from "./rules.ts";
import type { RuleCounters } from "./stats_sink.ts";

/** What was counted for one rule. */
export type RuleCount = Pick<RuleCounters, "totalHits" | "overLimit" | "nearLimit" | "withinLimit">;

/**
 * What was counted for each rule. Rules whose metric key is always the same have the counters of that key;
 * those whose key depends on the request have sums of their own, for no one set of counters is theirs.
 */
export class RuleCounts {
  readonly #rules: Rules;
  readonly #counts: (RuleCount | undefined)[];

  /** `counters` holds those of the metric keys by `rule.index`; sums go on from those that were before. */
  constructor(rules: Rules, counters: readonly (RuleCounters | undefined)[], before?: RuleCounts) {
    this.#rules = rules;
    const sums = before?.sums();
    this.#counts = rules.limits.map(({ rule, unlimited }, index) => {
      if (rule === undefined || unlimited) return undefined;
      return rule.metricKey === undefined ? sums?.get(rule.fullKey) ?? noCount() : counters[index];
    });
  }

  /** The counts of the rule with this index; absent where nothing is counted. */
  at(index: number): RuleCount | undefined {
    return this.#counts[index];
  }

  /** Adds to the sums of a rule whose metric key depends on the request. */
  add({ limit, negative, hits }: PlannedDescriptor, stats: RuleStats): void {
    const rule = limit?.rule;
    const count = rule === undefined || rule.metricKey !== undefined ? undefined : this.#counts[rule.index];
    if (count === undefined) return;
    if (!negative) count.totalHits += hits;
    count.overLimit += stats.overLimit;
    count.nearLimit += stats.nearLimit;
    count.withinLimit += stats.withinLimit;
  }

  /** The sums by the text of their rule. */
  sums(): Map<string, RuleCount> {
    const sums = new Map<string, RuleCount>();
    for (const [index, { rule }] of this.#rules.limits.entries()) {
      const count = this.#counts[index];
      if (rule !== undefined && rule.metricKey === undefined && count !== undefined) {
        sums.set(rule.fullKey, count);
      }
    }
    return sums;
  }
}

function noCount(): RuleCount {
  return { totalHits: 0, overLimit: 0, nearLimit: 0, withinLimit: 0 };
}
