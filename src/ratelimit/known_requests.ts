import type { Clock } from "../base/clock.ts";
import {
  type Caller,
  type CountReceiver,
  type LocalCache,
  RepeatedHit,
  type TakingPlace,
} from "./counter_cache.ts";
import type { Decision } from "./decision.ts";
import type { HitCounterOptions } from "./hit_counter.ts";
import { type FormOf, isRepeatable, type KnownPlan, KnownPlans, KnownResponse } from "./known_plans.ts";
import { type AnyHit, isConditional, type Plan, planHits, type PlannedDescriptor } from "./plan.ts";
import type { RateLimitRequest } from "./request.ts";
import { nearLimitThreshold } from "./rule_stats.ts";
import type { Rules } from "./rules.ts";
import type { RuleCounters } from "./stats_sink.ts";
import { secondsUntilReset, wholeSeconds } from "./window.ts";

/** What known requests share with the service that decides all others. */
export interface KnownRequestsOptions extends HitCounterOptions {
  readonly localCache?: LocalCache | undefined;
  readonly clock: Clock;
  readonly random: () => number;
}

/** What transports call of the known requests. */
export type KnownDecider = Pick<KnownRequests, "countsHere" | "count" | "sharedPlan" | "decide" | "learn">;

/** What a shared cache returned for a hit. */
export type CountOutcome = { readonly count: number } | {
  readonly error: unknown;
  readonly caller: Caller;
};

/** The service that decides all other requests. */
export interface DecidingService {
  readonly tally: { total: number };
  rules(): Rules | undefined;
  countersOf(planned: PlannedDescriptor, domain: string): RuleCounters;
  decide(request: RateLimitRequest, caller: Caller): Decision | Promise<Decision>;
  /** Decides a plan with one hit, whose total is counted already. */
  finish(plan: Plan, counters: RuleCounters, outcome: CountOutcome): Decision | Promise<Decision>;
}

/** Receives the decision of a request that a shared cache counts; one method is called once. */
export interface KnownReceiver {
  /** The response is valid during the call. */
  responded(response: KnownResponse): void;
  decided(decision: Decision): void;
  failed(error: unknown): void;
}

/**
 * Decides requests that are known by their bytes, without reading them. All others, and those with an unusual outcome,
 * are decided by the service, with equal effects.
 */
export class KnownRequests {
  readonly #options: KnownRequestsOptions;
  readonly #service: DecidingService;
  /** Whether responses depend on nothing but one rule and its count. */
  readonly #learns: boolean;
  /** Created after the first request. */
  #plans: KnownPlans | undefined;
  readonly #response = new KnownResponse();
  /** The time of the last known request, in seconds since the epoch. */
  #nowSeconds = 0;
  readonly #outcomes: KnownOutcomes = {
    respond: (known, count) => {
      if (count < known.hits || count > known.requestsPerUnit) return undefined;
      this.#nowSeconds = Math.floor(this.#options.clock.now() / 1000);
      return this.#respond(known, count);
    },
    finish: (plan, counters, outcome) => this.#service.finish(plan, counters, outcome),
  };

  constructor(options: KnownRequestsOptions, service: DecidingService) {
    this.#options = options;
    this.#service = service;
    const { policy, cache } = options;
    this.#learns = policy.responseHeaders === undefined && !policy.standardHeaders &&
      !policy.dynamicMetadata && !policy.shadowMode &&
      !policy.quotaMode && (cache.placeOf !== undefined || cache.addOne !== undefined);
  }

  /** Whether this process counts known requests, by `count`; otherwise a shared cache may, by `decide`. */
  get countsHere(): boolean {
    return this.#learns && this.#options.cache.placeOf !== undefined;
  }

  /**
   * Decides the request between two positions if it is known, counted in this process and within its limit; otherwise
   * nothing is counted. The response is valid until the next call.
   */
  count(bytes: Uint8Array, start: number, end: number): KnownResponse | undefined {
    const known = this.#find(bytes, start, end);
    if (known?.taking !== undefined) return this.#take(known, known.taking);
    const after = known?.place?.addWithin(known.requestsPerUnit, known.hits);
    if (known === undefined || after === undefined) return undefined;
    known.counters.totalHits += known.hits;
    return this.#respond(known, after);
  }

  #take(known: KnownPlan, place: TakingPlace): KnownResponse | undefined {
    const taken = place.take(known.hits);
    if (taken === undefined) return undefined;
    known.counters.totalHits += known.hits;
    this.#record(known, taken.used);
    return this.#responseOf(known, taken.available, wholeSeconds(taken.freeMs));
  }

  /** The plan of a request that is counted by a shared cache, if it is known. */
  sharedPlan(bytes: Uint8Array): KnownPlan | undefined {
    return this.#find(bytes, 0, bytes.length);
  }

  /** Decides a request by the plan that `sharedPlan` returned in the same turn. */
  decide(known: KnownPlan, caller: Caller, receiver: KnownReceiver): void {
    const { cache, localCache } = this.#options;
    const { plan, hit, counters, hits } = known;
    if (plan === undefined || hit === undefined) {
      return receiver.failed(new Error("A plan without its request is counted here"));
    }
    if (localCache?.get(hit.key, this.#nowSeconds) !== undefined) {
      return void settle(() => this.#service.decide(plan.request, caller), receiver);
    }
    counters.totalHits += hits;
    const call = new KnownCall(known, plan, { caller, receiver, outcomes: this.#outcomes });
    try {
      cache.addOne?.(hit, caller, call);
    } catch (error) {
      call.failed(error);
    }
  }

  /** Remembers the request of the last of these calls, in the same turn, after it was decided otherwise. */
  learn(bytes: Uint8Array, request: RateLimitRequest, formOf: FormOf): void {
    if (!this.#learns) return;
    const { clock, random, policy, localCache } = this.#options;
    const plans = this.#plans ??= new KnownPlans(random);
    const rules = this.#service.rules();
    if (!plans.isAdmitted || rules === undefined) return;
    const nowSeconds = Math.floor(clock.now() / 1000);
    const plan = planHits(rules, request, { nowSeconds, random, policy });
    const [planned] = plan.descriptors;
    const { hit, limit } = planned ?? {};
    if (planned === undefined || hit === undefined || limit?.current === undefined) return;
    if (!isRepeatable(plan)) return;
    const form = formOf(limit.current);
    if (form === undefined || localCache?.get(hit.key, nowSeconds) !== undefined) return;
    const counted = this.#counted(plan, hit);
    if (counted === undefined) return;
    const most = limit.conditional?.capacity ?? limit.requestsPerUnit;
    // No spread: fields after one would be stored apart from the object, which makes every known request slower.
    plans.put(bytes, {
      plan: counted.plan,
      windowEnd: counted.windowEnd,
      windowSeconds: counted.taking === undefined ? limit.windowSeconds : Infinity,
      hits: planned.hits,
      requestsPerUnit: most,
      nearLimit: nearLimitThreshold(most, policy.nearLimitRatio),
      counters: this.#service.countersOf(planned, request.domain),
      form,
      place: counted.place,
      taking: counted.taking,
      hit: counted.hit,
    });
  }

  /** Drops what was learned, because the rules changed. */
  dropPlans(): void {
    this.#plans?.dropPlans();
  }

  /** Where a hit is counted; undefined if it is not counted in a way that can be repeated. */
  #counted(plan: Plan, hit: AnyHit): CountedPlan | undefined {
    const { cache } = this.#options;
    if (isConditional(hit)) {
      const taking = cache.takingPlaceOf?.(hit);
      if (taking === undefined) return undefined;
      return { plan: undefined, windowEnd: Infinity, place: undefined, taking, hit: undefined };
    }
    const place = cache.placeOf?.(hit);
    if (place === undefined && cache.placeOf !== undefined) return undefined;
    return {
      plan: place === undefined ? plan : undefined,
      windowEnd: hit.windowEnd,
      place,
      taking: undefined,
      hit: new RepeatedHit(hit),
    };
  }

  #find(bytes: Uint8Array, start: number, end: number): KnownPlan | undefined {
    const known = this.#plans?.find(bytes, start, end);
    if (known === undefined) return undefined;
    this.#nowSeconds = Math.floor(this.#options.clock.now() / 1000);
    const rest = known.windowEnd - this.#nowSeconds;
    return rest > 0 && rest <= known.windowSeconds ? known : undefined;
  }

  /** Records a request that is within its limit, and responds. */
  #respond(known: KnownPlan, after: number): KnownResponse {
    this.#record(known, after);
    const reset = secondsUntilReset(this.#nowSeconds, known.windowSeconds);
    return this.#responseOf(known, known.requestsPerUnit - after, reset);
  }

  #record({ hits, nearLimit, counters }: KnownPlan, after: number): void {
    counters.withinLimit += hits;
    if (after > nearLimit) counters.nearLimit += Math.min(hits, after - nearLimit);
    this.#service.tally.total++;
  }

  #responseOf({ form }: KnownPlan, limitRemaining: number, secondsUntilReset: number): KnownResponse {
    const response = this.#response;
    response.form = form;
    response.limitRemaining = limitRemaining;
    response.secondsUntilReset = secondsUntilReset;
    return response;
  }
}

type CountedPlan = Pick<KnownPlan, "plan" | "windowEnd" | "place" | "taking" | "hit">;

/** What becomes of the outcomes of a shared cache. */
interface KnownOutcomes extends Pick<DecidingService, "finish"> {
  /** The response, unless the count is unusual. */
  respond(known: KnownPlan, count: number): KnownResponse | undefined;
}

interface KnownCallOptions {
  readonly caller: Caller;
  readonly receiver: KnownReceiver;
  readonly outcomes: KnownOutcomes;
}

/** A known request that waits for the count of a shared cache. */
class KnownCall implements CountReceiver {
  readonly #known: KnownPlan;
  readonly #plan: Plan;
  readonly #caller: Caller;
  readonly #receiver: KnownReceiver;
  readonly #outcomes: KnownOutcomes;

  constructor(known: KnownPlan, plan: Plan, { caller, receiver, outcomes }: KnownCallOptions) {
    this.#known = known;
    this.#plan = plan;
    this.#caller = caller;
    this.#receiver = receiver;
    this.#outcomes = outcomes;
  }

  counted(count: number): void {
    const response = this.#outcomes.respond(this.#known, count);
    if (response === undefined) this.#finish({ count });
    else this.#receiver.responded(response);
  }

  failed(error: unknown): void {
    this.#finish({ error, caller: this.#caller });
  }

  #finish(outcome: CountOutcome): void {
    void settle(() => this.#outcomes.finish(this.#plan, this.#known.counters, outcome), this.#receiver);
  }
}

/** Gives a receiver the outcome of a decision. */
async function settle(
  decide: () => Decision | Promise<Decision>,
  receiver: KnownReceiver,
): Promise<void> {
  try {
    receiver.decided(await decide());
  } catch (error) {
    receiver.failed(error);
  }
}
