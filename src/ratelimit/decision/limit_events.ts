import type { Counted, Taken } from "../algorithms/taken.ts";
import { isConditional } from "./counter_cache.ts";
import type { PlannedDescriptor } from "./plan.ts";
import type { Policy } from "./policy.ts";
import type { Entry, RateLimitRequest } from "../request.ts";
import type { RuleStats } from "../rules/rule_stats.ts";
import type { LimitEvent } from "../rule_events.ts";
import type { RateLimit } from "../rules/rules.ts";

/** Hits of a decision that are over a limit or near it, whose rule reports that. */
export interface LimitFact {
  readonly event: LimitEvent;
  readonly domain: string;
  /** As they are in keys. */
  readonly entries: readonly Entry[];
  readonly limit: RateLimit;
  readonly metricKey: string;
  /** Of the counter. */
  readonly key: string;
  /** In seconds since the epoch; undefined if the counter has no fixed window. */
  readonly windowEnd: number | undefined;
  readonly hits: number;
  /** Of a conditional hit. */
  readonly taken: Taken | undefined;
  readonly isShadow: boolean;
}

/** Receives facts with their time in milliseconds; returns immediately and never throws. */
export interface LimitEventSink {
  note(facts: readonly LimitFact[], now: number): void;
}

/** The descriptor of a request whose facts are selected, and what became of it. */
interface DecidedDescriptor {
  readonly request: RateLimitRequest;
  readonly planned: PlannedDescriptor;
  readonly count: Counted;
  readonly stats: RuleStats;
}

/** Adds the facts that the rule of a descriptor reports. */
export function addFacts(
  facts: LimitFact[],
  { request, planned, count, stats }: DecidedDescriptor,
  policy: Policy,
): void {
  const { limit, entries, hit, metricKey } = planned;
  if (limit?.events === undefined || hit === undefined) return;
  const add = (event: LimitEvent, hits: number) =>
    facts.push({
      event,
      domain: request.domain,
      entries,
      limit,
      metricKey,
      key: hit.key,
      windowEnd: isConditional(hit) ? undefined : hit.windowEnd,
      hits,
      taken: isConditional(hit) && typeof count !== "number" ? count : undefined,
      isShadow: limit.shadowMode || policy.shadowMode,
    });
  const { overLimit, nearLimit } = limit.events;
  if (nearLimit && stats.nearLimit > 0) add("near_limit", stats.nearLimit);
  if (overLimit && stats.overLimit > 0) add("over_limit", stats.overLimit);
}
