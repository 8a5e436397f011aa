import type { PlannedDescriptor } from "./plan.ts";
import type { RuleStats } from "../rules/rule_stats.ts";
import type { Rules } from "../rules/rules.ts";
import type { RuleCounters, StatsSink } from "../stats_sink.ts";

/** The counts of one rule. */
type RuleCount = Pick<RuleCounters, "totalHits" | "overLimit" | "nearLimit" | "withinLimit">;

/** Counts by the full keys of rules. */
export type RuleSums = readonly (readonly [fullKey: string, count: RuleCount])[];

/** The counts of each rule: those of its metric key if that is constant, or else separate sums. */
export class RuleCounts {
  readonly #rules: Rules;
  readonly #stats: Pick<StatsSink, "known">;
  readonly #sums = new Map<string, RuleCount>();
  /** Of the previous rules, until `adopt` has ended. */
  #previous: Map<string, RuleCount> | undefined;

  /** Continues the sums of previous counts that have adopted theirs. */
  constructor(rules: Rules, stats: Pick<StatsSink, "known">, previous?: RuleCounts) {
    this.#rules = rules;
    this.#stats = stats;
    this.#previous = previous === undefined ? undefined : previous.#sums;
  }

  /** Goes through all rules in steps and keeps their sums; those of former rules are dropped. */
  *adopt(): Generator<void> {
    if (this.#previous !== undefined && this.#previous.size > 0) {
      for (const { rule } of this.#rules.limits) {
        yield;
        if (rule !== undefined && rule.metricKey === undefined) this.#sum(rule.fullKey);
      }
    }
    this.#previous = undefined;
  }

  /** The counts of the rule with this index; undefined if it is not counted. */
  at(index: number): RuleCount | undefined {
    const { rule, unlimited = true } = this.#rules.limits[index] ?? {};
    if (rule === undefined || unlimited) return undefined;
    return (rule.metricKey === undefined ? this.#sum(rule.fullKey) : this.#stats.known(rule.metricKey)) ??
      NO_COUNT;
  }

  /** Returns the sums by rule since the last take, which start again from zero. */
  takeSums(): RuleSums {
    const sums = [...this.#sums];
    this.#sums.clear();
    return sums;
  }

  /** Adds the sums of another thread. */
  addSums(sums: RuleSums): void {
    for (const [fullKey, added] of sums) {
      const count = this.#sum(fullKey) ?? { ...NO_COUNT };
      this.#sums.set(fullKey, count);
      count.totalHits += added.totalHits;
      count.overLimit += added.overLimit;
      count.nearLimit += added.nearLimit;
      count.withinLimit += added.withinLimit;
    }
  }

  /** Adds to the sums, if the metric key of the rule depends on the request. */
  add({ limit, negative, hits }: PlannedDescriptor, stats: RuleStats): void {
    const rule = limit?.rule;
    if (rule === undefined || rule.metricKey !== undefined || limit?.unlimited === true) return;
    let count = this.#sum(rule.fullKey);
    if (count === undefined) this.#sums.set(rule.fullKey, count = { ...NO_COUNT });
    if (!negative) count.totalHits += hits;
    count.overLimit += stats.overLimit;
    count.nearLimit += stats.nearLimit;
    count.withinLimit += stats.withinLimit;
  }

  #sum(fullKey: string): RuleCount | undefined {
    const known = this.#sums.get(fullKey);
    if (known !== undefined) return known;
    const previous = this.#previous?.get(fullKey);
    if (previous === undefined) return undefined;
    this.#previous?.delete(fullKey);
    this.#sums.set(fullKey, previous);
    return previous;
  }
}

const NO_COUNT: Readonly<RuleCount> = { totalHits: 0, overLimit: 0, nearLimit: 0, withinLimit: 0 };
