import type { CacheFailureMode } from "./cache_failure_mode.ts";

/** The counters of one metric key. Held by reference and raised in place. */
export interface RuleCounters {
  totalHits: number;
  overLimit: number;
  nearLimit: number;
  withinLimit: number;
  shadowMode: number;
  overLimitWithLocalCache: number;
  /** Hits that were given back. */
  returnedHits: number;
  /** Descriptors that named a domain without rules; the metric key is then the domain. */
  domainNotFound: number;
}

/** The counters of the whole service. */
export interface ServiceCounters {
  /** Calls whose overall code global shadow mode turned into OK. */
  globalShadowMode: number;
  configLoadSuccess: number;
  configLoadError: number;
  /** Calls that were refused, by kind. */
  serviceError: number;
  kvError: number;
  mcError: number;
  /** What became of descriptors that the cache did not count; of `error`, the calls that it failed. */
  readonly cacheFailure: Record<CacheFailureMode, number>;
}

/** Where the core's numbers go. Nothing here waits or throws. */
export interface StatsSink {
  readonly service: ServiceCounters;
  /**
   * The counters of a metric key. The number of keys is bounded: beyond it all keys of a domain share one set, and so
   * do those without a domain.
   */
  rule(metricKey: string, domain?: string): RuleCounters;
  /** The same where something was counted; absent otherwise. */
  known(metricKey: string): RuleCounters | undefined;
  /**
   * Names the keys of all loaded rules, each with its domain. Each has its own counters whatever the bound; keys that
   * were loaded before and are not among them fall under the bound.
   */
  loadedRules(domainOfKey: ReadonlyMap<string, string>): void;
}
