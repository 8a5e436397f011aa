import { type AnyHit, type Counter, isConditional } from "./counter_cache.ts";
import type { Decision, DescriptorStatus } from "../decision.ts";
import type { Plan, PlannedDescriptor } from "./plan.ts";
import { hasHeaders, type Policy } from "./policy.ts";
import type { RateLimit } from "../rules/rules.ts";
import type { RepeatedWindows } from "./repeated_windows.ts";
import type { RuleCounters } from "../stats_sink.ts";

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
    let [validFrom, windowEnd] = [-Infinity, Infinity];
    for (const { hit, limit } of plan.counted) {
      if (hit === undefined || limit === undefined || isConditional(hit)) continue;
      // In a window of a calendar, the expiry is what was left of it.
      const start = limit.calendar === undefined ? hit.windowEnd - limit.windowSeconds : nowSeconds;
      validFrom = Math.max(validFrom, start);
      windowEnd = Math.min(windowEnd, hit.windowEnd);
    }
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

/** True if decisions by this policy depend on nothing but one rule and its count. */
export function allowsRepeats(policy: Policy): boolean {
  return !hasHeaders(policy) && !policy.dynamicMetadata && !policy.shadowMode && !policy.quotaMode;
}

/** The only descriptor of a request that has the same effects each time. */
export function repeatableOf({ descriptors, request }: Plan): CountedDescriptor | undefined {
  const [planned] = descriptors;
  if (planned === undefined || descriptors.length > 1) return undefined;
  const { limit, hit } = planned;
  if (limit === undefined || hit === undefined || planned.negative || planned.hits === 0) return undefined;
  const isPlain = limit.rule?.metricKey !== undefined && !limit.unlimited && !limit.shadowMode &&
    !limit.quotaMode && limit.events?.nearLimit !== true && limit.replaces.length === 0 &&
    request.descriptors[0]?.limit === undefined && !("holder" in hit);
  return isPlain ? { ...planned, limit, hit } : undefined;
}

/** The status of a decision with one descriptor. */
export function onlyStatus({ statuses }: Decision): DescriptorStatus {
  const [status] = statuses;
  if (status === undefined) throw new TypeError("A decision has no status");
  return status;
}
