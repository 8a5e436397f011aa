import type { PlannedDescriptor } from "./plan.ts";
import type { RuleStats } from "./rule_stats.ts";
import type { Rules } from "./rules.ts";
import type { RuleCounters, StatsSink } from "./stats_sink.ts";

/** What was counted for one rule. */
export type RuleCount = Pick<RuleCounters, "totalHits" | "overLimit" | "nearLimit" | "withinLimit">;

/**
 * What was counted for each rule. Rules whose metric key is always the same have the counters of that key;
 * those whose key depends on the request have sums of their own, for no one set of counters is theirs.
 */
export class RuleCounts {
  readonly #rules: Rules;
  readonly #stats: Pick<StatsSink, "known">;
  /** By the text of their rule; rules that read alike have one, as those with the same metric key do. */
  readonly #sums = new Map<string, RuleCount>();

  /** Sums go on from those that were `before`. */
  constructor(rules: Rules, stats: Pick<StatsSink, "known">, before?: RuleCounts) {
    this.#rules = rules;
    this.#stats = stats;
    if (before === undefined || before.#sums.size === 0) return;
    for (const { rule } of rules.limits) {
      const sum = rule?.metricKey === undefined ? before.#sums.get(rule?.fullKey ?? "") : undefined;
      if (rule !== undefined && sum !== undefined) this.#sums.set(rule.fullKey, sum);
    }
  }

  /** The counts of the rule with this index; absent where nothing is counted. */
  at(index: number): RuleCount | undefined {
    const { rule, unlimited = true } = this.#rules.limits[index] ?? {};
    if (rule === undefined || unlimited) return undefined;
    return (rule.metricKey === undefined
      ? this.#sums.get(rule.fullKey)
      : this.#stats.known(rule.metricKey)) ??
      NO_COUNT;
  }

  /** Adds to the sums of a rule whose metric key depends on the request. */
  add({ limit, negative, hits }: PlannedDescriptor, stats: RuleStats): void {
    const rule = limit?.rule;
    if (rule === undefined || rule.metricKey !== undefined || limit?.unlimited === true) return;
    let count = this.#sums.get(rule.fullKey);
    if (count === undefined) this.#sums.set(rule.fullKey, count = { ...NO_COUNT });
    if (!negative) count.totalHits += hits;
    count.overLimit += stats.overLimit;
    count.nearLimit += stats.nearLimit;
    count.withinLimit += stats.withinLimit;
  }
}

const NO_COUNT: Readonly<RuleCount> = { totalHits: 0, overLimit: 0, nearLimit: 0, withinLimit: 0 };
