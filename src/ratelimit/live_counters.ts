import type { Clock } from "../base/clock.ts";
import type { CounterCache } from "./counter_cache.ts";
import { NoConfigurationError } from "./errors.ts";
import { explain, type Explained } from "./explain.ts";
import { instantText } from "./instant_text.ts";
import type { Unit } from "./limit.ts";
import type { LocalCache } from "./local_cache.ts";
import { matchLimit } from "./matcher.ts";
import { type Plan, type PlanContext, planHits, type PlannedDescriptor } from "./plan.ts";
import type { Policy } from "./policy.ts";
import type { RateLimitRequest } from "./request.ts";
import type { RateLimit, Rules } from "./rules.ts";
import { validateRequest } from "./validate.ts";

/** What counters are looked at with: the same as decisions are made with. */
export interface LiveCountersOptions {
  /** The rules in force; absent before the first load. */
  readonly rules: () => Rules | undefined;
  readonly cache: CounterCache;
  /** Counts for this instance while the cache fails; absent where nothing does. */
  readonly fallback: CounterCache | undefined;
  /** Absent where over-limit keys are not remembered. */
  readonly localCache: LocalCache | undefined;
  readonly policy: Policy;
  readonly clock: Clock;
}

/** Why nothing is counted for a descriptor. */
export type Uncounted = "unknown_domain" | "no_rule" | "unlimited" | "replaced";

/** The counter of a descriptor in its current window, or why there is none. */
export type CounterState =
  | { readonly limited: false; readonly reason: Uncounted; readonly rule?: string }
  | {
    readonly limited: true;
    /** Full key of the rule; absent for a limit that the request brought along. */
    readonly rule?: string;
    readonly cacheKey: string;
    /** Requests in a window. */
    readonly limit: number;
    readonly unit: Unit | undefined;
    readonly windowSeconds: number;
    readonly used: number;
    readonly remaining: number;
    /** RFC 3339. */
    readonly resetsAt: string;
  };

/**
 * Looks at the counters that a request would move, and resets them; none is moved. Everything throws
 * `InvalidRequestError`, `NoConfigurationError` or `CacheError`, as a decision does.
 */
export class LiveCounters {
  readonly #options: LiveCountersOptions;

  constructor(options: LiveCountersOptions) {
    this.#options = options;
  }

  /** Why the request is decided as it is, by the rules in force. */
  explain(request: RateLimitRequest): Explained {
    const { rules, context } = this.#asked(request);
    return explain(rules, request, context);
  }

  /** The counts of a plan as they stand, one item a descriptor; absent where nothing is counted. */
  async used(plan: Plan): Promise<(number | undefined)[]> {
    const hits = plan.descriptors.flatMap(({ hit }) => hit ?? []);
    const counts = hits.length === 0 ? [] : await this.#options.cache.read(hits);
    let position = 0;
    return plan.descriptors.map(({ hit }) => hit === undefined ? undefined : counts[position++] ?? 0);
  }

  /** The counters of a request as they stand, one item a descriptor. */
  async peek(request: RateLimitRequest): Promise<CounterState[]> {
    return await this.#states(this.#planned(request));
  }

  /**
   * Forgets the counters of the current windows, here and in the shared cache, and answers how they stood.
   * What other instances remember of keys that were over their limit is out of reach.
   */
  async reset(request: RateLimitRequest): Promise<CounterState[]> {
    const { cache, fallback, localCache } = this.#options;
    const asked = this.#planned(request);
    const before = await this.#states(asked);
    const keys = [...new Set(asked.plan.descriptors.flatMap(({ hit }) => hit?.key ?? []))];
    if (keys.length === 0) return before;
    await cache.remove(keys);
    await fallback?.remove(keys);
    // Last: a call in between would have taught the local cache again.
    for (const key of keys) localCache?.forget(key);
    return before;
  }

  async #states({ plan, rules }: Planned): Promise<CounterState[]> {
    const used = await this.used(plan);
    return plan.descriptors.map((planned, index) =>
      planned.limit === undefined
        ? { limited: false, ...reasonOf(plan, rules, index) }
        : stateOf(planned.limit, planned, used[index] ?? 0)
    );
  }

  #planned(request: RateLimitRequest): Planned {
    const { rules, context } = this.#asked(request);
    return { rules, plan: planHits(rules, request, context) };
  }

  #asked(request: RateLimitRequest): { rules: Rules; context: PlanContext } {
    validateRequest(request);
    const { clock, policy } = this.#options;
    const rules = this.#options.rules();
    if (rules === undefined) throw new NoConfigurationError();
    // Chance is asked for the expiry of what is written alone, and nothing is.
    return { rules, context: { nowSeconds: Math.floor(clock.now() / 1_000), random: () => 0, policy } };
  }
}

/** A plan and the rules that it was made by: others may be in force when the counts come. */
interface Planned {
  readonly plan: Plan;
  readonly rules: Rules;
}

function stateOf(limit: RateLimit, { hit }: PlannedDescriptor, used: number): CounterState {
  if (hit === undefined) return { limited: false, reason: "unlimited", ...ruleName(limit) };
  const { requestsPerUnit, unit, windowSeconds } = limit;
  return {
    limited: true,
    ...ruleName(limit),
    cacheKey: hit.key,
    limit: requestsPerUnit,
    unit,
    windowSeconds,
    used,
    remaining: Math.max(0, requestsPerUnit - used),
    resetsAt: instantText(hit.windowEnd),
  };
}

/** A limit that the rules have and the plan has not was replaced. */
function reasonOf(
  { request, domainKnown }: Plan,
  rules: Rules,
  index: number,
): { reason: Uncounted; rule?: string } {
  if (!domainKnown) return { reason: "unknown_domain" };
  const table = rules.domains.get(request.domain);
  const limit = table === undefined
    ? undefined
    : matchLimit(table, request.descriptors[index]?.entries ?? []);
  return limit === undefined ? { reason: "no_rule" } : { reason: "replaced", ...ruleName(limit) };
}

function ruleName({ rule }: RateLimit): { rule?: string } {
  return rule === undefined ? {} : { rule: rule.fullKey };
}
