import type { Counted } from "../algorithms/taken.ts";
import type { DescriptorStatus } from "../decision.ts";
import type { RuleStats } from "../rules/rule_stats.ts";
import type { Unit } from "../units.ts";
import { ALLOWED_UNCOUNTED, type OverLimitKey, overLimitKeyOf, statsOf, statusOf } from "./decide_count.ts";
import type { PlannedDescriptor } from "./plan.ts";
import type { Policy } from "./policy.ts";

/** One of several windows, and what became of the hits in it. */
interface DecidedWindow {
  readonly planned: PlannedDescriptor;
  readonly count: Counted;
  readonly status: DescriptorStatus;
  readonly stats: RuleStats;
}

/** The decision of a descriptor whose limit has several windows. */
export interface DecidedWindows {
  /** In the order of the rule. */
  readonly all: readonly DecidedWindow[];
  /** The one that answers: over its limit, with the longest wait; otherwise that with the least remaining. */
  readonly tightest: PlannedDescriptor;
  readonly status: DescriptorStatus;
  /** A call counts once: as in the window that refuses most of it, or else in the one that it is nearest to. */
  readonly stats: RuleStats;
  /** Those that refuse hits; without any, those that hits are near. */
  readonly reported: readonly DecidedWindow[];
  readonly overLimitKeys: readonly OverLimitKey[];
}

/** Decides the windows of one descriptor by their counts. */
export function decideWindows(
  windows: readonly PlannedDescriptor[],
  counts: readonly Counted[],
  policy: Policy,
  nowSeconds: number,
): DecidedWindows {
  const all: DecidedWindow[] = [];
  const overLimitKeys: OverLimitKey[] = [];
  for (const [index, planned] of windows.entries()) {
    const { limit } = planned;
    if (limit === undefined) continue;
    const count = counts[index] ?? 0;
    const status = statusOf(planned, limit, count, nowSeconds);
    all.push({ planned, count, status, stats: statsOf(planned, limit, count, policy) });
    const key = overLimitKeyOf(planned, limit, count);
    if (key !== undefined) overLimitKeys.push(key);
  }
  const [first, ...others] = all;
  if (first === undefined) throw new TypeError("A limit has no windows");
  const tightest = others.reduce((least, one) => isTighter(one, least) ? one : least, first);
  const stats = others.reduce((most, one) => weighs(one.stats, most) ? one.stats : most, first.stats);
  const over = all.filter((one) => one.stats.overLimit > 0);
  return {
    all,
    tightest: tightest.planned,
    status: tightest.status,
    stats,
    reported: over.length > 0 ? over : all.filter((one) => one.stats.nearLimit > 0),
    overLimitKeys,
  };
}

/** Adds the refused hits of each window to those of its unit. */
export function refusalsOf({ all }: DecidedWindows): Map<Unit, number> {
  const refusals = new Map<Unit, number>();
  for (const { planned: { limit }, stats: { overLimit } } of all) {
    if (limit?.unit === undefined || overLimit === 0) continue;
    refusals.set(limit.unit, (refusals.get(limit.unit) ?? 0) + overLimit);
  }
  return refusals;
}

function isTighter(one: DecidedWindow, other: DecidedWindow): boolean {
  const [isOver, isOtherOver] = [isExceeded(one), isExceeded(other)];
  if (isOver !== isOtherOver) return isOver;
  return isOver
    ? (one.status.secondsUntilReset ?? 0) > (other.status.secondsUntilReset ?? 0)
    : remainingOf(one) < remainingOf(other);
}

/** Also in shadow mode, whose status is OK. */
function isExceeded({ status, stats }: DecidedWindow): boolean {
  return status.code === "OVER_LIMIT" || stats.overLimit > 0;
}

/** A window that was not counted tells nothing. */
export function isUncounted({ count }: DecidedWindow): boolean {
  return count === ALLOWED_UNCOUNTED;
}

function remainingOf(window: DecidedWindow): number {
  return isUncounted(window) ? Infinity : window.status.limitRemaining;
}

function weighs(one: RuleStats, other: RuleStats): boolean {
  return one.overLimit === other.overLimit
    ? one.nearLimit > other.nearLimit
    : one.overLimit > other.overLimit;
}
