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
import type { Plan, PlannedDescriptor } from "./plan.ts";
import { hasHeaders, type Policy } from "./policy.ts";
import type { RateLimit } from "../rules/rules.ts";
import type { RepeatedWindows } from "./repeated_windows.ts";
import type { RuleCounters } from "../stats_sink.ts";
import type { HitsCounter } from "./take_hits.ts";

/** A descriptor that is counted. */
type CountedDescriptor = PlannedDescriptor & { readonly limit: RateLimit; readonly hit: AnyHit };

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

/** A request with several descriptors, each of which has the same effects each time. Valid as a `RepeatedRequest` is. */
export class RepeatedList {
  /** In the order of the descriptors, as all lists. */
  readonly all: readonly RepeatedHit[];
  readonly takers: readonly HitsCounter[];
  readonly hits: readonly AnyHit[];
  readonly validFrom: number;
  readonly windowEnd: number;
  readonly plan: Plan;

  constructor(plan: Plan, all: readonly RepeatedHit[], { nowSeconds, takers }: {
    readonly nowSeconds: number;
    readonly takers: readonly HitsCounter[];
  }) {
    const { validFrom, windowEnd } = spanOf(plan, nowSeconds);
    this.all = all;
    this.takers = takers;
    this.hits = all.map(({ hit }) => hit);
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
}

/** One of the hits of a repeated request. */
export type RepeatedHit = Pick<RepeatedRequest, "hit" | "hits" | "limit" | "counters">;

/** True if hits are within their limit. */
export function isWithin({ hits, limit }: RepeatedHit, count: Counted): boolean {
  return typeof count === "number" ? count >= hits && count <= limit.requestsPerUnit : count.granted;
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

/** True if decisions by this policy depend on nothing but one rule and its count. */
export function allowsRepeats(policy: Policy): boolean {
  return !hasHeaders(policy) && !policy.dynamicMetadata && !policy.shadowMode && !policy.quotaMode;
}

/** The only descriptor of a request that has the same effects each time. */
export function repeatableOf(plan: Plan): CountedDescriptor | undefined {
  return plan.descriptors.length > 1 ? undefined : repeatableAt(plan, 0);
}

/** The descriptors of a request with several, if each has the same effects each time. */
export function repeatablesOf(plan: Plan): readonly CountedDescriptor[] | undefined {
  const { length } = plan.descriptors;
  if (length > MAX_LISTED) return undefined;
  const all = plan.descriptors.flatMap((_, index) => repeatableAt(plan, index) ?? []);
  return all.length === length && all.every(({ windows }) => windows === undefined) ? all : undefined;
}

function repeatableAt({ descriptors, request }: Plan, index: number): CountedDescriptor | undefined {
  const planned = descriptors[index];
  if (planned === undefined) return undefined;
  const { limit, hit } = planned;
  if (limit === undefined || hit === undefined || planned.negative || planned.hits === 0) return undefined;
  const isPlain = limit.rule?.metricKey !== undefined && !limit.unlimited && !limit.shadowMode &&
    !limit.quotaMode && limit.events?.nearLimit !== true && limit.replaces.length === 0 &&
    request.descriptors[index]?.limit === undefined && !("holder" in hit);
  return isPlain ? { ...planned, limit, hit } : undefined;
}

/** The status of a decision with one descriptor. */
export function onlyStatus({ statuses }: Decision): DescriptorStatus {
  const [status] = statuses;
  if (status === undefined) throw new TypeError("A decision has no status");
  return status;
}
