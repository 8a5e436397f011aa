import type { CacheFailureMode } from "./rule_source.ts";
import type { Unit } from "./units.ts";

/** The counters of one metric key, which are mutable. */
export interface RuleCounters {
  totalHits: number;
  overLimit: number;
  nearLimit: number;
  withinLimit: number;
  shadowMode: number;
  overLimitWithLocalCache: number;
  returnedHits: number;
  /** Descriptors of a domain without rules, which is then the metric key. */
  domainNotFound: number;
  /** Of a rule with several windows: the refused hits of each unit; undefined until there are some. */
  overLimitPer: Map<Unit, number> | undefined;
}

/** Adds the hits that the windows of a rule refused. */
export function addRefusals(counters: RuleCounters, refusals: ReadonlyMap<Unit, number>): void {
  for (const [unit, hits] of refusals) {
    counters.overLimitPer ??= new Map();
    counters.overLimitPer.set(unit, (counters.overLimitPer.get(unit) ?? 0) + hits);
  }
}

/** The counters of the service. */
export interface ServiceCounters {
  globalShadowMode: number;
  configLoadSuccess: number;
  configLoadError: number;
  /** Failed calls by kind. */
  serviceError: number;
  kvError: number;
  mcError: number;
  /** Descriptors that the cache did not count, by mode; calls in mode `error`. */
  readonly cacheFailure: Record<CacheFailureMode, number>;
}

/** Receives the statistics of the core. Methods neither wait nor throw. */
export interface StatsSink {
  readonly service: ServiceCounters;
  /** The counters of a metric key. Above the maximum number of keys, all keys of a domain share one set. */
  rule(metricKey: string, domain?: string): RuleCounters;
  /** The counters of a metric key, if there are any. */
  known(metricKey: string): RuleCounters | undefined;
  /**
   * Sets the metric keys of all loaded rules with their domains, which the maximum does not apply to. The caller goes
   * through the steps that are left in its own time, before the next call.
   */
  loadedRules(domainOfKey: ReadonlyMap<string, string>): Iterable<void>;
}
