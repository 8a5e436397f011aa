import type { DescriptorStatus, Header } from "./decision.ts";
import { isQuota, type Plan } from "./plan.ts";
import type { Policy } from "./policy.ts";
import { secondsUntilReset } from "./window.ts";

/**
 * The headers that tell the caller of its limit: of the last descriptor that is over and no quota,
 * otherwise of the first with the least remaining. None where nothing limits the request.
 */
export function responseHeaders(
  plan: Plan,
  statuses: readonly DescriptorStatus[],
  policy: Policy,
  nowSeconds: number,
): Header[] {
  const names = policy.responseHeaders;
  const index = decisive(plan, statuses, policy);
  const limit = plan.descriptors[index]?.limit;
  const status = statuses[index];
  if (names === undefined || limit === undefined || status === undefined) return [];
  return [
    { key: names.limit, value: String(limit.requestsPerUnit) },
    { key: names.remaining, value: String(status.limitRemaining) },
    { key: names.reset, value: String(secondsUntilReset(nowSeconds, limit.windowSeconds)) },
  ];
}

/** Which descriptor the headers speak of; -1 when none has a limit to show. */
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
