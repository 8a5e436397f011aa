import type { AttemptErrorKind, AttemptResult, Delivery, DeliveryState, FailureReason } from "./records.ts";
import { nextAttempt, SLOTS_MS, slotsUsed } from "./schedule.ts";

/** What a finished attempt does to its delivery. */
export interface DeliveryChange {
  readonly state: DeliveryState;
  readonly slot: number;
  readonly firstFailureAt?: number | undefined;
  /** Absent in final states. */
  readonly dueAt?: number | undefined;
  readonly finishedAt?: number | undefined;
  readonly reason?: FailureReason | undefined;
}

/** How an attempt went. */
export interface AttemptOutcome {
  readonly result: AttemptResult;
  readonly finishedAt: number;
  readonly status?: number | undefined;
  readonly errorKind?: AttemptErrorKind | undefined;
  readonly error?: string | undefined;
  readonly response?: string | undefined;
}

/** Where an attempt of the schedule, and one asked for by hand, takes a delivery; absent where it stays. */
export const TRANSITIONS: Readonly<
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

/** Failures after which the first retry is made at once, beside answers of 500 and above. */
const RETRIED_AT_ONCE: readonly AttemptErrorKind[] = [
  "timeout",
  "dns",
  "connect",
  "tls",
  "reset",
  "protocol",
];
/** Answers whose `Retry-After` counts. */
const ASKING_TO_WAIT: readonly number[] = [429, 503];

/** An attempt that is over, and what the receiver asked for. */
export type AttemptEnd = AttemptOutcome & { readonly retryAfterMs?: number | undefined };

/** What an attempt does to its delivery. */
export interface AfterAttempt {
  /** Absent where the schedule stays as it is. */
  readonly change?: DeliveryChange;
  /** Whether the delivery has now failed for good, which is to be audited. */
  readonly failed: boolean;
}

/** When an attempt ended, and of which kind it was. */
export interface AfterAttemptOptions {
  readonly now: number;
  /** From 0 to below 1. */
  readonly random: number;
  /** Whether it was asked for by hand: it then uses no slot. */
  readonly manual: boolean;
  /**
   * When the attempt began. Slots that passed before are used up by it, slots that passed while it was out are one
   * attempt now. When absent those too are used up.
   */
  readonly startedAt?: number | undefined;
}

/** What an attempt that is over does to its delivery. An interrupted one changes nothing. */
export function afterAttempt(
  delivery: Pick<Delivery, "state" | "slot" | "firstFailureAt">,
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

/** Whether a delivery may still be attempted by its schedule. */
export function isOpen(state: DeliveryState): boolean {
  return state === "attempting" || state === "retrying";
}

function afterFailure(
  delivery: Pick<Delivery, "slot" | "firstFailureAt">,
  outcome: AttemptEnd,
  { now, random, startedAt = now }: AfterAttemptOptions,
): AfterAttempt {
  // A clock that went back would hold a delivery until it has caught up: its schedule begins anew at this moment.
  const firstFailureAt = Math.min(delivery.firstFailureAt ?? now, now);
  const isFirst = delivery.firstFailureAt === undefined;
  const next = nextAttempt({
    slot: isFirst ? 0 : slotsUsed(delivery.slot, firstFailureAt, startedAt),
    ...{ firstFailureAt, now, random },
    mayRetryAtOnce: isRetriedAtOnce(outcome),
    retryAfterMs: ASKING_TO_WAIT.includes(outcome.status ?? 0) ? outcome.retryAfterMs : undefined,
  });
  if (next !== undefined) {
    return {
      change: { state: "retrying", slot: next.slot, firstFailureAt, dueAt: next.dueAt },
      failed: false,
    };
  }
  const slot = SLOTS_MS.length;
  const change = { state: "failed", slot, firstFailureAt, finishedAt: now, reason: "exhausted" } as const;
  return { change, failed: true };
}

function isRetriedAtOnce({ status, errorKind }: AttemptEnd): boolean {
  if (status !== undefined) return status >= 500;
  return errorKind !== undefined && RETRIED_AT_ONCE.includes(errorKind);
}
