import type { Metrics } from "../base/metrics.ts";
import type { RuleCounters, ServiceCounters, StatsSink } from "../ratelimit/stats_sink.ts";
import { Timer, type TimerOptions } from "./timer.ts";

/** Longest metric key of a request that gets its own counters. */
const MAX_KEY_LENGTH = 1_024;
/** The key under which all keys beyond the limit are counted. */
const OTHER = "other";
/** How many keys of former rules are evicted at a load or a walk over all counters, and for each new key. */
const EVICTIONS_PER_LOAD = 2_000;
const EVICTIONS_PER_KEY = 16;
/** Domains that have their own key `other`. */
const MAX_DOMAINS = 10_000;
const SEPARATORS = /[:|\p{Cc}]/gu;
const IPV4_ADDRESS = /\d{1,3}(?:\.\d{1,3}){3}/g;

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
  /** Keys of the loaded rules with their domains; many may have no counters yet. */
  #loaded: ReadonlyMap<string, string> = new Map();
  /** How many keys have counters and no loaded rule. */
  #unloaded = 0;
  /** Keys of former rules that still have counters, with their domains. */
  readonly #former = new Map<string, string>();
  #overflowed = 0;

  /** Holds at most `maxKeys` metric keys in addition to those of loaded rules. */
  constructor(maxKeys: number, options: TimerOptions = {}) {
    this.#maxKeys = maxKeys;
    this.#timerOptions = options;
  }

  rule(metricKey: string, domain?: string): RuleCounters {
    const known = this.#byKey.get(metricKey);
    if (known !== undefined) return known;
    if (this.#loaded.has(metricKey)) return this.#create(metricKey);
    this.#evictFormer(EVICTIONS_PER_KEY);
    if (this.#unloaded < this.#maxKeys && metricKey.length <= MAX_KEY_LENGTH) {
      this.#unloaded++;
      return this.#create(metricKey);
    }
    this.#overflowed++;
    return this.#others(domain);
  }

  known(metricKey: string): RuleCounters | undefined {
    return this.#byKey.get(metricKey);
  }

  loadedRules(domainOfKey: ReadonlyMap<string, string>): void {
    const before = this.#loaded;
    this.#loaded = domainOfKey;
    for (const [key, domain] of before) {
      if (domainOfKey.has(key) || !this.#byKey.has(key)) continue;
      this.#former.set(key, domain);
      this.#unloaded++;
    }
    for (const key of domainOfKey.keys()) {
      if (before.has(key) || !this.#byKey.has(key)) continue;
      this.#former.delete(key);
      this.#unloaded--;
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

  /** Adds counters and gauges as `<prefix>.<name>`. */
  addMetrics(prefix: string, { counters, gauges }: Metrics): void {
    for (const [name, read] of Object.entries(counters)) this.addCounter(`${prefix}.${name}`, read);
    for (const [name, read] of Object.entries(gauges)) this.addGauge(`${prefix}.${name}`, read);
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
    yield* serviceEntries(this.service);
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
    if (this.#overflowed > 0) yield ["ratelimit.service.rate_limit_keys_overflowed", this.#overflowed];
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
    for (const [key, domain] of this.#former) {
      if (this.#unloaded <= this.#maxKeys || left-- === 0) return;
      this.#former.delete(key);
      this.#evict(key, domain);
    }
  }

  /** Evicts a key; its counts are added to the key `other` of its domain. */
  #evict(metricKey: string, domain: string): void {
    const counters = this.#byKey.get(metricKey);
    if (counters === undefined) return;
    this.#unloaded--;
    const other = this.#others(domain);
    this.#byKey.delete(metricKey);
    this.#overflowed++;
    // A rule may have the key `other`.
    if (counters === other) return;
    this.#byName.delete(sanitizeStatName(metricKey));
    for (const name of COUNTER_NAMES) other[name] += counters[name];
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

function serviceEntries(service: ServiceCounters): [string, number][] {
  return [
    ["ratelimit.service.global_shadow_mode", service.globalShadowMode],
    ["ratelimit.service.config_load_success", service.configLoadSuccess],
    ["ratelimit.service.config_load_error", service.configLoadError],
    ["ratelimit.service.call.should_rate_limit.service_error", service.serviceError],
    ["ratelimit.service.call.should_rate_limit.kv_error", service.kvError],
    ["ratelimit.service.call.should_rate_limit.mc_error", service.mcError],
    ...Object.entries(service.cacheFailure).map(([mode, count]): [string, number] => {
      return [`ratelimit.service.cache_failure.${mode}`, count];
    }),
  ];
}

function ruleEntries(name: string, counters: RuleCounters): [string, number][] {
  const prefix = `ratelimit.service.rate_limit.${name}.`;
  const entries: [string, number][] = [];
  if (counters.domainNotFound > 0) entries.push([`${prefix}domain_not_found`, counters.domainNotFound]);
  if (counters.returnedHits > 0) entries.push([`${prefix}returned_hits`, counters.returnedHits]);
  if (counters.domainNotFound > 0 && counters.totalHits === 0) return entries;
  entries.push(
    [`${prefix}total_hits`, counters.totalHits],
    [`${prefix}over_limit`, counters.overLimit],
    [`${prefix}near_limit`, counters.nearLimit],
    [`${prefix}within_limit`, counters.withinLimit],
    [`${prefix}shadow_mode`, counters.shadowMode],
    [`${prefix}over_limit_with_local_cache`, counters.overLimitWithLocalCache],
  );
  return entries;
}

const COUNTER_NAMES = [
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
  };
}

/** A metric key as it is printed: `_` for separators, control characters and the dots of IPv4 addresses. */
export function sanitizeStatName(name: string): string {
  return name.replace(SEPARATORS, "_").replace(IPV4_ADDRESS, (address) => address.replaceAll(".", "_"));
}

/** The statistics of one method's calls. */
export interface ServerCalls {
  started(): void;
  /** A call ended, so many milliseconds after its start. */
  ended(ms: number): void;
}

/** Counts calls and their times for each method, as `ratelimit_server.<method>.…`; methods of one name share them. */
export function serverCalls(stats: StatsStore): (method: string) => ServerCalls {
  const known = new Map<string, ServerCalls>();
  return (method) => {
    let calls = known.get(method);
    if (calls === undefined) known.set(method, calls = callsOf(stats, `ratelimit_server.${method}`));
    return calls;
  };
}

function callsOf(stats: StatsStore, prefix: string): ServerCalls {
  const responseTime = stats.timer(`${prefix}.response_time`);
  let total = 0;
  stats.addCounter(`${prefix}.total_requests`, () => total);
  return {
    started: () => void total++,
    ended: (ms) => responseTime.record(ms),
  };
}
