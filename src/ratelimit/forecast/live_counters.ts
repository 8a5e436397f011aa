import { type Clock, steadyClock } from "../../base/clock.ts";
import type { Counted } from "../algorithms/taken.ts";
import { NoConfigurationError } from "../errors.ts";
import { explain, type Explained } from "./explain.ts";
import { instantText, windowLength } from "../decision/window.ts";
import type { Algorithm } from "../rule_source.ts";
import type { Unit } from "../units.ts";
import { matchLimit } from "../rules/match_rules.ts";
import type { RateLimit, Rules } from "../rules/rules.ts";
import { isConditional } from "../decision/counter_cache.ts";
import { type Plan, type PlanContext, planHits, type PlannedDescriptor } from "../decision/plan.ts";
import type { RateLimitRequest } from "../request.ts";
import type { HitCounterOptions } from "../decision/hit_counter.ts";
import { countsOf, takeHits } from "../decision/take_hits.ts";
import { validateRequest } from "../decision/validate.ts";

/** Options of the live counters, as for decisions. */
interface LiveCountersOptions extends HitCounterOptions {
  readonly clock: Clock;
  /** Removes keys from local caches; settles when they are gone. */
  readonly forget?: (keys: readonly string[]) => Promise<void>;
  /** The current rules; undefined before the first load. */
  readonly rules: () => Rules | undefined;
}

/** Why a descriptor is not counted. */
type Uncounted = "unknown_domain" | "no_rule" | "unlimited" | "replaced";

/** The current count, and the hits that would pass. */
export interface Usage {
  /** The level of a token bucket; what is in flight of a `concurrency` limit. */
  readonly used: number;
  readonly remaining: number;
  /** Of a rule with several windows: all of them, of which this is the one with the least remaining. */
  readonly windows?: readonly Usage[];
}

/** A counter in the current window. */
interface CountedState extends Usage {
  readonly limited: true;
  /** The full key of the rule; undefined for a limit in the request. */
  readonly rule?: string;
  readonly cacheKey: string;
  readonly limit: number;
  readonly unit: Unit | undefined;
  /** Of the current window, where they differ. */
  readonly windowSeconds: number;
  /** The time zone of the calendar that windows follow; absent for other windows. */
  readonly timezone?: string;
  /** Absent for fixed windows. */
  readonly algorithm?: Algorithm;
  /** Of a token bucket. */
  readonly burst?: number;
  /** The end of the window; of another algorithm, when all is free if nothing more is taken. */
  readonly resetsAt: string;
  /** Of a rule with several windows: all of them, of which this is the one with the least remaining. */
  readonly windows?: readonly CountedState[];
}

/** The counter of a descriptor, if any. */
export type CounterState =
  | { readonly limited: false; readonly reason: Uncounted; readonly rule?: string }
  | CountedState;

/** Reads and resets the counters of a request. Methods throw the same errors as decisions. */
export class LiveCounters {
  readonly #options: LiveCountersOptions;

  constructor(options: LiveCountersOptions) {
    this.#options = { ...options, clock: steadyClock(options.clock) };
  }

  explain(request: RateLimitRequest): Explained {
    const { rules, context } = this.#prepared(request);
    return explain(rules, request, context);
  }

  /** The current usage, one per descriptor; undefined if it is not counted. */
  async usage(plan: Plan): Promise<(Usage | undefined)[]> {
    const counts = await this.#counts(plan);
    return plan.descriptors.map((planned) =>
      tightestOf((planned.windows ?? [planned]).flatMap((one): Usage[] => {
        const count = counts.get(one);
        return one.limit === undefined || count === undefined ? [] : [usageOf(one.limit, count)];
      }))
    );
  }

  /** By what the plan counts. */
  async #counts({ counted }: Plan): Promise<ReadonlyMap<PlannedDescriptor, Counted>> {
    const limited = counted.filter(({ hit }) => hit !== undefined);
    // Each window for itself.
    const hits = limited.flatMap(({ hit }) =>
      hit === undefined ? [] : { ...hit, addend: 0, joint: undefined }
    );
    const counts = countsOf(await takeHits(this.#options.cache, hits));
    return new Map(limited.map((planned, position) => [planned, counts[position] ?? 0]));
  }

  /** The current counters of a request, one per descriptor. */
  async peek(request: RateLimitRequest): Promise<CounterState[]> {
    return await this.#states(this.#planned(request));
  }

  /**
   * Deletes the counters of the current windows and returns their previous state. Local caches of other instances keep
   * their over-limit keys.
   */
  async reset(request: RateLimitRequest): Promise<CounterState[]> {
    const { cache, fallback, forget } = this.#options;
    const planned = this.#planned(request);
    const before = await this.#states(planned);
    const keys = [...new Set(planned.plan.counted.flatMap(({ hit }) => hit?.key ?? []))];
    if (keys.length === 0) return before;
    await cache.remove(keys);
    await fallback?.remove(keys);
    // Last, because a concurrent decision may add the key again.
    await forget?.(keys);
    return before;
  }

  async #states({ plan, rules }: Planned): Promise<CounterState[]> {
    const counts = await this.#counts(plan);
    const nowMs = this.#options.clock.now();
    return plan.descriptors.map((planned, index): CounterState => {
      const { limit } = planned;
      if (limit === undefined) return { limited: false, ...reasonOf(plan, rules, index) };
      if (limit.unlimited) return { limited: false, reason: "unlimited", ...ruleName(limit) };
      const states = (planned.windows ?? [planned]).flatMap((one) =>
        stateOf(one, { count: counts.get(one) ?? 0, nowMs })
      );
      return tightestOf(states) ?? { limited: false, ...reasonOf(plan, rules, index) };
    });
  }

  #planned(request: RateLimitRequest): Planned {
    const { rules, context } = this.#prepared(request);
    return { rules, plan: planHits(rules, request, context) };
  }

  #prepared(request: RateLimitRequest): { rules: Rules; context: PlanContext } {
    validateRequest(request);
    const { clock, policy } = this.#options;
    const rules = this.#options.rules();
    if (rules === undefined) throw new NoConfigurationError();
    // Only the expiry of new counters is random.
    return { rules, context: { nowSeconds: Math.floor(clock.now() / 1_000), random: () => 0, policy } };
  }
}

/** A plan and its rules, which a reload may replace. */
interface Planned {
  readonly plan: Plan;
  readonly rules: Rules;
}

/** The one with the least remaining, with all of them if there are several. */
function tightestOf<T extends Usage>(all: readonly T[]): T | undefined {
  const [first, ...others] = all;
  if (first === undefined || others.length === 0) return first;
  const tightest = others.reduce((least, one) => one.remaining < least.remaining ? one : least, first);
  return { ...tightest, windows: all };
}

function stateOf(
  { hit, limit }: PlannedDescriptor,
  { count, nowMs }: { readonly count: Counted; readonly nowMs: number },
): CountedState[] {
  if (hit === undefined || limit === undefined) return [];
  const { requestsPerUnit, unit, calendar, conditional } = limit;
  const freeMs = typeof count === "number" ? 0 : count.freeMs;
  return [{
    limited: true,
    ...ruleName(limit),
    ...(conditional === undefined ? {} : { algorithm: conditional.algorithm }),
    ...(conditional?.algorithm === "token_bucket" ? { burst: conditional.capacity } : {}),
    cacheKey: hit.key,
    limit: requestsPerUnit,
    unit,
    windowSeconds: windowLength(limit, isConditional(hit) ? 0 : hit.windowEnd - 1),
    ...(calendar === undefined ? {} : { timezone: calendar.timezone }),
    ...usageOf(limit, count),
    resetsAt: instantText(isConditional(hit) ? Math.ceil((nowMs + freeMs) / 1_000) : hit.windowEnd),
  }];
}

function usageOf({ requestsPerUnit }: RateLimit, count: Counted): Pick<Usage, "used" | "remaining"> {
  return typeof count === "number"
    ? { used: count, remaining: Math.max(0, requestsPerUnit - count) }
    : { used: count.used, remaining: count.available };
}

/** A limit in the rules but not in the plan was replaced. */
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
