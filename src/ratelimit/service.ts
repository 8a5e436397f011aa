import type { Clock } from "../base/clock.ts";
import type { CounterCache, Hit } from "./counter_cache.ts";
import { decide, type Outcome, OVER_LIMIT_LOCALLY } from "./decide.ts";
import type { Decision } from "./decision.ts";
import { CacheError, NoConfigurationError } from "./errors.ts";
import type { LocalCache } from "./local_cache.ts";
import { type Plan, planHits, type PlannedDescriptor } from "./plan.ts";
import type { Policy } from "./policy.ts";
import type { RateLimitRequest } from "./request.ts";
import type { Rules } from "./rules.ts";
import type { RuleCounters, StatsSink } from "./stats_sink.ts";
import { validateRequest } from "./validate.ts";

/** What the service works with. */
export interface RateLimitServiceOptions {
  readonly cache: CounterCache;
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
  /** By `rule.index`; absent where the metric key depends on the request. */
  readonly counters: readonly (RuleCounters | undefined)[];
}

/** A plan and what to move for it, by descriptor. */
interface Asked {
  readonly plan: Plan;
  /** Where the statistics of a descriptor go; absent where nothing is counted. */
  readonly counters: (RuleCounters | undefined)[];
  /** Counts by descriptor; those of `hits` are filled in from the cache. */
  readonly counts: number[];
  readonly hits: Hit[];
  /** For each of `hits`, the descriptor it belongs to. */
  readonly owners: number[];
}

/** Answers rate limit requests: rules, plan, local cache, counts, decision, statistics. */
export class RateLimitService {
  readonly #options: RateLimitServiceOptions;
  #loaded: Loaded | undefined;

  constructor(options: RateLimitServiceOptions) {
    this.#options = options;
  }

  /** Takes these rules for every call from now on; calls that are under way keep theirs. */
  setRules(rules: Rules): void {
    const keys = rules.limits.flatMap(({ rule, unlimited }) =>
      rule?.metricKey === undefined || unlimited ? [] : [rule.metricKey]
    );
    const loaded = this.#options.stats.loadedRules(keys);
    const byKey = new Map(keys.map((key, position) => [key, loaded[position]]));
    const counters = rules.limits.map(({ rule }) =>
      rule?.metricKey === undefined ? undefined : byKey.get(rule.metricKey)
    );
    this.#loaded = { rules, counters };
  }

  /** The rules in force; absent before the first load. */
  get rules(): Rules | undefined {
    return this.#loaded?.rules;
  }

  /**
   * Decides one request, at once where the cache answers at once. Throws `InvalidRequestError`,
   * `NoConfigurationError` or `CacheError`, each counted.
   */
  shouldRateLimit(request: RateLimitRequest): Decision | Promise<Decision> {
    try {
      const decision = this.#decide(request);
      return decision instanceof Promise ? decision.catch((error) => this.#fail(error)) : decision;
    } catch (error) {
      return this.#fail(error);
    }
  }

  #decide(request: RateLimitRequest): Decision | Promise<Decision> {
    validateRequest(request);
    const loaded = this.#loaded;
    if (loaded === undefined) throw new NoConfigurationError();
    const { clock, random, policy } = this.#options;
    const nowSeconds = Math.floor(clock.now() / 1000);
    const plan = planHits(loaded.rules, request, { nowSeconds, random, policy });
    const asked = this.#ask(loaded, plan, nowSeconds);
    const counts = this.#count(asked);
    if (!(counts instanceof Promise)) return this.#finish(asked, counts, nowSeconds);
    return counts.then((after) => this.#finish(asked, after, Math.floor(clock.now() / 1000)));
  }

  /**
   * Counts all hits, before the cache is asked, so that they are seen even when it fails. Takes out
   * what the local cache knows to be over; the shared cache is asked for the rest.
   */
  #ask(loaded: Loaded, plan: Plan, nowSeconds: number): Asked {
    const { localCache, stats } = this.#options;
    const { descriptors } = plan;
    const asked: Asked = { plan, counters: [], counts: [], hits: [], owners: [] };
    if (!plan.domainKnown) stats.rule(plan.request.domain).domainNotFound += descriptors.length;
    for (let index = 0; index < descriptors.length; index++) {
      const planned = descriptors[index];
      const hit = planned?.hit;
      asked.counts.push(0);
      asked.counters.push(undefined);
      if (planned === undefined || hit === undefined) continue;
      const counters = countersOf(loaded, planned) ?? stats.rule(planned.metricKey);
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

  #count(asked: Asked): number[] | Promise<number[]> {
    const { cache, policy } = this.#options;
    if (asked.hits.length === 0) return [];
    const alone = asked.plan.descriptors.length === 1;
    if (!policy.stopIncrementWhenOverLimit || alone) return cache.add(asked.hits);
    if (asked.counts.includes(OVER_LIMIT_LOCALLY)) return cache.add(asked.hits.map(readOnly));
    const before = cache.read(asked.hits);
    if (before instanceof Promise) return before.then((counts) => cache.add(hitsToAdd(asked, counts)));
    return cache.add(hitsToAdd(asked, before));
  }

  #finish(asked: Asked, after: readonly number[], nowSeconds: number): Decision {
    const { policy } = this.#options;
    const { owners, counts } = asked;
    for (let position = 0; position < owners.length; position++) {
      counts[owners[position] ?? 0] = after[position] ?? 0;
    }
    const outcome = decide(asked.plan, counts, policy, nowSeconds);
    this.#record(asked, outcome);
    this.#teach(asked.plan, outcome, nowSeconds);
    return outcome.decision;
  }

  #record(asked: Asked, outcome: Outcome): void {
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
    }
  }

  #teach(plan: Plan, outcome: Outcome, nowSeconds: number): void {
    const { localCache } = this.#options;
    if (localCache === undefined) return;
    for (const { key, count, windowEnd } of outcome.overLimitKeys) {
      localCache.set(key, count, windowEnd, nowSeconds);
    }
    for (const { negative, hit } of plan.descriptors) {
      if (negative && hit !== undefined) localCache.forget(hit.key);
    }
  }

  #fail(error: unknown): never {
    const { service } = this.#options.stats;
    if (error instanceof CacheError) {
      if (error.backend === "mc") service.mcError++;
      else service.kvError++;
    } else {
      service.serviceError++;
    }
    throw error;
  }
}

/** Where a descriptor's statistics go when its rule's metric key is always the same. */
function countersOf(loaded: Loaded, planned: PlannedDescriptor): RuleCounters | undefined {
  const index = planned.limit?.rule?.index;
  return index === undefined ? undefined : loaded.counters[index];
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

/** When some key would go over its limit, only such keys are added to; the others are only read. */
function hitsToAdd(asked: Asked, before: readonly number[]): Hit[] {
  const wouldExceed = asked.hits.map((hit, position) => {
    const limit = asked.plan.descriptors[asked.owners[position] ?? -1]?.limit;
    return limit !== undefined && hit.addend > 0 &&
      (before[position] ?? 0) + hit.addend > limit.requestsPerUnit;
  });
  if (!wouldExceed.includes(true)) return asked.hits;
  return asked.hits.map((hit, position) => wouldExceed[position] === true ? hit : readOnly(hit));
}

function readOnly(hit: Hit): Hit {
  return hit.addend <= 0 ? hit : { ...hit, addend: 0 };
}
