import type { CacheFailureMode } from "../rule_source.ts";
import type { Counted } from "../algorithms/taken.ts";
import type { AnyHit, Caller, CounterCache } from "./counter_cache.ts";
import { ALLOWED_UNCOUNTED, DENIED_UNCOUNTED, isKnownOverLimit } from "./decide_count.ts";
import { CacheError } from "../errors.ts";
import type { Plan } from "./plan.ts";
import type { Policy } from "./policy.ts";
import type { RateLimit } from "../rules/rules.ts";
import { type Answers, areCounted, countsOf, errorOf, takeHits, Uncounted } from "./take_hits.ts";

/** Options of the hit counter. */
export interface HitCounterOptions {
  readonly cache: CounterCache;
  /** Counts for mode `local`; without it, that mode is an error. */
  readonly fallback?: CounterCache | undefined;
  readonly policy: Policy;
}

/** A plan and its hits for the cache. */
export interface PlannedHits {
  readonly plan: Plan;
  /** Of what the plan counts; set already if the local cache knows the key. */
  readonly counts: readonly Counted[];
  hits: AnyHit[];
  /** The index of each hit in what the plan counts. */
  readonly owners: readonly number[];
  /** True while the first of two steps, which only reads, is in progress. */
  isReading: boolean;
}

/** The counts of a call after the cache failed, by position of the hits. */
interface Recovered {
  readonly counts: Counted[];
  /** Undefined if the cache counted. */
  readonly modes: (CacheFailureMode | undefined)[];
}

const UNCOUNTED = { allow: ALLOWED_UNCOUNTED, deny: DENIED_UNCOUNTED, local: 0 } as const;

/**
 * Counts the hits of a call in the shared cache, and applies the failure modes when it fails. Hits that an overloaded
 * cache does not take are over their limit: clients could reach any other answer by more requests.
 */
export class HitCounter {
  readonly #options: HitCounterOptions;

  constructor(options: HitCounterOptions) {
    this.#options = options;
  }

  /** Returns the counts after the hits. Pass answers that are not all counts to `recover`. */
  count(planned: PlannedHits, caller: Caller | undefined): Answers | Promise<Answers> {
    const { cache, policy } = this.#options;
    if (planned.hits.length === 0) return [];
    const alone = planned.plan.descriptors.length === 1;
    if (!policy.stopIncrementWhenOverLimit || alone) return takeHits(cache, planned.hits, caller);
    if (planned.counts.some(isKnownOverLimit)) {
      planned.hits = planned.hits.map(readOnly);
      return takeHits(cache, planned.hits, caller);
    }
    planned.isReading = true;
    const before = takeHits(cache, planned.hits.map(reading), caller);
    if (before instanceof Promise) return before.then((answers) => this.#addAfter(planned, answers, caller));
    return this.#addAfter(planned, before, caller);
  }

  /** Decides on the hits that the cache did not count. Throws the error in mode `error`. */
  async recover(planned: PlannedHits, answers: Answers, caller: Caller | undefined): Promise<Recovered> {
    const recovered: Recovered = {
      counts: planned.hits.map(() => 0),
      modes: planned.hits.map(() => undefined),
    };
    this.#apply(planned, recovered, answers, [...planned.hits.keys()]);
    if (planned.isReading) await this.#addToRest(planned, recovered, caller);
    await this.#useFallback(recovered, hitsAt(planned.hits, positionsOf(recovered, "local")));
    return recovered;
  }

  #addAfter(
    planned: PlannedHits,
    before: Answers,
    caller: Caller | undefined,
  ): Answers | Promise<Answers> {
    if (!areCounted(before)) return before;
    planned.isReading = false;
    planned.hits = hitsToAdd(planned, before);
    return takeHits(this.#options.cache, planned.hits, caller);
  }

  /** Notes the answers to the hits at these positions. */
  #apply(planned: PlannedHits, recovered: Recovered, answers: Answers, positions: readonly number[]): void {
    const { policy, fallback } = this.#options;
    const failure = areCounted(answers) ? undefined : errorOf(answers);
    if (failure !== undefined && !(failure instanceof CacheError)) throw failure;
    for (const [index, position] of positions.entries()) {
      const answer = answers[index] ?? 0;
      if (!(answer instanceof Uncounted)) {
        recovered.counts[position] = answer;
        continue;
      }
      const isOverload = answer.error instanceof CacheError && answer.error.isOverload;
      const mode = isOverload ? "deny" : limitOf(planned, position)?.onCacheFailure ?? policy.onCacheFailure;
      if (mode === "error" || (mode === "local" && fallback === undefined)) throw failure;
      recovered.modes[position] = mode;
      recovered.counts[position] = UNCOUNTED[mode];
    }
  }

  /** After a read that failed in part: adds to the counters that were read. */
  async #addToRest(planned: PlannedHits, recovered: Recovered, caller: Caller | undefined): Promise<void> {
    const local = hitsAt(planned.hits.map(reading), positionsOf(recovered, "local"));
    await this.#useFallback(recovered, local);
    planned.hits = hitsToAdd(planned, recovered.counts);
    const positions = positionsOf(recovered, undefined);
    if (positions.length === 0) return;
    const answers = await takeHits(this.#options.cache, hitsAt(planned.hits, positions), caller);
    this.#apply(planned, recovered, answers, positions);
  }

  /** Takes the hits of mode `local`. */
  async #useFallback(recovered: Recovered, hits: readonly AnyHit[]): Promise<void> {
    const { fallback } = this.#options;
    if (fallback === undefined || hits.length === 0) return;
    const counts = countsOf(await takeHits(fallback, hits));
    for (const [index, position] of positionsOf(recovered, "local").entries()) {
      recovered.counts[position] = counts[index] ?? 0;
    }
  }
}

function limitOf(planned: PlannedHits, position: number): RateLimit | undefined {
  return planned.plan.counted[planned.owners[position] ?? -1]?.limit;
}

function positionsOf(recovered: Recovered, mode: CacheFailureMode | undefined): number[] {
  return [...recovered.modes.keys()].filter((position) => recovered.modes[position] === mode);
}

function hitsAt(hits: readonly AnyHit[], positions: readonly number[]): AnyHit[] {
  return positions.flatMap((position) => hits[position] ?? []);
}

/** If any key would exceed its limit, adds to those keys only and reads the others. */
function hitsToAdd(planned: PlannedHits, before: readonly Counted[]): AnyHit[] {
  const wouldExceed = planned.hits.map(({ addend }, position) => {
    const count = before[position] ?? 0;
    if (typeof count !== "number") return addend === 0 ? !count.granted : addend > count.available;
    const limit = limitOf(planned, position);
    return limit !== undefined && count + addend > limit.requestsPerUnit;
  });
  if (!wouldExceed.includes(true)) return planned.hits;
  spreadOverLists(planned.hits, wouldExceed);
  return planned.hits.map((hit, position) => wouldExceed[position] === true ? hit : readOnly(hit));
}

/** Hits of one list are taken together: none of them is counted if one would exceed its limit. */
function spreadOverLists(hits: readonly AnyHit[], wouldExceed: boolean[]): void {
  for (let at = 0; at < hits.length; at++) {
    const size = hits[at]?.joint?.limits.length ?? 1;
    if (size > 1) wouldExceed.fill(wouldExceed.slice(at, at + size).includes(true), at, at + size);
    at += size - 1;
  }
}

function readOnly(hit: AnyHit): AnyHit {
  return hit.addend <= 0 ? hit : reading(hit);
}

function reading(hit: AnyHit): AnyHit {
  return hit.addend === 0 ? hit : { ...hit, addend: 0 };
}
