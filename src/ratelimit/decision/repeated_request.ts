import type { Counted } from "../algorithms/taken.ts";
import {
  type AnyHit,
  type Counter,
  type CounterCache,
  type Hit,
  isConditional,
  isJoint,
  type TakenHit,
} from "./counter_cache.ts";
import type { Decision, DescriptorStatus } from "../decision.ts";
import { nearHits, nearLimitThreshold } from "../rules/rule_stats.ts";
import { statusOf } from "./decide_count.ts";
import type { Plan, PlannedDescriptor } from "./plan.ts";
import type { RateLimit } from "../rules/rules.ts";
import type { RepeatedWindows } from "./repeated_windows.ts";
import type { RuleCounters } from "../stats_sink.ts";

/** A descriptor that is counted. */
export type CountedDescriptor = PlannedDescriptor & { readonly limit: RateLimit; readonly hit: AnyHit };

/**
 * A request with one descriptor that has the same effects each time, apart from the count. Valid for the same rules, within
 * one window. What every call reads is first: the main cost is reading memory that is not cached.
 */
export class RepeatedRequest<Form = unknown> {
  readonly counter: Counter;
  readonly hits: number;
  readonly limit: RateLimit;
  readonly counters: RuleCounters;
  /** Writes the responses; belongs to the transport. */
  readonly form: Form;
  /** Valid from this time to before the end, in seconds since the epoch; for a conditional hit, at all times. */
  readonly validFrom: number;
  readonly windowEnd: number;
  readonly hit: AnyHit;
  readonly plan: Plan;
  /** Of a limit with several windows, whose hits are taken as those of a call. */
  readonly windows: RepeatedWindows<Form> | undefined;

  constructor(
    plan: Plan,
    { hit, hits, limit }: CountedDescriptor,
    { nowSeconds, counter, counters, form, windows }: {
      readonly nowSeconds: number;
      readonly counter: Counter;
      readonly counters: RuleCounters;
      readonly form: Form;
      readonly windows: RepeatedWindows<Form> | undefined;
    },
  ) {
    this.counter = counter;
    this.hits = hits;
    this.limit = limit;
    this.counters = counters;
    this.form = form;
    const { validFrom, windowEnd } = spanOf(plan, nowSeconds);
    this.validFrom = validFrom;
    this.windowEnd = windowEnd;
    this.hit = hit;
    this.plan = plan;
    this.windows = windows;
  }

  /** Writes the response with this status. */
  formOf({ currentLimit }: DescriptorStatus): Form {
    if (this.windows === undefined || currentLimit === undefined) return this.form;
    return this.windows.forms.get(currentLimit) ?? this.form;
  }

  /** True if it is planned for the window of this time, in seconds since the epoch. */
  isCurrent(nowSeconds: number): boolean {
    return nowSeconds < this.windowEnd && nowSeconds >= this.validFrom;
  }
}

/** Lists of more descriptors are not kept, because each takes memory. */
const MAX_LISTED = 8;

/** A request whose descriptors have the same effects each time. Valid as a `RepeatedRequest` is. */
export class RepeatedList {
  /** The descriptors of the plan; copies would be more memory to read. */
  readonly all: readonly CountedDescriptor[];
  /** In the same order. */
  readonly counters: readonly Counter[];
  readonly validFrom: number;
  readonly windowEnd: number;
  readonly plan: Plan;

  constructor(plan: Plan, all: readonly CountedDescriptor[], { nowSeconds, counters }: {
    readonly nowSeconds: number;
    readonly counters: readonly Counter[];
  }) {
    const { validFrom, windowEnd } = spanOf(plan, nowSeconds);
    this.all = all;
    this.counters = counters;
    this.validFrom = validFrom;
    this.windowEnd = windowEnd;
    this.plan = plan;
  }

  /** True if it is planned for the windows of this time, in seconds since the epoch. */
  isCurrent(nowSeconds: number): boolean {
    return nowSeconds < this.windowEnd && nowSeconds >= this.validFrom;
  }

  /** True if all hits are within their limits. */
  isWithin(counts: readonly Counted[]): boolean {
    for (let index = 0; index < this.all.length; index++) {
      const one = this.all[index];
      const count = counts[index];
      if (one === undefined || count === undefined || !isWithin(one, count)) return false;
    }
    return true;
  }

  /** Records hits that are all within their limits, and returns the statuses. */
  recordWithin(
    counters: readonly RuleCounters[],
    counts: readonly Counted[],
    context: RecordContext,
  ): DescriptorStatus[] {
    const statuses: DescriptorStatus[] = [];
    for (let index = 0; index < counters.length; index++) {
      const one = this.all[index];
      const ofOne = counters[index];
      if (one === undefined || ofOne === undefined) continue;
      statuses.push(recordWithin(one, ofOne, counts[index] ?? 0, context));
    }
    return statuses;
  }
}

/** True if hits are within their limit. */
export function isWithin(
  { hits, limit }: Pick<CountedDescriptor, "hits" | "limit">,
  count: Counted,
): boolean {
  return typeof count === "number" ? count >= hits && count <= limit.requestsPerUnit : count.granted;
}

interface RecordContext {
  readonly nearLimitRatio: number;
  readonly nowSeconds: number;
}

/** Records hits within their limit, and returns the status. */
export function recordWithin(
  one: Pick<CountedDescriptor, "hit" | "hits" | "limit">,
  counters: RuleCounters,
  count: Counted,
  { nearLimitRatio, nowSeconds }: RecordContext,
): DescriptorStatus {
  const { limit, hits } = one;
  const near = nearLimitThreshold(limit.conditional?.capacity ?? limit.requestsPerUnit, nearLimitRatio);
  counters.withinLimit += hits;
  counters.nearLimit += nearHits(typeof count === "number" ? count : count.used, hits, near);
  return statusOf(one, limit, count, nowSeconds);
}

/** The time in which a plan is valid, which conditional hits do not limit. */
function spanOf(
  { counted }: Plan,
  nowSeconds: number,
): { readonly validFrom: number; readonly windowEnd: number } {
  let [validFrom, windowEnd] = [-Infinity, Infinity];
  for (const { hit, limit } of counted) {
    if (hit === undefined || limit === undefined || isConditional(hit)) continue;
    // In a window of a calendar, the expiry is what was left of it.
    const start = limit.calendar === undefined ? hit.windowEnd - limit.windowSeconds : nowSeconds;
    validFrom = Math.max(validFrom, start);
    windowEnd = Math.min(windowEnd, hit.windowEnd);
  }
  return { validFrom, windowEnd };
}

/** Counters that are kept by their key. */
const MAX_KEPT_COUNTERS = 65_536;

/** The counters of repeated requests: those with a key in common share its counter, and so its commands. */
export class KeptCounters {
  readonly #cache: Pick<CounterCache, "counterOf">;
  readonly #kept = new Map<string, { readonly hit: Hit; readonly counter: Counter }>();

  constructor(cache: Pick<CounterCache, "counterOf">) {
    this.#cache = cache;
  }

  counterOf(hit: TakenHit): Counter {
    // A batch finds the others by their key.
    if (isJoint(hit) || isConditional(hit)) return this.#cache.counterOf(hit);
    const kept = this.#kept.get(hit.key);
    const { windowEnd, perSecond } = kept?.hit ?? {};
    if (kept !== undefined && windowEnd === hit.windowEnd && perSecond === hit.perSecond) return kept.counter;
    if (this.#kept.size >= MAX_KEPT_COUNTERS) this.#kept.clear();
    const counter = this.#cache.counterOf(hit);
    this.#kept.set(hit.key, { hit, counter });
    return counter;
  }
}

/** The descriptors of a request, if each has the same effects each time. */
export function repeatablesOf({ descriptors }: Plan): readonly CountedDescriptor[] | undefined {
  return descriptors.length <= MAX_LISTED && descriptors.every(isRepeatable) ? descriptors : undefined;
}

/** In shadow and quota mode, hits within the limit have the same effects as without. */
function isRepeatable(planned: PlannedDescriptor): planned is CountedDescriptor {
  const { limit, hit, negative, hits } = planned;
  if (limit === undefined || hit === undefined || negative || hits === 0 || "holder" in hit) return false;
  return limit.rule?.metricKey !== undefined && !limit.unlimited && limit.events?.nearLimit !== true &&
    limit.replaces.length === 0;
}

/** The status of a decision with one descriptor. */
export function onlyStatus({ statuses }: Decision): DescriptorStatus {
  const [status] = statuses;
  if (status === undefined) throw new TypeError("A decision has no status");
  return status;
}
