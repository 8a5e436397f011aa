import type { RateLimit } from "../rules/rules.ts";
import {
  type ChangeKind,
  changeOf,
  type RequestChange,
  type SimulatedDecision,
  type SimulatedStatus,
} from "./simulation.ts";

/** Changed decisions by kind. */
export type ChangeCounts = Record<ChangeKind, number>;

/** The decisions of one rule in one configuration. */
interface RuleDecisions {
  decisions: number;
  overLimit: number;
  shadowed: number;
}

/** The decisions of one rule in both configurations. */
export interface RuleTally {
  readonly source: "rule" | "request" | "none";
  readonly rule: string;
  readonly old: RuleDecisions;
  readonly new: RuleDecisions;
  /** Changed decisions, by the new rule if there is one. */
  readonly changed: ChangeCounts;
}

/** Counts simulated decisions; memory grows with the rules, not with the requests. */
export class SimulationTally {
  readonly #rules = new Map<string, RuleTally>();
  readonly overLimit = { old: 0, new: 0 };
  /** Changed requests by their most severe change. */
  readonly changedRequests: ChangeCounts = { toOverLimit: 0, toOk: 0, otherLimit: 0 };
  readonly changedDecisions: ChangeCounts = { toOverLimit: 0, toOk: 0, otherLimit: 0 };
  requests = 0;
  /** Descriptors of all requests. */
  decisions = 0;

  get changes(): number {
    const { toOverLimit, toOk, otherLimit } = this.changedRequests;
    return toOverLimit + toOk + otherLimit;
  }

  /** All rules with decisions by name, then other sources. */
  get rules(): RuleTally[] {
    const all = [...this.#rules].sort(([a], [b]) => a < b ? -1 : 1).map(([, tally]) => tally);
    return [
      ...all.filter(({ source }) => source === "rule"),
      ...all.filter(({ source }) => source !== "rule"),
    ];
  }

  /** Counts one request and returns its change. */
  add(before: SimulatedDecision | undefined, after: SimulatedDecision): RequestChange | undefined {
    this.requests++;
    this.decisions += after.statuses.length;
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
