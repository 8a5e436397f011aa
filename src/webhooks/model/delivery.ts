import type { Attempt, AttemptErrorKind, AttemptResult, Delivery, DeliveryState } from "./records.ts";
import { LAST_SLOT_MS, nextAttempt, SLOTS_MS, slotsUsed } from "./schedule.ts";

/** Changes of a delivery by a finished attempt. */
export type DeliveryChange = Pick<
  Delivery,
  "state" | "slot" | "firstFailureAt" | "dueAt" | "finishedAt" | "reason"
>;

/** The outcome of an attempt. */
export interface AttemptOutcome {
  readonly result: AttemptResult;
  readonly finishedAt: number;
  readonly status?: Attempt["status"];
  readonly errorKind?: Attempt["errorKind"];
  readonly error?: Attempt["error"];
  readonly response?: Attempt["response"];
  readonly headers?: Attempt["headers"];
}

/** The next state of a delivery after a scheduled or manual attempt; absent where it stays. */
const TRANSITIONS: Readonly<
  Record<
    "scheduled" | "manual",
    Readonly<Record<DeliveryState, Partial<Record<AttemptResult, DeliveryState>>>>
  >
> = {
  // `retrying` ends as `failed` when the schedule is used up.
  scheduled: {
    attempting: { acknowledged: "acknowledged", failed: "retrying" },
    retrying: { acknowledged: "acknowledged", failed: "retrying" },
    acknowledged: {},
    failed: { acknowledged: "acknowledged" },
  },
  manual: {
    attempting: { acknowledged: "acknowledged" },
    retrying: { acknowledged: "acknowledged" },
    acknowledged: {},
    failed: { acknowledged: "acknowledged" },
  },
};

/** Failures after which the first retry is immediate, in addition to statuses of 500 and above. */
const RETRIED_IMMEDIATELY: readonly AttemptErrorKind[] = [
  "timeout",
  "dns",
  "connect",
  "tls",
  "reset",
  "protocol",
];
/** Statuses whose `Retry-After` counts. */
const ASKING_TO_WAIT: readonly number[] = [429, 503];

/** A finished attempt. */
export interface AttemptEnd extends AttemptOutcome {
  /** The wait that the receiver asked for. */
  readonly retryAfterMs?: number | undefined;
  /** True if its body cannot be rendered: the delivery fails now, since its event stays the same. */
  readonly isUnrenderable?: boolean | undefined;
}

/** The effect of an attempt on its delivery. */
interface AfterAttempt {
  /** Absent where nothing changes. */
  readonly change?: DeliveryChange;
  /** True if the delivery has now failed for good, which is audited. */
  readonly failed: boolean;
}

/** When an attempt ended, and of which kind it was. */
export interface AfterAttemptOptions {
  readonly now: number;
  /** From 0 to below 1. */
  readonly random: number;
  /** A manual attempt uses no slot. */
  readonly manual: boolean;
  /**
   * When the attempt began. It uses up the slots that passed before; those that passed while it ran become one attempt
   * now. When absent, it uses those up as well.
   */
  readonly startedAt?: number | undefined;
}

/** The effect of a finished attempt on its delivery. An interrupted one changes nothing. */
export function afterAttempt(
  delivery: Pick<Delivery, "state" | "slot" | "firstFailureAt" | "waitedMs">,
  outcome: AttemptEnd,
  options: AfterAttemptOptions,
): AfterAttempt {
  const next = TRANSITIONS[options.manual ? "manual" : "scheduled"][delivery.state][outcome.result];
  if (next === undefined) return { failed: false };
  if (next === "acknowledged") {
    const { slot, firstFailureAt } = delivery;
    const since = firstFailureAt === undefined ? {} : { firstFailureAt };
    return { change: { state: next, slot, ...since, finishedAt: options.now }, failed: false };
  }
  return afterFailure(delivery, outcome, options);
}

/** Returns whether a delivery may still be attempted by its schedule. */
export function isOpen(state: DeliveryState): boolean {
  return state === "attempting" || state === "retrying";
}

function afterFailure(
  delivery: Pick<Delivery, "slot" | "firstFailureAt" | "waitedMs">,
  outcome: AttemptEnd,
  { now, random, startedAt = now }: AfterAttemptOptions,
): AfterAttempt {
  // Otherwise a clock that was set back would hold the delivery until it catches up; its schedule starts over now.
  const firstFailureAt = Math.min(delivery.firstFailureAt ?? now, now);
  if (outcome.isUnrenderable === true) {
    const { slot } = delivery;
    const reason = "unrenderable";
    return { change: { state: "failed", slot, firstFailureAt, finishedAt: now, reason }, failed: true };
  }
  const isFirst = delivery.firstFailureAt === undefined;
  const { waitedMs = 0 } = delivery;
  // The rate limit of the endpoint delays the schedule, and uses no slot, but retries end after a day.
  const used = isFirst ? 0 : slotsUsed(delivery.slot, firstFailureAt + waitedMs, startedAt);
  const isLate = !isFirst && startedAt - firstFailureAt >= LAST_SLOT_MS;
  const next = isLate ? undefined : nextAttempt({
    slot: used,
    firstFailureAt,
    waitedMs,
    now,
    random,
    mayRetryImmediately: isRetriedImmediately(outcome),
    retryAfterMs: ASKING_TO_WAIT.includes(outcome.status ?? 0) ? outcome.retryAfterMs : undefined,
  });
  if (next !== undefined) {
    return {
      change: { state: "retrying", slot: next.slot, firstFailureAt, dueAt: next.dueAt },
      failed: false,
    };
  }
  const slot = SLOTS_MS.length;
  const reason = isLate && used < slot ? "rate_limited" : "exhausted";
  const change = { state: "failed", slot, firstFailureAt, finishedAt: now, reason } as const;
  return { change, failed: true };
}

function isRetriedImmediately({ status, errorKind }: AttemptEnd): boolean {
  if (status !== undefined) return status >= 500;
  return errorKind !== undefined && RETRIED_IMMEDIATELY.includes(errorKind);
}
