import type { CurrentLimit } from "../decision.ts";
import type { CalendarWindows } from "../algorithms/calendar_windows.ts";
import type { ConditionalLimit, JointLimits } from "../algorithms/conditional_limit.ts";
import type { Unit } from "../units.ts";
import type { Pattern, PatternIndex } from "./pattern_index.ts";
import type { RuleEvents } from "../rule_events.ts";
import type { Algorithm, CacheFailureMode, JsonObject, ValueMatch } from "../rule_source.ts";
import type { ExpressionList } from "./value_match.ts";

/** A limit of a rule or of a request. */
export interface RateLimit {
  /** The maximum in flight of a `concurrency` limit. */
  readonly requestsPerUnit: number;
  /** Undefined with `unlimited` and `concurrency`. */
  readonly unit: Unit | undefined;
  /** The lease of a `concurrency` limit; the longest window of a calendar. */
  readonly windowSeconds: number;
  /** Undefined if all windows have the same length. */
  readonly calendar: CalendarWindows | undefined;
  /** Undefined for fixed windows. */
  readonly conditional: ConditionalRule | undefined;
  readonly unlimited: boolean;
  readonly name: string;
  readonly replaces: readonly string[];
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
  /** Undefined to use the policy. */
  readonly onCacheFailure: CacheFailureMode | undefined;
  readonly metadata: JsonObject | undefined;
  /** Undefined if the rule reports none. */
  readonly events: RuleEvents | undefined;
  /** The limit in a status; undefined with `unlimited`. */
  readonly current: CurrentLimit | undefined;
  /** Undefined for a limit of a request. */
  readonly rule: LimitRule | undefined;
  /** The windows of the rule, which this is one of; undefined if it has one only. */
  readonly windows: LimitWindows | undefined;
}

/** Several windows of one rule, in the order of the file; the first one is the limit of the rule. */
export interface LimitWindows {
  readonly limits: readonly RateLimit[];
  /** The length of each in cache keys, before the start: keys of two windows may begin at the same second. */
  readonly keyLengths: readonly string[];
  /** Hits count in all of them or in none, whatever the policy: one is conditional. */
  readonly isConditional: boolean;
  readonly joint: JointLimits;
}

/** A limit that is not a fixed window. */
export interface ConditionalRule {
  readonly algorithm: Exclude<Algorithm, "fixed_window">;
  readonly limit: ConditionalLimit;
  /** Hits that pass when all is free. */
  readonly capacity: number;
  /** The end of cache keys, where those of fixed windows have the start of the window. */
  readonly keyEnd: string;
  /** Until all is free, at most. */
  readonly longestSeconds: number;
}

/** The rule of a limit: its place and how it is counted. */
export interface LimitRule {
  readonly index: number;
  readonly domain: string;
  /** The file, or the resource of a configuration server. */
  readonly file: string;
  /** 0 in a resource. */
  readonly line: number;
  /** `domain.key[_value].key[_value]`. */
  readonly fullKey: string;
  readonly path: readonly RuleLevel[];
  readonly detailedMetric: boolean;
  readonly shares: boolean;
  readonly counterName: CounterName;
  /** Undefined if it depends on the request. */
  readonly metricKey: string | undefined;
}

/** The parts of a counter name: constant texts, with the value of an entry between each two of them. */
export interface CounterName {
  readonly texts: readonly string[];
  readonly varying: readonly number[];
}

/** One level of the path of a rule. */
export interface RuleLevel {
  readonly key: string;
  /** Empty for any value; a text for names with `match`. */
  readonly value: string;
  readonly pattern: Pattern | undefined;
  readonly match: ValueMatch | undefined;
  readonly shareThreshold: boolean;
  /** The value is the holder of a lease. */
  readonly identifies: boolean;
  readonly valueToMetric: boolean;
}

/** A rule in the tree that requests are matched against. */
export interface RuleNode {
  /** The position among all rules. */
  readonly order: number;
  readonly limit: RateLimit | undefined;
  readonly children: RuleTable | undefined;
}

/** The rules of one level that have the same key. */
export interface KeyRules {
  /** By value, including those of lists and the text of patterns; undefined if empty, so that unknown values are not hashed. */
  readonly exact: ReadonlyMap<string, RuleNode> | undefined;
  readonly patterns: PatternIndex<RuleNode> | undefined;
  readonly expressions: ExpressionList<RuleNode> | undefined;
  readonly keyOnly: RuleNode | undefined;
  /** Rules for several values, by their texts in metric keys as these are printed; undefined if empty. */
  readonly named: ReadonlyMap<string, readonly NamedRule[]> | undefined;
}

/** A rule for several values. */
export interface NamedRule {
  readonly text: string;
  readonly match: ValueMatch;
  readonly node: RuleNode;
}

/** All rules of one level, by key. */
export type RuleTable = ReadonlyMap<string, KeyRules>;

/** An immutable configuration; a reload replaces it. */
export interface Rules {
  readonly domains: ReadonlyMap<string, RuleTable>;
  readonly domainCount: number;
  readonly limits: readonly RateLimit[];
  /** The domains of the metric keys that do not depend on the request. */
  readonly metricKeys: ReadonlyMap<string, string>;
}

/** A configuration without rules. */
export const NO_RULES: Rules = { domains: new Map(), domainCount: 0, limits: [], metricKeys: new Map() };
