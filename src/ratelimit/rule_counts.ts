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
  readonly #counts: readonly (RuleCount | undefined)[];
  /** By the text of their rule; rules that read alike have one, as those with the same metric key do. */
  readonly #sums = new Map<string, RuleCount>();

  /** `counters` holds those of the metric keys by `rule.index`; sums go on from those that were before. */
  constructor(rules: Rules, counters: readonly (RuleCounters | undefined)[], before?: RuleCounts) {
    this.#counts = rules.limits.map(({ rule, unlimited }, index) => {
      if (rule === undefined || unlimited) return undefined;
      return rule.metricKey === undefined ? this.#sumOf(rule.fullKey, before) : counters[index];
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

  #sumOf(text: string, before: RuleCounts | undefined): RuleCount {
    const known = this.#sums.get(text) ?? (before === undefined ? undefined : before.#sums.get(text));
    const sum = known ?? noCount();
    this.#sums.set(text, sum);
    return sum;
  }
}

function noCount(): RuleCount {
  return { totalHits: 0, overLimit: 0, nearLimit: 0, withinLimit: 0 };
}
