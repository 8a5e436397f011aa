import type { CacheFailureMode } from "./cache_failure_mode.ts";
import type { Caller, CounterCache, Hit } from "./counter_cache.ts";
import { ALLOWED_UNCOUNTED, DENIED_UNCOUNTED, OVER_LIMIT_LOCALLY } from "./decide.ts";
import { CacheError } from "./errors.ts";
import type { Plan } from "./plan.ts";
import type { Policy } from "./policy.ts";
import type { RateLimit } from "./rules.ts";

/** What counts are asked with. */
export interface HitCounterOptions {
  readonly cache: CounterCache;
  /** Counts where `local` is to; without it such descriptors fail their call. */
  readonly fallback?: CounterCache | undefined;
  readonly policy: Policy;
}

/** A plan and the hits that are asked of the cache for it. */
export interface AskedHits {
  readonly plan: Plan;
  /** By descriptor: `OVER_LIMIT_LOCALLY` where the local cache knew the key. */
  readonly counts: readonly number[];
  /** Replaced by hits that only read where nothing is to be added. */
  hits: Hit[];
  /** For each of `hits`, the descriptor it belongs to. */
  readonly owners: readonly number[];
  /** The counts are read first, and nothing is added yet. */
  reading: boolean;
}

/** How a call was counted whose cache failed, by position of its hits. */
export interface Recovered {
  readonly counts: number[];
  /** Absent where the cache counted all the same. */
  readonly modes: (CacheFailureMode | undefined)[];
}

const UNCOUNTED = { allow: ALLOWED_UNCOUNTED, deny: DENIED_UNCOUNTED, local: 0 } as const;

/** Asks the shared cache for the hits of a call, and answers them in other ways when it fails. */
export class HitCounter {
  readonly #options: HitCounterOptions;

  constructor(options: HitCounterOptions) {
    this.#options = options;
  }

  /** The counts after the hits, in their order. What the cache throws is for `recover`. */
  count(asked: AskedHits, caller: Caller | undefined): number[] | Promise<number[]> {
    const { cache, policy } = this.#options;
    if (asked.hits.length === 0) return [];
    const alone = asked.plan.descriptors.length === 1;
    if (!policy.stopIncrementWhenOverLimit || alone) return cache.add(asked.hits, caller);
    if (asked.counts.includes(OVER_LIMIT_LOCALLY)) {
      asked.hits = asked.hits.map(readOnly);
      return cache.add(asked.hits, caller);
    }
    asked.reading = true;
    const before = cache.read(asked.hits, caller);
    if (before instanceof Promise) return before.then((counts) => this.#addAfter(asked, counts, caller));
    return this.#addAfter(asked, before, caller);
  }

  /**
   * Goes on after the cache threw `error`: hits that it counted all the same keep their counts, each
   * other one is answered by its descriptor's mode. Throws the error where that is `error`.
   */
  async recover(asked: AskedHits, error: unknown, caller: Caller | undefined): Promise<Recovered> {
    const found: Recovered = {
      counts: asked.hits.map(() => 0),
      modes: asked.hits.map(() => undefined),
    };
    this.#take(asked, found, error, [...asked.hits.keys()]);
    if (asked.reading) await this.#addToRest(asked, found, caller);
    await this.#askFallback(asked, found, (fallback, hits) => fallback.add(hits));
    return found;
  }

  #addAfter(
    asked: AskedHits,
    before: readonly number[],
    caller: Caller | undefined,
  ): number[] | Promise<number[]> {
    asked.reading = false;
    asked.hits = hitsToAdd(asked, before);
    return this.#options.cache.add(asked.hits, caller);
  }

  /** Takes the counts that came with the error for the hits at these positions, and the modes of the others. */
  #take(asked: AskedHits, found: Recovered, error: unknown, positions: readonly number[]): void {
    if (!(error instanceof CacheError)) throw error;
    const { policy, fallback } = this.#options;
    for (const [index, position] of positions.entries()) {
      const count = error.counts[index];
      if (count !== undefined) {
        found.counts[position] = count;
        continue;
      }
      const mode = limitOf(asked, position)?.onCacheFailure ?? policy.onCacheFailure;
      if (mode === "error" || (mode === "local" && fallback === undefined)) throw error;
      found.modes[position] = mode;
      found.counts[position] = UNCOUNTED[mode];
    }
  }

  /** After a read that failed in part: what it answered is added to, the rest is not asked for again. */
  async #addToRest(asked: AskedHits, found: Recovered, caller: Caller | undefined): Promise<void> {
    await this.#askFallback(asked, found, (fallback, hits) => fallback.read(hits));
    asked.hits = hitsToAdd(asked, found.counts);
    const positions = positionsOf(found, undefined);
    if (positions.length === 0) return;
    try {
      const counts = await this.#options.cache.add(hitsAt(asked, positions), caller);
      for (const [index, position] of positions.entries()) found.counts[position] = counts[index] ?? 0;
    } catch (error) {
      this.#take(asked, found, error, positions);
    }
  }

  async #askFallback(
    asked: AskedHits,
    found: Recovered,
    ask: (fallback: CounterCache, hits: readonly Hit[]) => number[] | Promise<number[]>,
  ): Promise<void> {
    const { fallback } = this.#options;
    const positions = positionsOf(found, "local");
    if (fallback === undefined || positions.length === 0) return;
    const counts = await ask(fallback, hitsAt(asked, positions));
    for (const [index, position] of positions.entries()) found.counts[position] = counts[index] ?? 0;
  }
}

function limitOf(asked: AskedHits, position: number): RateLimit | undefined {
  return asked.plan.descriptors[asked.owners[position] ?? -1]?.limit;
}

function positionsOf(found: Recovered, mode: CacheFailureMode | undefined): number[] {
  return [...found.modes.keys()].filter((position) => found.modes[position] === mode);
}

function hitsAt(asked: AskedHits, positions: readonly number[]): Hit[] {
  return positions.flatMap((position) => asked.hits[position] ?? []);
}

/** When some key is over its limit with these hits, only such keys are added to; the others are only read. */
function hitsToAdd(asked: AskedHits, before: readonly number[]): Hit[] {
  const wouldExceed = asked.hits.map((hit, position) => {
    const limit = limitOf(asked, position);
    return limit !== undefined && (before[position] ?? 0) + hit.addend > limit.requestsPerUnit;
  });
  if (!wouldExceed.includes(true)) return asked.hits;
  return asked.hits.map((hit, position) => wouldExceed[position] === true ? hit : readOnly(hit));
}

function readOnly(hit: Hit): Hit {
  return hit.addend <= 0 ? hit : { ...hit, addend: 0 };
}
