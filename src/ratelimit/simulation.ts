import type { CounterCache, Hit } from "./counter_cache.ts";
import { decide } from "./decide.ts";
import type { Code } from "./decision.ts";
import { HitCounter } from "./hit_counter.ts";
import { planHits } from "./plan.ts";
import type { Policy } from "./policy.ts";
import type { RateLimitRequest } from "./request.ts";
import type { RateLimit, Rules } from "./rules.ts";
import { validateRequest } from "./validate.ts";

/** What a simulation works with. */
export interface SimulationOptions {
  readonly rules: Rules;
  /** Counts for this simulation alone. */
  readonly cache: CounterCache;
  readonly policy: Policy;
}

/** What was decided for one request, one status a descriptor. */
export interface SimulatedDecision {
  readonly overallCode: Code;
  readonly statuses: readonly SimulatedStatus[];
}

/** What was decided for one descriptor, and by which limit. */
export interface SimulatedStatus {
  readonly code: Code;
  /** Absent when nothing limits the descriptor, or when another rule took its place. */
  readonly limit: RateLimit | undefined;
  readonly remaining: number;
  /** It is over its limit, and OK only because its rule is in shadow mode. */
  readonly shadowed: boolean;
}

/**
 * Decides requests as the service does, at times that are given and with counters of its own. Unlike the
 * service it tells which limit decided; it has no local cache, no statistics and no cache that fails.
 */
export class Simulation {
  readonly #options: SimulationOptions;
  readonly #counter: HitCounter;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#counter = new HitCounter(options);
  }

  /** Decides one request. Throws `InvalidRequestError` before anything is counted. */
  async decide(request: RateLimitRequest, nowSeconds: number): Promise<SimulatedDecision> {
    validateRequest(request);
    const { rules, policy } = this.#options;
    const plan = planHits(rules, request, { nowSeconds, random: () => 0, policy });
    const counts = plan.descriptors.map(() => 0);
    const hits: Hit[] = [];
    const owners: number[] = [];
    for (const [index, { hit }] of plan.descriptors.entries()) {
      if (hit === undefined) continue;
      hits.push(hit);
      owners.push(index);
    }
    const after = await this.#counter.count({ plan, counts, hits, owners, reading: false }, undefined);
    for (const [position, owner] of owners.entries()) counts[owner] = after[position] ?? 0;
    const { decision, stats } = decide(plan, counts, policy, nowSeconds);
    const statuses = decision.statuses.map(({ code, limitRemaining }, index): SimulatedStatus => ({
      code,
      limit: plan.descriptors[index]?.limit,
      remaining: limitRemaining,
      shadowed: (stats[index]?.shadowMode ?? 0) > 0,
    }));
    return { overallCode: decision.overallCode, statuses };
  }
}
