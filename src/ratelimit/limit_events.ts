import type { Counted, Taken } from "./algorithms/taken.ts";
import { type AnyHit, isConditional, type PlannedDescriptor } from "./plan.ts";
import type { Policy } from "./policy.ts";
import type { Entry, RateLimitRequest } from "./request.ts";
import type { RuleStats } from "./rule_stats.ts";
import type { LimitEvent } from "./rule_events.ts";
import type { RateLimit } from "./rules.ts";

/** Hits of a decision that are over a limit or near it, whose rule reports that. */
export interface LimitFact {
  readonly event: LimitEvent;
  readonly domain: string;
  readonly entries: readonly Entry[];
  readonly limit: RateLimit;
  readonly metricKey: string;
  readonly hit: AnyHit;
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
export interface DecidedDescriptor {
  readonly request: RateLimitRequest;
  readonly index: number;
  readonly planned: PlannedDescriptor;
  readonly count: Counted;
  readonly stats: RuleStats;
}

/** Adds the facts that the rule of a descriptor reports. */
export function addFacts(facts: LimitFact[], decided: DecidedDescriptor, policy: Policy): void {
  const { planned: { limit, hit }, stats } = decided;
  if (limit?.events === undefined || hit === undefined) return;
  const { overLimit, nearLimit } = limit.events;
  const isShadow = limit.shadowMode || policy.shadowMode;
  if (nearLimit && stats.nearLimit > 0) {
    facts.push(factOf(decided, { event: "near_limit", limit, hit, hits: stats.nearLimit, isShadow }));
  }
  if (overLimit && stats.overLimit > 0) {
    facts.push(factOf(decided, { event: "over_limit", limit, hit, hits: stats.overLimit, isShadow }));
  }
}

function factOf(
  { request, index, planned, count }: DecidedDescriptor,
  { event, limit, hit, hits, isShadow }: Pick<LimitFact, "event" | "limit" | "hit" | "hits" | "isShadow">,
): LimitFact {
  return {
    event,
    domain: request.domain,
    entries: request.descriptors[index]?.entries ?? [],
    limit,
    metricKey: planned.metricKey,
    hit,
    hits,
    taken: isConditional(hit) && typeof count !== "number" ? count : undefined,
    isShadow,
  };
}
