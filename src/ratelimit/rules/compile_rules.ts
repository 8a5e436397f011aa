import { conditionalRule } from "./conditional_rule.ts";
import { counterName } from "./cache_key.ts";
import { CalendarWindows, isCalendarUnit, isMonthOrYear } from "../algorithms/calendar_windows.ts";
import { UNITS } from "../units.ts";
import { compilePattern, PatternIndex } from "./pattern_index.ts";
import { checkSources, type SourceChecks } from "./rule_check.ts";
import type { DescriptorSource, DomainSource, RateLimitSource, RuleSource } from "../rule_source.ts";
import { placeOf, type Problem } from "../../base/problem.ts";
import type {
  KeyRules,
  LimitRule,
  LimitWindows,
  NamedRule,
  RateLimit,
  RuleLevel,
  RuleNode,
  Rules,
  RuleTable,
} from "./rules.ts";
import { sanitizeStatName } from "../../base/stat_name.ts";
import type { StateLimit } from "../algorithms/conditional_limit.ts";
import { staticMetricKey } from "./stat_path.ts";
import { ExpressionList, valueText } from "./value_match.ts";

/** A rule without nested rules, its depth from 0, and its line in the file of its domain; 0 without a line. */
export interface FlatDescriptor extends RuleSource {
  readonly depth: number;
  readonly line: number;
  readonly rateLimit: FlatLimit | undefined;
}

type FlatLimit = Omit<RateLimitSource, "at" | "path" | "further"> & {
  readonly further?: readonly FlatLimit[] | undefined;
};

/** The compilation of limits without their own choice. */
export interface CompileOptions {
  /** True if windows of a month or a year follow the calendar in UTC. */
  readonly calendarMonths?: boolean | undefined;
}

/** Checks the sources and compiles them; no rules if there is an error. */
export function compileRules(
  sources: readonly DomainSource[],
  options: SourceChecks & CompileOptions = {},
): { rules: Rules | undefined; problems: Problem[] } {
  const problems = checkSources(sources, options);
  if (problems.some((problem) => problem.severity === "error")) return { rules: undefined, problems };
  const builder = new RulesBuilder();
  Array.from(addSources(builder, sources, options));
  return { rules: builder.finish(), problems };
}

/** Adds sources without errors in steps of one rule. */
export function* addSources(
  builder: RulesBuilder,
  sources: readonly DomainSource[],
  options: CompileOptions,
): Generator<void> {
  for (const { at, domain, descriptors } of sources) {
    builder.domain(domain, placeOf(at).file);
    for (const descriptor of flatDescriptors(descriptors, options)) {
      builder.add(descriptor);
      yield;
    }
  }
}

/** The descriptors in order, each followed by its nested ones. */
export function* flatDescriptors(
  descriptors: readonly DescriptorSource[],
  options: CompileOptions,
  depth = 0,
): Generator<FlatDescriptor> {
  for (const { at, path: _path, descriptors: nested, rateLimit: block, ...descriptor } of descriptors) {
    const { line } = placeOf(at);
    const rateLimit = block === undefined ? undefined : flatLimit(block, options);
    yield { ...descriptor, depth, line, rateLimit };
    yield* flatDescriptors(nested, options, depth + 1);
  }
}

function flatLimit(
  { at: _at, path: _path, further, ...block }: RateLimitSource,
  options: CompileOptions,
): FlatLimit {
  const { unit, unitMultiplier, algorithm, calendar } = block;
  const isFixed = algorithm === undefined && isMonthOrYear(unit, unitMultiplier);
  const isInUtc = options.calendarMonths === true && isFixed && calendar === undefined;
  const flat = isInUtc ? { ...block, calendar: IN_UTC } : block;
  return further === undefined
    ? flat
    : { ...flat, further: further.map((window) => flatLimit(window, options)) };
}

const IN_UTC = { timezone: "UTC" };

type OpenTable = Map<string, OpenKeyRules>;

interface OpenKeyRules extends KeyRules {
  exact: Map<string, RuleNode> | undefined;
  patterns: PatternIndex<RuleNode> | undefined;
  expressions: ExpressionList<RuleNode> | undefined;
  keyOnly: RuleNode | undefined;
  named: Map<string, NamedRule[]> | undefined;
}

interface OpenNode extends RuleNode {
  children: RuleTable | undefined;
}

/** A rule whose nested rules may follow. */
interface Place {
  readonly path: readonly RuleLevel[];
  readonly node: OpenNode;
  table: OpenTable | undefined;
}

/** Builds rules incrementally, so that the caller can split the work. */
export class RulesBuilder {
  readonly #domains = new Map<string, OpenTable>();
  readonly #limits: RateLimit[] = [];
  readonly #metricKeys = new Map<string, string>();
  /** Deduplicates texts: rules from another thread have their own copies. */
  readonly #texts = new Map<string, string>();
  readonly #calendars = new Map<string, CalendarWindows>();
  #places: Place[] = [];
  #nodeCount = 0;
  #domain = "";
  #file = "";

  /** The rules that follow are of this domain, and in this file or resource. */
  domain(name: string, file: string): void {
    this.#domain = name;
    this.#file = file;
    this.#places = [];
    if (!this.#domains.has(name)) this.#domains.set(name, new Map());
  }

  add(descriptor: FlatDescriptor): void {
    const { depth, rateLimit } = descriptor;
    this.#places.length = depth;
    const level = { ...levelOf(descriptor), key: this.#shared(descriptor.key) };
    const path = pathTo(this.#places.at(-1), level);
    const limit = rateLimit !== undefined
      ? this.#limit(descriptor, rateLimit, path)
      : descriptor.fallback === "parent"
      ? this.#places.at(-1)?.node.limit
      : undefined;
    const node: OpenNode = { order: this.#nodeCount++, limit, children: undefined };
    const table = this.#tableAt(depth);
    let rules = table.get(level.key);
    if (rules === undefined) {
      table.set(level.key, rules = { ...NO_KEY_RULES });
    }
    addNode(rules, level, node);
    this.#places.push({ path, node, table: undefined });
  }

  finish(): Rules {
    const domains: ReadonlyMap<string, RuleTable> = this.#domains;
    return { domains, domainCount: domains.size, limits: this.#limits, metricKeys: this.#metricKeys };
  }

  #tableAt(depth: number): OpenTable {
    const parent = this.#places[depth - 1];
    if (parent === undefined) return this.#domains.get(this.#domain) ?? new Map();
    if (parent.table === undefined) parent.node.children = parent.table = new Map();
    return parent.table;
  }

  #shared<T extends string | undefined>(text: T): T {
    if (text === undefined) return text;
    const known = this.#texts.get(text);
    if (known !== undefined) return known as T;
    this.#texts.set(text, text);
    return text;
  }

  /** One for all limits with the same windows, so that each window is found once. */
  #calendarOf({ unlimited, unit, unitMultiplier, calendar = false }: FlatLimit): CalendarWindows | undefined {
    if (unlimited || calendar === false || !isCalendarUnit(unit)) return undefined;
    const { timezone } = calendar;
    const name = `${unitMultiplier} ${unit} ${timezone}`;
    let windows = this.#calendars.get(name);
    if (windows === undefined) {
      this.#calendars.set(name, windows = new CalendarWindows(unit, unitMultiplier, timezone));
    }
    return windows;
  }

  #limit(
    descriptor: FlatDescriptor,
    source: FlatLimit,
    path: readonly RuleLevel[],
  ): RateLimit {
    const { unlimited, further } = source;
    const rule = ruleOf(descriptor, {
      domain: this.#domain,
      file: this.#file,
      path,
      index: this.#limits.length,
      hasTag: further !== undefined,
    });
    if (rule.metricKey !== undefined && !unlimited) this.#metricKeys.set(rule.metricKey, rule.domain);
    const limit = further === undefined
      ? this.#window(descriptor, source, rule, undefined)
      : this.#windows(descriptor, source, further, rule);
    this.#limits.push(limit);
    return limit;
  }

  /** The first of several windows, each of which knows all. */
  #windows(
    descriptor: FlatDescriptor,
    first: FlatLimit,
    further: readonly FlatLimit[],
    rule: LimitRule,
  ): RateLimit {
    const sources = [first, ...further];
    const limits: RateLimit[] = [];
    const joint: (StateLimit | number)[] = [];
    const windows: LimitWindows = {
      limits,
      keyLengths: sources.map((source) => `${windowOf(source)}s_`),
      isConditional: sources.some(({ algorithm }) => algorithm !== undefined),
      joint: { limits: joint },
    };
    const { name, replaces } = first;
    for (const source of sources) {
      limits.push(this.#window(descriptor, { ...source, name, replaces }, rule, windows));
    }
    for (const { conditional, requestsPerUnit } of limits) {
      const limit = conditional?.limit;
      joint.push(limit === undefined || limit.kind === "leases" ? requestsPerUnit : limit);
    }
    const [limit] = limits;
    if (limit === undefined) throw new TypeError("A list has no windows");
    return limit;
  }

  #window(
    descriptor: FlatDescriptor,
    source: FlatLimit,
    rule: LimitRule,
    windows: LimitWindows | undefined,
  ): RateLimit {
    const { unlimited, requestsPerUnit, replaces, algorithm } = source;
    const [unit, name] = [this.#shared(source.unit), this.#shared(source.name)];
    const calendar = this.#calendarOf(source);
    const windowSeconds = calendar?.longestSeconds ?? windowOf(source);
    return {
      requestsPerUnit,
      unit: unlimited ? undefined : unit,
      windowSeconds,
      calendar,
      conditional: algorithm === undefined
        ? undefined
        : conditionalRule(algorithm, { requestsPerUnit, windowSeconds, identifies: descriptor.identifies }),
      unlimited,
      name,
      replaces: replaces.length === 0 ? NOTHING : replaces.map((replaced) => replaced.name),
      shadowMode: descriptor.shadowMode,
      quotaMode: descriptor.quotaMode,
      onCacheFailure: descriptor.onCacheFailure,
      metadata: descriptor.metadata,
      events: descriptor.events,
      current: unlimited ? undefined : { name, requestsPerUnit, unit },
      rule,
      windows,
    };
  }
}

const NOTHING: readonly string[] = [];

function windowOf({ unlimited, unit, unitMultiplier, algorithm }: FlatLimit): number {
  if (algorithm?.name === "concurrency") return algorithm.leaseSeconds;
  return unlimited || unit === undefined ? 0 : UNITS[unit].seconds * unitMultiplier;
}

/** A path of its exact length: a list that grew has room for more, and most rules have one level. */
function pathTo(parent: Place | undefined, level: RuleLevel): readonly RuleLevel[] {
  return parent === undefined ? [level] : parent.path.concat(level);
}

function levelOf(descriptor: FlatDescriptor): RuleLevel {
  const { key, match, shareThreshold, identifies, valueToMetric } = descriptor;
  const value = valueText(descriptor);
  const pattern = match === undefined && value.includes("*") ? compilePattern(value) : undefined;
  return { key, value, pattern, match, shareThreshold, identifies, valueToMetric };
}

const NO_KEY_RULES: Readonly<OpenKeyRules> = {
  exact: undefined,
  patterns: undefined,
  expressions: undefined,
  keyOnly: undefined,
  named: undefined,
};

function addNode(rules: OpenKeyRules, { value, pattern, match }: RuleLevel, node: RuleNode): void {
  if (match !== undefined) {
    const name = sanitizeStatName(value);
    const named = rules.named ??= new Map();
    named.set(name, [...named.get(name) ?? [], { text: value, match, node }]);
    if ("regex" in match) (rules.expressions ??= new ExpressionList()).add(match.regex, node);
    else for (const one of match.in) (rules.exact ??= new Map()).set(one, node);
    return;
  }
  if (value === "") rules.keyOnly = node;
  else (rules.exact ??= new Map()).set(value, node);
  if (pattern !== undefined) (rules.patterns ??= new PatternIndex()).add(pattern, node);
}

function ruleOf(
  { detailedMetric, line }: FlatDescriptor,
  { domain, file, path, index, hasTag }: Pick<LimitRule, "domain" | "file" | "path" | "index"> & {
    readonly hasTag: boolean;
  },
): LimitRule {
  const texts = path.map((level) => level.value === "" ? level.key : `${level.key}_${level.value}`);
  const fullKey = [domain, ...texts].join(".");
  const metricKey = staticMetricKey(domain, path, detailedMetric);
  return {
    index,
    domain,
    file,
    line,
    fullKey,
    path,
    detailedMetric,
    shares: path.some((level) => level.shareThreshold),
    counterName: counterName(domain, path, hasTag),
    // They are equal for most rules: one string takes less memory.
    metricKey: metricKey === fullKey ? fullKey : metricKey,
  };
}
