import type { Figures } from "../base/figures.ts";
import type { RuleCounters, ServiceCounters, StatsSink } from "../ratelimit/stats_sink.ts";
import { sanitizeStatName } from "./stat_name.ts";
import { Timer, type TimerOptions } from "./timer.ts";

/** Longest metric key that comes from a request and gets counters of its own. */
const MAX_KEY_LENGTH = 1_024;
/** What stands for all keys that have no room. */
const OTHER = "other";
/** How many keys of former rules are folded at a load or a walk over all counters, and for each new key. */
const FOLDS_PER_LOAD = 2_000;
const FOLDS_PER_KEY = 16;
/** Domains whose keys without room are counted apart from those of others. */
const MAX_DOMAINS = 10_000;

/** What every sink reads from: all counters of the process, by full name. */
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
  /** By metric key as it was asked for, so that a name is made fit to print once only. */
  readonly #byKey = new Map<string, RuleCounters>();
  /** Those that count for keys without room; one a domain that rules were loaded of. */
  readonly #othersByKey = new Map<string, RuleCounters>();
  /** By the name that is printed; two keys that print alike share their counters. */
  readonly #byName = new Map<string, RuleCounters>();
  readonly #gauges = new Map<string, () => number>();
  readonly #counters = new Map<string, () => number>();
  readonly #timers = new Map<string, Timer>();
  readonly #timerOptions: TimerOptions;
  /** Keys of the rules that are loaded, with their domains; many may have no counters yet. */
  #loaded: ReadonlyMap<string, string> = new Map();
  /** How many keys have counters and are not those of loaded rules. */
  #unloaded = 0;
  /** Keys of rules that are gone and still have counters, with their domains. */
  readonly #former = new Map<string, string>();
  #folded = 0;

  /** Holds at most `maxKeys` metric keys beside those of loaded rules. */
  constructor(maxKeys: number, options: TimerOptions = {}) {
    this.#maxKeys = maxKeys;
    this.#timerOptions = options;
  }

  rule(metricKey: string, domain?: string): RuleCounters {
    const known = this.#byKey.get(metricKey);
    if (known !== undefined) return known;
    if (this.#loaded.has(metricKey)) return this.#make(metricKey);
    this.#foldFormer(FOLDS_PER_KEY);
    if (this.#unloaded < this.#maxKeys && metricKey.length <= MAX_KEY_LENGTH) {
      this.#unloaded++;
      return this.#make(metricKey);
    }
    this.#folded++;
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
    this.#foldFormer(FOLDS_PER_LOAD);
  }

  /** Shows a number under this name from now on; read whenever somebody looks. */
  addGauge(name: string, read: () => number): void {
    this.#gauges.set(name, read);
  }

  /** The same for a number that only grows. */
  addCounter(name: string, read: () => number): void {
    this.#counters.set(name, read);
  }

  /** Shows many numbers under names that begin alike: `<prefix>.<name>`. */
  addFigures(prefix: string, { counters, gauges }: Figures): void {
    for (const [name, read] of Object.entries(counters)) this.addCounter(`${prefix}.${name}`, read);
    for (const [name, read] of Object.entries(gauges)) this.addGauge(`${prefix}.${name}`, read);
  }

  /** The timer of this name, made when it is first asked for. Who records holds it by reference. */
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

  /**
   * Every counter by its full name, zeros of loaded rules included. One by one, so that who has the time
   * can walk over many of them with pauses.
   */
  *counters(): Generator<readonly [string, number]> {
    yield* serviceEntries(this.service);
    for (const [name, read] of this.#counters) yield [name, read()];
    this.#foldFormer(FOLDS_PER_LOAD);
    for (const [name, counters] of this.#byName) yield* ruleEntries(name, counters);
    const loaded = this.#loaded;
    for (const key of loaded.keys()) {
      // Others were loaded while the walk had a pause.
      if (loaded !== this.#loaded) break;
      if (this.#byKey.has(key)) continue;
      const name = sanitizeStatName(key);
      const isShown = this.#byName.has(name);
      const counters = this.#make(key);
      if (!isShown) yield* ruleEntries(name, counters);
    }
    if (this.#folded > 0) yield ["ratelimit.service.rate_limit_keys_overflowed", this.#folded];
  }

  /** Every gauge by its full name. */
  gauges(): Map<string, number> {
    return new Map([...this.#gauges].map(([name, read]) => [name, read()]));
  }

  /** What counts for the keys of a domain that have no room: they look like a rule with the key `other`. */
  #others(domain: string | undefined): RuleCounters {
    const metricKey = domain === undefined ? OTHER : `${domain}.${OTHER}`;
    const known = this.#othersByKey.get(metricKey);
    if (known !== undefined) return known;
    const hasRoom = metricKey === OTHER || this.#othersByKey.size < MAX_DOMAINS;
    return hasRoom ? this.#make(metricKey, this.#othersByKey) : this.#others(undefined);
  }

  /** Folds some of the keys of rules that are gone, as far as they have no room; folding all at once would take long. */
  #foldFormer(most: number): void {
    let left = most;
    for (const [key, domain] of this.#former) {
      if (this.#unloaded <= this.#maxKeys || left-- === 0) return;
      this.#former.delete(key);
      this.#fold(key, domain);
    }
  }

  /** Takes a key out; what it counted stays counted among the others of its domain. */
  #fold(metricKey: string, domain: string): void {
    const counters = this.#byKey.get(metricKey);
    if (counters === undefined) return;
    this.#unloaded--;
    const other = this.#others(domain);
    this.#byKey.delete(metricKey);
    this.#folded++;
    // A rule may have the key that stands for all.
    if (counters === other) return;
    this.#byName.delete(sanitizeStatName(metricKey));
    for (const name of COUNTER_NAMES) other[name] += counters[name];
  }

  #make(metricKey: string, byKey = this.#byKey): RuleCounters {
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
