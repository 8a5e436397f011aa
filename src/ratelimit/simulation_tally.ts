import type { RateLimit } from "./rules.ts";
import type { SimulatedDecision, SimulatedStatus } from "./simulation.ts";
import { type ChangeKind, changeOf, type RequestChange } from "./simulation_change.ts";

/** How many decisions changed, by kind. */
export type ChangeCounts = Record<ChangeKind, number>;

/** What one configuration decided by one rule. */
export interface RuleDecisions {
  decisions: number;
  overLimit: number;
  /** Over the limit, and OK because the rule is in shadow mode. */
  shadowed: number;
}

/** What both configurations decided by one rule. */
export interface RuleTally {
  /** Where the limit comes from. */
  readonly source: "rule" | "request" | "none";
  /** Full key of the rule; empty for other sources. */
  readonly rule: string;
  readonly old: RuleDecisions;
  readonly new: RuleDecisions;
  /** Decisions of this rule that changed; one that the new configuration does not limit belongs to its old rule. */
  readonly changed: ChangeCounts;
}

/** Counts what simulated requests were answered, in memory that grows with the rules and not with the requests. */
export class SimulationTally {
  readonly #rules = new Map<string, RuleTally>();
  /** Requests whose overall code is over the limit. */
  readonly overLimit = { old: 0, new: 0 };
  /** Requests that are decided otherwise, each by its gravest change. */
  readonly changedRequests: ChangeCounts = { toOverLimit: 0, toOk: 0, otherLimit: 0 };
  /** Changes of single descriptors. */
  readonly changedDecisions: ChangeCounts = { toOverLimit: 0, toOk: 0, otherLimit: 0 };
  #requests = 0;
  #decisions = 0;

  /** Requests counted. */
  get requests(): number {
    return this.#requests;
  }

  /** Descriptors of all requests. */
  get decisions(): number {
    return this.#decisions;
  }

  /** Requests that are decided otherwise. */
  get changes(): number {
    const { toOverLimit, toOk, otherLimit } = this.changedRequests;
    return toOverLimit + toOk + otherLimit;
  }

  /** What is known of every rule that decided something: rules by name, then what no rule decided. */
  get rules(): RuleTally[] {
    const all = [...this.#rules].sort(([a], [b]) => a < b ? -1 : 1).map(([, tally]) => tally);
    return [
      ...all.filter(({ source }) => source === "rule"),
      ...all.filter(({ source }) => source !== "rule"),
    ];
  }

  /** Counts one request; `before` is absent where there is nothing to compare with. Answers what changes. */
  add(before: SimulatedDecision | undefined, after: SimulatedDecision): RequestChange | undefined {
    this.#requests++;
    this.#decisions += after.statuses.length;
    for (const status of before?.statuses ?? []) count(this.#ruleOf(status.limit).old, status);
    for (const status of after.statuses) count(this.#ruleOf(status.limit).new, status);
    if (before?.overallCode === "OVER_LIMIT") this.overLimit.old++;
    if (after.overallCode === "OVER_LIMIT") this.overLimit.new++;
    const change = before === undefined ? undefined : changeOf(before, after);
    if (change === undefined) return undefined;
    this.changedRequests[change.kind]++;
    for (const [index, kind] of change.statuses.entries()) {
      if (kind === undefined) continue;
      this.changedDecisions[kind]++;
      this.#ruleOf(after.statuses[index]?.limit ?? before?.statuses[index]?.limit).changed[kind]++;
    }
    return change;
  }

  #ruleOf(limit: RateLimit | undefined): RuleTally {
    const source = limit === undefined ? "none" : limit.rule === undefined ? "request" : "rule";
    const rule = limit?.rule?.fullKey ?? "";
    const key = `${source} ${rule}`;
    let tally = this.#rules.get(key);
    if (tally === undefined) {
      const none: RuleDecisions = { decisions: 0, overLimit: 0, shadowed: 0 };
      const changed: ChangeCounts = { toOverLimit: 0, toOk: 0, otherLimit: 0 };
      this.#rules.set(key, tally = { source, rule, old: { ...none }, new: { ...none }, changed });
    }
    return tally;
  }
}

function count(decisions: RuleDecisions, { code, shadowed }: SimulatedStatus): void {
  decisions.decisions++;
  if (code === "OVER_LIMIT") decisions.overLimit++;
  if (shadowed) decisions.shadowed++;
}
