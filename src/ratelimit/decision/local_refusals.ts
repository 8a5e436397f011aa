import type { Clock } from "../../base/clock.ts";
import type { Counted } from "../algorithms/taken.ts";
import type { ConditionalRule } from "../rules/rules.ts";
import { type AnyHit, isConditional, type LocalCache } from "./counter_cache.ts";
import { type KnownRefusal, OVER_LIMIT_LOCALLY, type OverLimitKey } from "./decide_count.ts";
import type { Plan, PlannedDescriptor } from "./plan.ts";

/** The keys that are known to be over their limit, which the cache need not be asked for. */
export class LocalRefusals {
  readonly #cache: LocalCache;
  readonly #clock: Clock;

  constructor(cache: LocalCache, clock: Clock) {
    this.#cache = cache;
    this.#clock = clock;
  }

  /** Compares what is remembered with the current limit, which a reload may have changed. */
  of(
    hit: AnyHit,
    { hits, limit }: Pick<PlannedDescriptor, "hits" | "limit">,
    nowSeconds: number,
  ): Counted | undefined {
    const exactSeconds = isConditional(hit) ? this.#clock.now() / 1000 : nowSeconds;
    const known = this.#cache.get(hit.key, exactSeconds);
    if (known === undefined || limit === undefined) return undefined;
    const { conditional, requestsPerUnit } = limit;
    if (conditional === undefined) {
      return known.count + Math.min(hits, 1) > requestsPerUnit ? OVER_LIMIT_LOCALLY : undefined;
    }
    if (hits === 0 || known.limit !== conditional.limit) return undefined;
    return refusalUntil((known.windowEnd - exactSeconds) * 1_000, conditional);
  }

  /** Remembers the refusals of a call, but for keys that the cache did not count, and forgets what is given back. */
  remember(
    plan: Plan,
    overLimitKeys: readonly OverLimitKey[],
    nowSeconds: number,
    uncountedKeys: ReadonlySet<string>,
  ): void {
    for (const overLimit of overLimitKeys) {
      const { key, count, windowEnd } = overLimit;
      if (uncountedKeys.has(key)) continue;
      if (windowEnd !== undefined) this.#cache.set(key, { count, windowEnd }, nowSeconds);
      else this.#rememberConditional(overLimit);
    }
    for (const { negative, hit } of plan.counted) {
      if (negative && hit !== undefined) this.#cache.forget(hit.key);
    }
  }

  #rememberConditional({ key, count, limit, retryMs }: OverLimitKey): void {
    const now = this.#clock.now();
    this.#cache.set(key, { count, windowEnd: (now + retryMs) / 1000, limit }, now / 1000);
  }
}

/** The answer to a conditional hit that is known not to pass. */
function refusalUntil(retryMs: number, { capacity }: ConditionalRule): KnownRefusal {
  return { granted: false, used: capacity, available: 0, retryMs, freeMs: retryMs, isKnown: true };
}
