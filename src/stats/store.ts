import { sanitizeStatName } from "../base/stat_name.ts";
import {
  type MetricGroup,
  type MetricName,
  type Metrics,
  type MetricTable,
  type NamedMetric,
  namedMetrics,
} from "../base/metrics.ts";
import {
  addRefusals,
  type RuleCounters,
  type ServiceCounters,
  type StatsSink,
} from "../ratelimit/stats_sink.ts";
import {
  methodMetrics,
  overLimitPer,
  type RULE_METRICS,
  ruleMetrics,
  SERVICE_METRICS,
} from "./declarations.ts";
import { Timer, type TimerOptions } from "./timer.ts";

/** Longest metric key of a request that gets its own counters. */
const MAX_KEY_LENGTH = 1_024;
/** The key under which all keys beyond the limit are counted. */
const OTHER = "other";
/** Most keys of former rules that are evicted at a load or a walk over all counters, and for each new key. */
const EVICTIONS_PER_LOAD = 2_000;
const EVICTIONS_PER_KEY = 16;
/** Domains that have their own key `other`. */
const MAX_DOMAINS = 10_000;

/** The counts of a metric key that a thread adds. */
export interface RuleDelta {
  readonly metricKey: string;
  readonly domain: string | undefined;
  /** True for the sum of keys beyond the limit. */
  readonly isOther: boolean;
  readonly counts: RuleCounters;
}

/** All statistics of the process by full name; every sink reads from it. */
export class StatsStore implements StatsSink {
  readonly service: ServiceCounters = {
    globalShadowMode: 0,
    configLoadSuccess: 0,
    configLoadError: 0,
    serviceError: 0,
    kvError: 0,
    mcError: 0,
    cacheFailure: { error: 0, allow: 0, deny: 0, local: 0 },
  };
  readonly #maxKeys: number;
  /** By metric key, so that each is sanitized once. */
  readonly #byKey = new Map<string, RuleCounters>();
  /** Those of keys beyond the limit, one for each loaded domain. */
  readonly #othersByKey = new Map<string, RuleCounters>();
  /** By sanitized name, which several keys may share. */
  readonly #byName = new Map<string, RuleCounters>();
  readonly #gauges = new Map<string, () => number>();
  readonly #counters = new Map<string, () => number>();
  readonly #timers = new Map<string, Timer>();
  readonly #timerOptions: TimerOptions;
  /** All but those of rules, by full name. */
  readonly #declared = new Map<string, NamedMetric>();
  /** Keys of the loaded rules with their domains; many may have no counters yet. */
  #loaded: ReadonlyMap<string, string> = new Map();
  /** Keys that have counters and no loaded rule, with their domains if these are known. */
  readonly #unloaded = new Map<string, string | undefined>();
  /** Those of former rules. */
  readonly #former = new Set<string>();
  #overflowed = 0;

  /** Holds at most `maxKeys` metric keys in addition to those of loaded rules. */
  constructor(maxKeys: number, options: TimerOptions = {}) {
    this.#maxKeys = maxKeys;
    this.#timerOptions = options;
    const counters = {
      ...serviceCounters(this.service),
      rate_limit_keys_overflowed: () => this.#overflowed,
    };
    this.addMetrics(SERVICE_METRICS, { counters, gauges: {} });
  }

  /** `overflow` is added to the metric of keys beyond the limit if this one is. */
  rule(metricKey: string, domain?: string, overflow = 1): RuleCounters {
    const known = this.#byKey.get(metricKey);
    if (known !== undefined) return known;
    if (this.#loaded.has(metricKey)) return this.#create(metricKey);
    this.#evictFormer(EVICTIONS_PER_KEY);
    if (this.#unloaded.size < this.#maxKeys && metricKey.length <= MAX_KEY_LENGTH) {
      this.#unloaded.set(metricKey, domain);
      return this.#create(metricKey);
    }
    this.#overflowed += overflow;
    return this.#others(domain);
  }

  known(metricKey: string): RuleCounters | undefined {
    return this.#byKey.get(metricKey);
  }

  loadedRules(domainOfKey: ReadonlyMap<string, string>): Iterable<void> {
    const before = this.#loaded;
    this.#loaded = domainOfKey;
    return this.#sortKeys(before);
  }

  /** Keys may get counters between two steps. */
  *#sortKeys(before: ReadonlyMap<string, string>): Generator<void> {
    for (const key of this.#unloaded.keys()) {
      yield;
      if (!this.#loaded.has(key)) continue;
      this.#unloaded.delete(key);
      this.#former.delete(key);
    }
    for (const [key, domain] of before) {
      yield;
      if (this.#loaded.has(key) || !this.#byKey.has(key)) continue;
      this.#former.add(key);
      this.#unloaded.set(key, domain);
    }
    this.#evictFormer(EVICTIONS_PER_LOAD);
  }

  /** Adds a gauge, which is read whenever statistics are. */
  addGauge(name: string, read: () => number): void {
    this.#gauges.set(name, read);
  }

  /** Adds a number that only grows. */
  addCounter(name: string, read: () => number): void {
    this.#counters.set(name, read);
  }

  /** Adds the declared counters and gauges of a part. */
  addMetrics<T extends MetricTable>(group: MetricGroup<T>, { counters, gauges }: Metrics<T>): void {
    for (const metric of namedMetrics(group, "counter")) {
      this.#declared.set(metric.fullName, metric);
      this.addCounter(metric.fullName, counters[metric.name]);
    }
    for (const metric of namedMetrics(group, "gauge")) {
      this.#declared.set(metric.fullName, metric);
      this.addGauge(metric.fullName, gauges[metric.name]);
    }
  }

  /** The declared timers of a part. */
  addTimers<T extends MetricTable>(group: MetricGroup<T>): Readonly<Record<MetricName<T, "timer">, Timer>> {
    const timers = namedMetrics(group, "timer").map((metric) => {
      this.#declared.set(metric.fullName, metric);
      return [metric.name, this.timer(metric.fullName)] as const;
    });
    return Object.fromEntries(timers) as Record<MetricName<T, "timer">, Timer>;
  }

  /** The declared metric of a full name; absent for those of rules. */
  declared(fullName: string): NamedMetric | undefined {
    return this.#declared.get(fullName);
  }

  /** Every declared metric, but those of rules. */
  declarations(): Iterable<NamedMetric> {
    return this.#declared.values();
  }

  /** Reads the counter or gauge of this name, if there is one. */
  reader(kind: "counter" | "gauge", fullName: string): (() => number) | undefined {
    return (kind === "counter" ? this.#counters : this.#gauges).get(fullName);
  }

  /** The counts of each metric key since the last take; they start again from zero. */
  *takeRules(): Generator<RuleDelta> {
    for (const [byKey, isOther] of [[this.#byKey, false], [this.#othersByKey, true]] as const) {
      for (const [metricKey, counters] of byKey) {
        if (RULE_COUNTERS.every((name) => counters[name] === 0)) continue;
        yield { metricKey, domain: this.#domainOf(metricKey, isOther), isOther, counts: { ...counters } };
        for (const name of RULE_COUNTERS) counters[name] = 0;
        counters.overLimitPer = undefined;
      }
    }
  }

  #domainOf(metricKey: string, isOther: boolean): string | undefined {
    if (!isOther) return this.#loaded.get(metricKey) ?? this.#unloaded.get(metricKey);
    return metricKey === OTHER ? undefined : metricKey.slice(0, -OTHER.length - 1);
  }

  /** The timer of this name, created at the first call. */
  timer(name: string): Timer {
    const known = this.#timers.get(name);
    if (known !== undefined) return known;
    const timer = new Timer(this.#timerOptions);
    this.#timers.set(name, timer);
    return timer;
  }

  /** Every timer by its full name. */
  timers(): ReadonlyMap<string, Timer> {
    return this.#timers;
  }

  /** Every counter by its full name, zeros of loaded rules included; may be walked over with pauses. */
  *counters(): Generator<readonly [string, number]> {
    for (const [name, read] of this.#counters) yield [name, read()];
    this.#evictFormer(EVICTIONS_PER_LOAD);
    for (const [name, counters] of this.#byName) yield* ruleEntries(name, counters);
    const loaded = this.#loaded;
    for (const key of loaded.keys()) {
      // Other rules were loaded during a pause.
      if (loaded !== this.#loaded) break;
      if (this.#byKey.has(key)) continue;
      const name = sanitizeStatName(key);
      const isShown = this.#byName.has(name);
      const counters = this.#create(key);
      if (!isShown) yield* ruleEntries(name, counters);
    }
  }

  /** Every gauge by its full name. */
  gauges(): Map<string, number> {
    return new Map([...this.#gauges].map(([name, read]) => [name, read()]));
  }

  /** The counters of a domain's keys beyond the limit: those of a rule with the key `other`. */
  #others(domain: string | undefined): RuleCounters {
    const metricKey = domain === undefined ? OTHER : `${domain}.${OTHER}`;
    const known = this.#othersByKey.get(metricKey);
    if (known !== undefined) return known;
    const hasRoom = metricKey === OTHER || this.#othersByKey.size < MAX_DOMAINS;
    return hasRoom ? this.#create(metricKey, this.#othersByKey) : this.#others(undefined);
  }

  /** Evicts keys of former rules beyond the limit, some at a time. */
  #evictFormer(most: number): void {
    let left = most;
    for (const key of this.#former) {
      if (this.#unloaded.size <= this.#maxKeys || left-- === 0) return;
      this.#former.delete(key);
      // Loaded again, by a load that has not reached it yet.
      if (this.#loaded.has(key)) this.#unloaded.delete(key);
      else this.#evict(key);
    }
  }

  /** Evicts a key; its counts are added to the key `other` of its domain. */
  #evict(metricKey: string): void {
    const counters = this.#byKey.get(metricKey);
    if (counters === undefined) return;
    const domain = this.#unloaded.get(metricKey);
    this.#unloaded.delete(metricKey);
    const other = this.#others(domain);
    this.#byKey.delete(metricKey);
    this.#overflowed++;
    // A rule may have the key `other`.
    if (counters === other) return;
    this.#byName.delete(sanitizeStatName(metricKey));
    addCounters(other, counters);
  }

  #create(metricKey: string, byKey = this.#byKey): RuleCounters {
    const name = sanitizeStatName(metricKey);
    const counters = this.#byName.get(name) ?? emptyCounters();
    this.#byName.set(name, counters);
    byKey.set(metricKey, counters);
    return counters;
  }
}

/** All counters, gauges and timers as lines `name: value`, sorted by name; a timer has two. */
export function statsText(store: StatsStore): string {
  const all = [...store.counters(), ...store.gauges(), ...timerEntries(store.timers())];
  return all.map(([name, value]) => `${name}: ${value}\n`).sort().join("");
}

function timerEntries(timers: ReadonlyMap<string, Timer>): [string, number][] {
  return [...timers].flatMap(([name, timer]): [string, number][] => [
    [`${name}.count`, timer.count],
    [`${name}.sum_ms`, timer.sumMs],
  ]);
}

function serviceCounters(
  service: ServiceCounters,
): Omit<Metrics<typeof SERVICE_METRICS.metrics>["counters"], "rate_limit_keys_overflowed"> {
  return {
    config_load_success: () => service.configLoadSuccess,
    config_load_error: () => service.configLoadError,
    global_shadow_mode: () => service.globalShadowMode,
    "call.should_rate_limit.service_error": () => service.serviceError,
    "call.should_rate_limit.kv_error": () => service.kvError,
    "call.should_rate_limit.mc_error": () => service.mcError,
    "cache_failure.error": () => service.cacheFailure.error,
    "cache_failure.allow": () => service.cacheFailure.allow,
    "cache_failure.deny": () => service.cacheFailure.deny,
    "cache_failure.local": () => service.cacheFailure.local,
  };
}

function ruleEntries(name: string, counters: RuleCounters): [string, number][] {
  const { prefix } = ruleMetrics(name);
  const isUnknownDomain = counters.domainNotFound > 0 && counters.totalHits === 0;
  const entries: [string, number][] = [];
  const add = (stat: keyof typeof RULE_METRICS, value: number, isRare = isUnknownDomain) => {
    if (value !== 0 || !isRare) entries.push([prefix + stat, value]);
  };
  add("domain_not_found", counters.domainNotFound, true);
  add("returned_hits", counters.returnedHits, true);
  add("total_hits", counters.totalHits);
  add("over_limit", counters.overLimit);
  add("near_limit", counters.nearLimit);
  add("within_limit", counters.withinLimit);
  add("shadow_mode", counters.shadowMode);
  add("over_limit_with_local_cache", counters.overLimitWithLocalCache);
  for (const [unit, hits] of counters.overLimitPer ?? []) entries.push([prefix + overLimitPer(unit), hits]);
  return entries;
}

/** The counters of a metric key. */
const RULE_COUNTERS = [
  "totalHits",
  "overLimit",
  "nearLimit",
  "withinLimit",
  "shadowMode",
  "overLimitWithLocalCache",
  "returnedHits",
  "domainNotFound",
] as const satisfies readonly (keyof RuleCounters)[];

function emptyCounters(): RuleCounters {
  return {
    totalHits: 0,
    overLimit: 0,
    nearLimit: 0,
    withinLimit: 0,
    shadowMode: 0,
    overLimitWithLocalCache: 0,
    returnedHits: 0,
    domainNotFound: 0,
    overLimitPer: undefined,
  };
}

/** Adds the counts of a metric key to those of another one, or of another thread. */
export function addCounters(sums: RuleCounters, counts: RuleCounters): void {
  for (const name of RULE_COUNTERS) sums[name] += counts[name];
  if (counts.overLimitPer !== undefined) addRefusals(sums, counts.overLimitPer);
}

/** The statistics of one method's calls. */
interface ServerCalls {
  started(): void;
  /** A call ended, so many milliseconds after its start. */
  ended(ms: number): void;
}

/** Counts calls and their times for each method; methods of one name share them. */
export function serverCalls(stats: StatsStore): (method: string) => ServerCalls {
  const known = new Map<string, ServerCalls>();
  return (method) => {
    let calls = known.get(method);
    if (calls === undefined) known.set(method, calls = callsOf(stats, method));
    return calls;
  };
}

function callsOf(stats: StatsStore, method: string): ServerCalls {
  const group = methodMetrics(method);
  const { response_time: responseTime } = stats.addTimers(group);
  let total = 0;
  stats.addMetrics(group, { counters: { total_requests: () => total }, gauges: {} });
  return {
    started: () => void total++,
    ended: (ms) => responseTime.record(ms),
  };
}
