import type { CacheFailureMode } from "./cache_failure_mode.ts";
import type { CurrentLimit } from "./decision.ts";
import type { Unit } from "./limit.ts";
import type { Pattern } from "./pattern.ts";
import type { PatternIndex } from "./pattern_index.ts";
import type { JsonObject } from "./rule_source.ts";

/** A limit of a rule, or one that a request brought along. */
export interface RateLimit {
  readonly requestsPerUnit: number;
  /** Absent with `unlimited`. */
  readonly unit: Unit | undefined;
  /** Length of the window in whole seconds. */
  readonly windowSeconds: number;
  readonly unlimited: boolean;
  readonly name: string;
  /** Names of the rules that this one takes the place of. */
  readonly replaces: readonly string[];
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  /** What becomes of the descriptor when the cache fails; absent where the policy says it. */
  readonly onCacheFailure: CacheFailureMode | undefined;
  readonly metadata: JsonObject | undefined;
  /** What a status shows of the limit. Absent with `unlimited`. */
  readonly current: CurrentLimit | undefined;
  /** The rule it belongs to; absent for a limit that a request brought along. */
  readonly rule: LimitRule | undefined;
}

/** What is known of a limit's rule beside the limit: where it stands and how it is counted. */
export interface LimitRule {
  /** Number of the rule among all rules with a limit, from 0. */
  readonly index: number;
  readonly domain: string;
  /** The rule's own text: `domain.key[_value].key[_value]`. */
  readonly fullKey: string;
  /** Every level from the top to the rule itself. */
  readonly path: readonly RuleLevel[];
  readonly detailedMetric: boolean;
  /** Some level of the path counts all values of its pattern together. */
  readonly shares: boolean;
  /** What the names of its counters are made of. */
  readonly counterName: CounterName;
  /** The metric key where it is the same for every request; absent otherwise. */
  readonly metricKey: string | undefined;
}

/**
 * What the names of a rule's counters are made of: texts that are the same for every request, and
 * between each two of them the value of an entry. There is one text more than there are values.
 */
export interface CounterName {
  readonly texts: readonly string[];
  /** Positions of the entries whose values stand between the texts. */
  readonly varying: readonly number[];
}

/** What one level of a rule's path contributes to cache keys and metric keys. */
export interface RuleLevel {
  readonly key: string;
  /** Empty for a rule without a value. */
  readonly value: string;
  readonly pattern: Pattern | undefined;
  readonly shareThreshold: boolean;
  readonly valueToMetric: boolean;
}

/** One rule in the tree that requests are matched against. */
export interface RuleNode {
  readonly limit: RateLimit | undefined;
  /** Absent where nothing is nested. */
  readonly children: RuleTable | undefined;
}

/** The rules of one level that have the same key. */
export interface KeyRules {
  /**
   * By the whole text of the value; patterns stand here too, under their own text. Absent where there
   * is none, so that a value of which nothing is known is not even hashed.
   */
  readonly exact: ReadonlyMap<string, RuleNode> | undefined;
  /** Absent where no value holds a star. */
  readonly patterns: PatternIndex<RuleNode> | undefined;
  /** The rule without a value. */
  readonly keyOnly: RuleNode | undefined;
}

/** All rules of one level, by key. */
export type RuleTable = ReadonlyMap<string, KeyRules>;

/** A loaded configuration. It never changes; a reload makes another. */
export interface Rules {
  readonly domains: ReadonlyMap<string, RuleTable>;
  readonly domainCount: number;
  /** Every limit of every rule, unlimited ones included, by `rule.index`. */
  readonly limits: readonly RateLimit[];
  /** The metric keys that are the same for every request, of all limits that are counted, with their domains. */
  readonly metricKeys: ReadonlyMap<string, string>;
}

/** The rule for one entry among the rules of its key: exact, then patterns as declared, then any value. */
export function nodeFor(rules: KeyRules, value: string): RuleNode | undefined {
  return rules.exact?.get(value) ?? rules.patterns?.find(value) ?? rules.keyOnly;
}
