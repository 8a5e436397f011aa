import type { Clock } from "../base/clock.ts";
import type { Caller, CounterCache, Hit } from "./counter_cache.ts";
import { decide, type Outcome, OVER_LIMIT_LOCALLY } from "./decide.ts";
import type { Decision } from "./decision.ts";
import { DecisionTally } from "./decision_tally.ts";
import { CacheError, InvalidRequestError, NoConfigurationError } from "./errors.ts";
import { type AskedHits, HitCounter } from "./hit_counter.ts";
import type { LocalCache } from "./local_cache.ts";
import { type Plan, planHits, type PlannedDescriptor } from "./plan.ts";
import type { Policy } from "./policy.ts";
import type { RateLimitRequest } from "./request.ts";
import { RuleCounts } from "./rule_counts.ts";
import type { RuleStats } from "./rule_stats.ts";
import type { Rules } from "./rules.ts";
import type { RuleCounters, StatsSink } from "./stats_sink.ts";
import { validateRequest } from "./validate.ts";

/** What the service works with. */
export interface RateLimitServiceOptions {
  readonly cache: CounterCache;
  /**
   * Counts for this instance where `local` is to while the cache fails. Absent with a cache that never
   * fails: such descriptors would fail their call. Closed by who made it.
   */
  readonly fallback?: CounterCache | undefined;
  /** Absent where over-limit keys are not remembered. */
  readonly localCache?: LocalCache | undefined;
  readonly stats: StatsSink;
  readonly policy: Policy;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
}

/** Rules and the counters of their metric keys, which are replaced together. */
interface Loaded {
  readonly rules: Rules;
  /** By `rule.index`, as far as they were asked for; absent where the metric key depends on the request. */
  readonly counters: (RuleCounters | undefined)[];
  readonly counts: RuleCounts;
}

/** A plan and what to move for it, by descriptor. */
interface Asked extends AskedHits {
  readonly loaded: Loaded;
  /** Where the statistics of a descriptor go; absent where nothing is counted. */
  readonly counters: (RuleCounters | undefined)[];
  /** Counts by descriptor; those of `hits` are filled in from the cache. */
  readonly counts: number[];
  /** For each of `hits`, the descriptor it belongs to. */
  readonly owners: number[];
}

const NO_KEYS: ReadonlySet<string> = new Set();

/** Answers rate limit requests: rules, plan, local cache, counts, decision, statistics. */
export class RateLimitService {
  /** What was decided. */
  readonly tally: DecisionTally = new DecisionTally();
  readonly #options: RateLimitServiceOptions;
  readonly #counter: HitCounter;
  #loaded: Loaded | undefined;

  constructor(options: RateLimitServiceOptions) {
    this.#options = options;
    this.#counter = new HitCounter(options);
  }

  /** Takes these rules for every call from now on; calls that are under way keep theirs. */
  setRules(rules: Rules): void {
    const { stats } = this.#options;
    stats.loadedRules(rules.metricKeys);
    const counts = new RuleCounts(rules, stats, this.#loaded?.counts);
    const counters = new Array<RuleCounters | undefined>(rules.limits.length).fill(undefined);
    this.#loaded = { rules, counters, counts };
  }

  /** The rules in force; absent before the first load. */
  get rules(): Rules | undefined {
    return this.#loaded?.rules;
  }

  /** What was counted for them. */
  get ruleCounts(): RuleCounts | undefined {
    return this.#loaded?.counts;
  }

  /**
   * Decides one request, at once where the cache answers at once. Hits of a caller that is gone before
   * they are sent need not be counted. Throws `InvalidRequestError`, `NoConfigurationError` or
   * `CacheError`, each counted.
   */
  shouldRateLimit(request: RateLimitRequest, caller?: Caller): Decision | Promise<Decision> {
    try {
      return this.#decide(request, caller);
    } catch (error) {
      return this.#fail(error);
    }
  }

  #decide(request: RateLimitRequest, caller: Caller | undefined): Decision | Promise<Decision> {
    validateRequest(request);
    const loaded = this.#loaded;
    if (loaded === undefined) throw new NoConfigurationError();
    const { clock, random, policy } = this.#options;
    const nowSeconds = Math.floor(clock.now() / 1000);
    const plan = planHits(loaded.rules, request, { nowSeconds, random, policy });
    const asked = this.#ask(loaded, plan, nowSeconds);
    const asking = policy.stopIncrementWhenOverLimit ? since(clock.now(), caller) : caller;
    let counts: number[] | Promise<number[]>;
    try {
      counts = this.#counter.count(asked, asking);
    } catch (error) {
      return this.#recover(asked, error, asking);
    }
    if (!(counts instanceof Promise)) return this.#finish(asked, counts, nowSeconds);
    return counts
      .then((after) => this.#finish(asked, after, Math.floor(clock.now() / 1000)))
      .catch((error) => this.#recover(asked, error, asking));
  }

  /**
   * Counts all hits, before the cache is asked, so that they are seen even when it fails. Takes out
   * what the local cache knows to be over; the shared cache is asked for the rest.
   */
  #ask(loaded: Loaded, plan: Plan, nowSeconds: number): Asked {
    const { localCache, stats } = this.#options;
    const { descriptors } = plan;
    const asked: Asked = { loaded, plan, counters: [], counts: [], hits: [], owners: [], reading: false };
    if (!plan.domainKnown) stats.rule(plan.request.domain).domainNotFound += descriptors.length;
    for (let index = 0; index < descriptors.length; index++) {
      const planned = descriptors[index];
      const hit = planned?.hit;
      asked.counts.push(0);
      asked.counters.push(undefined);
      if (planned === undefined || hit === undefined) continue;
      const counters = countersOf(loaded, planned, stats, plan.request.domain);
      asked.counters[index] = counters;
      if (!planned.negative) counters.totalHits += planned.hits;
      if (localCache !== undefined && !planned.negative && knownOver(localCache, hit, planned, nowSeconds)) {
        asked.counts[index] = OVER_LIMIT_LOCALLY;
        continue;
      }
      asked.hits.push(hit);
      asked.owners.push(index);
    }
    return asked;
  }

  /** Decides a call whose cache failed, where its descriptors let it go on. */
  async #recover(asked: Asked, error: unknown, caller: Caller | undefined): Promise<Decision> {
    // That hits of a caller that is gone were not sent is no failure of the cache.
    if (caller?.gone === true) throw error;
    const { clock, stats: { service } } = this.#options;
    try {
      const { counts, modes } = await this.#counter.recover(asked, error, caller);
      this.#countError(error);
      const untaught = new Set<string>();
      for (const [position, mode] of modes.entries()) {
        if (mode === undefined) continue;
        service.cacheFailure[mode]++;
        untaught.add(asked.hits[position]?.key ?? "");
      }
      return this.#finish(asked, counts, Math.floor(clock.now() / 1000), untaught);
    } catch (failure) {
      return this.#fail(failure);
    }
  }

  /** The keys in `untaught` were not counted by the shared cache: nothing is remembered of them. */
  #finish(asked: Asked, after: readonly number[], nowSeconds: number, untaught = NO_KEYS): Decision {
    const { policy } = this.#options;
    const { owners, counts } = asked;
    for (let position = 0; position < owners.length; position++) {
      counts[owners[position] ?? 0] = after[position] ?? 0;
    }
    const outcome = decide(asked.plan, counts, policy, nowSeconds);
    this.#record(asked, outcome, nowSeconds);
    this.#teach(asked.plan, outcome, nowSeconds, untaught);
    return outcome.decision;
  }

  #record(asked: Asked, outcome: Outcome, nowSeconds: number): void {
    this.tally.note(outcome.decision);
    if (outcome.globalShadow) this.#options.stats.service.globalShadowMode++;
    for (let index = 0; index < outcome.stats.length; index++) {
      const stats = outcome.stats[index];
      const counters = asked.counters[index];
      if (stats === undefined || counters === undefined) continue;
      counters.overLimit += stats.overLimit;
      counters.nearLimit += stats.nearLimit;
      counters.withinLimit += stats.withinLimit;
      counters.shadowMode += stats.shadowMode;
      counters.overLimitWithLocalCache += stats.overLimitWithLocalCache;
      counters.returnedHits += stats.returnedHits;
      const planned = asked.plan.descriptors[index];
      if (planned === undefined) continue;
      asked.loaded.counts.add(planned, stats);
      if (stats.overLimit > 0 && planned.hit !== undefined) {
        this.#noteOverLimit(planned.hit, stats, nowSeconds);
      }
    }
  }

  #noteOverLimit({ key }: Hit, { overLimit: hits }: RuleStats, nowSeconds: number): void {
    this.tally.noteOverLimit({ key, prefix: this.#options.policy.cacheKeyPrefix, hits }, nowSeconds);
  }

  #teach(plan: Plan, outcome: Outcome, nowSeconds: number, untaught: ReadonlySet<string>): void {
    const { localCache } = this.#options;
    if (localCache === undefined) return;
    for (const { key, count, windowEnd } of outcome.overLimitKeys) {
      if (!untaught.has(key)) localCache.set(key, count, windowEnd, nowSeconds);
    }
    for (const { negative, hit } of plan.descriptors) {
      if (negative && hit !== undefined) localCache.forget(hit.key);
    }
  }

  #fail(error: unknown): never {
    if (error instanceof CacheError) this.#options.stats.service.cacheFailure.error++;
    this.#countError(error);
    throw error;
  }

  #countError(error: unknown): void {
    const { service } = this.#options.stats;
    const isOfCache = error instanceof CacheError || error instanceof InvalidRequestError;
    const backend = isOfCache ? error.backend : undefined;
    if (backend === undefined) service.serviceError++;
    else if (backend === "mc") service.mcError++;
    else service.kvError++;
  }
}

/** A caller who asks twice, first for what there is, and has the time of one asking. */
function since(now: number, caller: Caller | undefined): Caller {
  return {
    get gone() {
      return caller?.gone === true;
    },
    since: now,
  };
}

/** Where a descriptor's statistics go; found once for a rule whose metric key is always the same. */
function countersOf(
  { counters }: Loaded,
  planned: PlannedDescriptor,
  stats: StatsSink,
  domain: string,
): RuleCounters {
  const rule = planned.limit?.rule;
  const known = rule === undefined ? undefined : counters[rule.index];
  if (known !== undefined) return known;
  const found = stats.rule(planned.metricKey, domain);
  if (rule?.metricKey !== undefined) counters[rule.index] = found;
  return found;
}

/** The count that is remembered is compared with the limit of this call: a raised limit passes. */
function knownOver(
  localCache: LocalCache,
  hit: Hit,
  planned: PlannedDescriptor,
  nowSeconds: number,
): boolean {
  const count = localCache.get(hit.key, nowSeconds);
  if (count === undefined || planned.limit === undefined) return false;
  return count + Math.min(planned.hits, 1) > planned.limit.requestsPerUnit;
}
