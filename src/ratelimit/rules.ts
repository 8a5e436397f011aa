import type { CacheFailureMode } from "./cache_failure_mode.ts";
import { type CounterName, counterName } from "./cache_key.ts";
import type { CurrentLimit } from "./decision.ts";
import { type Unit, UNITS } from "./limit.ts";
import { compilePattern, type Pattern } from "./pattern.ts";
import { PatternIndex } from "./pattern_index.ts";
import { checkSources } from "./rule_check.ts";
import type { DescriptorSource, DomainSource, JsonObject, Problem, RateLimitSource } from "./rule_source.ts";
import { staticMetricKey } from "./stat_path.ts";

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
}

/** How sources are put together. */
export interface CompileOptions {
  /** Several sources may name one domain; their rules stand one after the other. */
  readonly mergeDomains: boolean;
}

/** Checks the sources as a whole and makes rules of them; there are none when a problem is an error. */
export function compileRules(
  sources: readonly DomainSource[],
  options: CompileOptions,
): { rules: Rules | undefined; problems: Problem[] } {
  const problems = checkSources(sources, options.mergeDomains);
  if (problems.some((problem) => problem.severity === "error")) return { rules: undefined, problems };
  const byDomain = new Map<string, DescriptorSource[]>();
  for (const source of sources) {
    const descriptors = byDomain.get(source.domain) ?? [];
    for (const descriptor of source.descriptors) descriptors.push(descriptor);
    byDomain.set(source.domain, descriptors);
  }
  const limits: RateLimit[] = [];
  const domains = new Map<string, RuleTable>();
  for (const [domain, descriptors] of byDomain) {
    domains.set(domain, compileTable(descriptors, { domain, path: [], limits }) ?? new Map());
  }
  return { rules: { domains, domainCount: domains.size, limits }, problems };
}

/** The rule for one entry among the rules of its key: exact, then patterns as declared, then any value. */
export function nodeFor(rules: KeyRules, value: string): RuleNode | undefined {
  return rules.exact?.get(value) ?? rules.patterns?.find(value) ?? rules.keyOnly;
}

/** Where the compiler stands. */
interface Place {
  readonly domain: string;
  readonly path: readonly RuleLevel[];
  /** Grows with every limit found. */
  readonly limits: RateLimit[];
}

interface OpenKeyRules {
  exact: Map<string, RuleNode>;
  /** In the order in which they were declared. */
  patterns: { pattern: Pattern; target: RuleNode }[];
  keyOnly: RuleNode | undefined;
}

function compileTable(descriptors: readonly DescriptorSource[], place: Place): RuleTable | undefined {
  if (descriptors.length === 0) return undefined;
  const table = new Map<string, OpenKeyRules>();
  for (const descriptor of descriptors) {
    let rules = table.get(descriptor.key);
    if (rules === undefined) {
      table.set(descriptor.key, rules = { exact: new Map(), patterns: [], keyOnly: undefined });
    }
    const level = levelOf(descriptor);
    const node = compileNode(descriptor, { ...place, path: [...place.path, level] });
    if (level.value === "") rules.keyOnly = node;
    else rules.exact.set(level.value, node);
    if (level.pattern !== undefined) rules.patterns.push({ pattern: level.pattern, target: node });
  }
  const closed = new Map<string, KeyRules>();
  for (const [key, { exact, patterns, keyOnly }] of table) {
    closed.set(key, {
      exact: exact.size === 0 ? undefined : exact,
      patterns: patterns.length === 0 ? undefined : new PatternIndex(patterns),
      keyOnly,
    });
  }
  return closed;
}

function levelOf(descriptor: DescriptorSource): RuleLevel {
  const { key, value, shareThreshold, valueToMetric } = descriptor;
  const pattern = value.includes("*") ? compilePattern(value) : undefined;
  return { key, value, pattern, shareThreshold, valueToMetric };
}

function compileNode(descriptor: DescriptorSource, place: Place): RuleNode {
  const { rateLimit } = descriptor;
  const limit = rateLimit === undefined ? undefined : compileLimit(descriptor, rateLimit, place);
  if (limit !== undefined) place.limits.push(limit);
  return { limit, children: compileTable(descriptor.descriptors, place) };
}

function compileLimit(descriptor: DescriptorSource, source: RateLimitSource, place: Place): RateLimit {
  const { unit, unlimited, requestsPerUnit, name } = source;
  const limited = !unlimited && unit !== undefined;
  return {
    requestsPerUnit,
    unit: unlimited ? undefined : unit,
    windowSeconds: limited ? UNITS[unit].seconds * source.unitMultiplier : 0,
    unlimited,
    name,
    replaces: source.replaces.map((replaced) => replaced.name),
    shadowMode: descriptor.shadowMode,
    quotaMode: descriptor.quotaMode,
    onCacheFailure: descriptor.onCacheFailure,
    metadata: descriptor.metadata,
    current: limited ? { name, requestsPerUnit, unit } : undefined,
    rule: ruleOf(descriptor, place),
  };
}

function ruleOf(descriptor: DescriptorSource, place: Place): LimitRule {
  const { domain, path } = place;
  const { detailedMetric } = descriptor;
  const texts = path.map((level) => level.value === "" ? level.key : `${level.key}_${level.value}`);
  return {
    index: place.limits.length,
    domain,
    fullKey: [domain, ...texts].join("."),
    path,
    detailedMetric,
    shares: path.some((level) => level.shareThreshold),
    counterName: counterName(domain, path),
    metricKey: staticMetricKey(domain, path, detailedMetric),
  };
}
