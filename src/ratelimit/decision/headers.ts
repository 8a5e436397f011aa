import type { DescriptorStatus, Header } from "../decision.ts";
import { isQuota, type Plan } from "./plan.ts";
import type { Policy } from "./policy.ts";
import type { RateLimit } from "../rules/rules.ts";

/**
 * The rate limit headers that the policy enables: for the last descriptor over its limit that is not a quota, otherwise for the first with the
 * least remaining.
 */
export function responseHeaders(
  plan: Plan,
  statuses: readonly DescriptorStatus[],
  policy: Policy,
): Header[] {
  const index = decisive(plan, statuses, policy);
  const limit = plan.descriptors[index]?.limit;
  const status = statuses[index];
  if (limit === undefined || status?.secondsUntilReset === undefined) return [];
  const { responseHeaders: names, standardHeaders } = policy;
  const custom = names === undefined ? [] : [
    { key: names.limit, value: String(limit.requestsPerUnit) },
    { key: names.remaining, value: String(status.limitRemaining) },
    { key: names.reset, value: String(status.secondsUntilReset) },
  ];
  return standardHeaders ? [...custom, ...standard(limit, status)] : custom;
}

/** The largest integer of a structured field. */
const MAX_FIELD_INTEGER = 999_999_999_999_999;

/** The fields of draft-ietf-httpapi-ratelimit-headers-10. */
function standard(limit: RateLimit, { limitRemaining, secondsUntilReset = 1 }: DescriptorStatus): Header[] {
  const name = fieldString(limit.name === "" ? "default" : limit.name);
  // How long a hit in flight takes does not depend on the limit.
  const reset = limit.conditional?.algorithm === "concurrency" ? "" : `;t=${fieldInteger(secondsUntilReset)}`;
  return [
    { key: "RateLimit-Policy", value: `${name};${policyOf(limit)}` },
    { key: "RateLimit", value: `${name};r=${limitRemaining}${reset}` },
  ];
}

/** The quota, and its unit or the seconds in which all of it is free again. */
function policyOf({ requestsPerUnit, windowSeconds, conditional }: RateLimit): string {
  if (conditional?.algorithm === "concurrency") return `q=${requestsPerUnit};qu="concurrent-requests"`;
  const quota = conditional?.capacity ?? requestsPerUnit;
  const seconds = quota === requestsPerUnit
    ? windowSeconds
    : Math.ceil(windowSeconds * quota / requestsPerUnit);
  return `q=${quota};w=${fieldInteger(seconds)}`;
}

function fieldInteger(number: number): number {
  return Math.min(number, MAX_FIELD_INTEGER);
}

/** A string of a structured field, which is ASCII without control characters. */
function fieldString(text: string): string {
  return `"${text.replaceAll(/[^\x20-\x7e]/g, "?").replaceAll(/["\\]/g, "\\$&")}"`;
}

/** The index of the descriptor in the headers; -1 without a limit. */
function decisive(plan: Plan, statuses: readonly DescriptorStatus[], policy: Policy): number {
  let lowest = -1;
  let lastOver = -1;
  let least = Infinity;
  for (const [index, planned] of plan.descriptors.entries()) {
    const status = statuses[index];
    if (status?.currentLimit === undefined) continue;
    if (status.code === "OVER_LIMIT" && !isQuota(planned, policy)) lastOver = index;
    if (status.limitRemaining < least) {
      least = status.limitRemaining;
      lowest = index;
    }
  }
  return lastOver >= 0 ? lastOver : lowest;
}
