import type { Code } from "./decision.ts";
import type { RateLimit } from "./rules.ts";
import type { SimulatedDecision, SimulatedStatus } from "./simulation.ts";

/** How a decision changes, the gravest first. */
export const CHANGE_KINDS = ["toOverLimit", "toOk", "otherLimit"] as const;

/** One way in which a decision changes. `otherLimit` has the code it had, by another limit. */
export type ChangeKind = typeof CHANGE_KINDS[number];

/** What changes for one request. */
export interface RequestChange {
  /** What happens to the overall code; where that stays, the gravest change of a descriptor. */
  readonly kind: ChangeKind;
  /** Absent where the overall code stays. */
  readonly overall: ChangeKind | undefined;
  /** One item a descriptor; absent where its decision stays. */
  readonly statuses: readonly (ChangeKind | undefined)[];
}

/** Compares what two configurations decided for the same request; nothing when they decided the same. */
export function changeOf(before: SimulatedDecision, after: SimulatedDecision): RequestChange | undefined {
  const overall = codeChange(before.overallCode, after.overallCode);
  const statuses = after.statuses.map((status, index) => {
    const old = before.statuses[index];
    return old === undefined ? undefined : statusChange(old, status);
  });
  // A code that changes for the whole request is what its caller sees.
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

/** What is left of a limit is not looked at, nor flags that show in the code once they matter. */
function isSameLimit(before: RateLimit | undefined, after: RateLimit | undefined): boolean {
  if (before === undefined || after === undefined) return before === after;
  return before.rule?.fullKey === after.rule?.fullKey &&
    before.unlimited === after.unlimited &&
    before.requestsPerUnit === after.requestsPerUnit &&
    before.unit === after.unit &&
    before.windowSeconds === after.windowSeconds;
}
