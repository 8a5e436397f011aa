import type { DescriptorStatus, Header } from "./decision.ts";
import { isQuota, type Plan } from "./plan.ts";
import type { Policy } from "./policy.ts";

/**
 * The rate limit headers: for the last descriptor over its limit that is not a quota, otherwise for the first with the
 * least remaining.
 */
export function responseHeaders(
  plan: Plan,
  statuses: readonly DescriptorStatus[],
  policy: Policy,
): Header[] {
  const names = policy.responseHeaders;
  const index = decisive(plan, statuses, policy);
  const limit = plan.descriptors[index]?.limit;
  const status = statuses[index];
  if (names === undefined || limit === undefined || status?.secondsUntilReset === undefined) return [];
  return [
    { key: names.limit, value: String(limit.requestsPerUnit) },
    { key: names.remaining, value: String(status.limitRemaining) },
    { key: names.reset, value: String(status.secondsUntilReset) },
  ];
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
