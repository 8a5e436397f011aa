import type { Counted } from "../algorithms/taken.ts";
import type { Rules } from "../rules/rules.ts";
import type { RuleCounters, StatsSink } from "../stats_sink.ts";
import type { PlannedHits } from "./hit_counter.ts";
import type { Plan, PlannedDescriptor } from "./plan.ts";
import type { RepeatedList, RepeatedRequest } from "./repeated_request.ts";
import type { RuleCounts } from "./rule_counts.ts";

/** Rules and their counters, which are replaced together. */
export interface LoadedRules {
  readonly rules: Rules;
  /** Cache by `rule.index`; undefined if the metric key depends on the request. */
  readonly counters: (RuleCounters | undefined)[];
  readonly counts: RuleCounts;
}

/** A call whose hits are counted. */
export interface Call extends PlannedHits {
  /** The statistics of each descriptor; undefined if it is not counted. */
  readonly counters: (RuleCounters | undefined)[];
  readonly counts: Counted[];
  readonly owners: number[];
}

/** The call of a repeated request, whose total is counted already. */
export function callOf({ plan, hit, counters, windows }: RepeatedRequest): Call {
  const call = { plan, counters: [counters], counts: [0], hits: [hit], owners: [0], isReading: false };
  if (windows === undefined) return call;
  const owners = [...windows.all.keys()];
  return { ...call, counts: owners.map(() => 0), hits: windows.all.map((window) => window.hit), owners };
}

/** The call of a list, without its hits. */
export function callOfList({ plan }: RepeatedList, counters: RuleCounters[]): Call {
  return { plan, counters, counts: [], hits: [], owners: [], isReading: false };
}

/** The counters of a descriptor; looked up once per rule if its metric key is constant. */
export function ruleCountersOf(
  { counters }: LoadedRules,
  planned: PlannedDescriptor,
  stats: StatsSink,
  { request }: Pick<Plan, "request">,
): RuleCounters {
  const rule = planned.limit?.rule;
  const known = rule === undefined ? undefined : counters[rule.index];
  if (known !== undefined) return known;
  const found = stats.rule(planned.metricKey, request.domain);
  if (rule?.metricKey !== undefined) counters[rule.index] = found;
  return found;
}
