import type { Counted } from "../algorithms/taken.ts";
import type { AnyHit, CounterCache } from "../decision/counter_cache.ts";
import { decide } from "../decision/decide.ts";
import type { Code } from "../decision.ts";
import { HitCounter } from "../decision/hit_counter.ts";
import { planHits } from "../decision/plan.ts";
import type { Policy } from "../decision/policy.ts";
import type { RateLimitRequest } from "../request.ts";
import type { RateLimit, Rules } from "../rules/rules.ts";
import { windowsText } from "../rules/rules_text.ts";
import { countsOf } from "../decision/take_hits.ts";
import { validateRequest } from "../decision/validate.ts";

/** Options of a simulation. */
interface SimulationOptions {
  readonly rules: Rules;
  readonly cache: CounterCache;
  readonly policy: Policy;
}

/** The decision of one request. */
export interface SimulatedDecision {
  readonly overallCode: Code;
  readonly statuses: readonly SimulatedStatus[];
}

/** The decision of one descriptor and its limit. */
export interface SimulatedStatus {
  readonly code: Code;
  /** Undefined if there is none, or if it is replaced. */
  readonly limit: RateLimit | undefined;
  readonly remaining: number;
  /** True if it is over its limit in shadow mode. */
  readonly shadowed: boolean;
}

/** Decides requests as the service does, at given times and with its own counters, and returns the limits. */
export class Simulation {
  readonly #options: SimulationOptions;
  readonly #counter: HitCounter;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#counter = new HitCounter(options);
  }

  /** Throws `InvalidRequestError` before it counts. */
  async decide(request: RateLimitRequest, nowSeconds: number): Promise<SimulatedDecision> {
    validateRequest(request);
    const { rules, policy } = this.#options;
    const plan = planHits(rules, request, { nowSeconds, random: () => 0, policy });
    const counts: Counted[] = plan.counted.map(() => 0);
    const hits: AnyHit[] = [];
    const owners: number[] = [];
    for (const [index, { hit }] of plan.counted.entries()) {
      if (hit === undefined) continue;
      hits.push(hit);
      owners.push(index);
    }
    const planned = { plan, counts, hits, owners, isReading: false };
    const after = countsOf(await this.#counter.count(planned, undefined));
    for (const [position, owner] of owners.entries()) counts[owner] = after[position] ?? 0;
    const { decision, stats, windows } = decide(plan, counts, policy, nowSeconds);
    const statuses = decision.statuses.map(({ code, limitRemaining }, index): SimulatedStatus => ({
      code,
      limit: windows?.[index]?.tightest.limit ?? plan.descriptors[index]?.limit,
      remaining: limitRemaining,
      shadowed: (stats[index]?.shadowMode ?? 0) > 0,
    }));
    return { overallCode: decision.overallCode, statuses };
  }
}

/** The possible changes of a decision, most severe first. */
export const CHANGE_KINDS = ["toOverLimit", "toOk", "otherLimit"] as const;

/** `otherLimit`: the same code by another limit. */
export type ChangeKind = typeof CHANGE_KINDS[number];

/** The change of one request. */
export interface RequestChange {
  /** The change of the overall code, or else the most severe change of a descriptor. */
  readonly kind: ChangeKind;
  readonly overall: ChangeKind | undefined;
  readonly statuses: readonly (ChangeKind | undefined)[];
}

/** Compares the decisions of two configurations; undefined if they are the same. */
export function changeOf(before: SimulatedDecision, after: SimulatedDecision): RequestChange | undefined {
  const overall = codeChange(before.overallCode, after.overallCode);
  const statuses = after.statuses.map((status, index) => {
    const old = before.statuses[index];
    return old === undefined ? undefined : statusChange(old, status);
  });
  const kind = overall ?? CHANGE_KINDS.find((each) => statuses.includes(each));
  return kind === undefined ? undefined : { kind, overall, statuses };
}

function statusChange(before: SimulatedStatus, after: SimulatedStatus): ChangeKind | undefined {
  return codeChange(before.code, after.code) ??
    (isSameLimit(before.limit, after.limit) ? undefined : "otherLimit");
}

function codeChange(before: Code, after: Code): ChangeKind | undefined {
  if (before === after) return undefined;
  return after === "OVER_LIMIT" ? "toOverLimit" : "toOk";
}

function isSameLimit(before: RateLimit | undefined, after: RateLimit | undefined): boolean {
  if (before === undefined || after === undefined) return before === after;
  return before.rule?.fullKey === after.rule?.fullKey &&
    windowsText(before) === windowsText(after) &&
    before.unlimited === after.unlimited &&
    before.requestsPerUnit === after.requestsPerUnit &&
    before.unit === after.unit &&
    before.windowSeconds === after.windowSeconds &&
    before.calendar?.timezone === after.calendar?.timezone &&
    before.conditional?.keyEnd === after.conditional?.keyEnd &&
    before.conditional?.capacity === after.conditional?.capacity;
}
