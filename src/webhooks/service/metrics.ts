import type { StoreMetrics } from "../store/store.ts";

/** What the webhook service tells of itself once a second. */
export interface WebhookFigures {
  /** Numbers that only grow, since its start. */
  readonly counters: Readonly<Record<string, number>>;
  readonly gauges: Readonly<Record<string, number>>;
  /** Durations since the last time, in milliseconds. */
  readonly durations: Readonly<Record<string, readonly number[]>>;
  /** What is wrong with the store; absent while nothing is. */
  readonly problem?: string | undefined;
  /** What its operator should know although it works. */
  readonly note?: string | undefined;
}

/** How a store that several machines share stands. */
export interface SharedFigures {
  /** Transactions that were done again because another one came before. */
  readonly repeats: number;
  /** How far the clock of this machine is ahead of the store's. */
  readonly wallAheadMs: number;
  /** What is wrong with the clock of this machine. */
  readonly problem?: string | undefined;
}

/** The counters that are there from the start, so that every one is shown before it first counts. */
export const WEBHOOK_COUNTERS: readonly string[] = [
  ...["succeeded", "failed", "cancelled"].map((status) => `executions_ended.${status}`),
  ...[
    "acknowledged",
    "status",
    "redirect",
    "timeout",
    "dns",
    "connect",
    "tls",
    "reset",
    "protocol",
    "blocked_address",
    "unsendable",
    "interrupted",
    "failed",
  ].map((result) => `attempts.${result}`),
  "lost_claims",
  "expired_claims",
  "store_errors",
  "store_repeats",
];

/** The gauges. */
export const WEBHOOK_GAUGES: readonly string[] = [
  ...["attempting", "retrying", "acknowledged", "failed"].map((state) => `deliveries.${state}`),
  ...["queued", "running", "succeeded", "failed", "cancelled"].map((status) => `executions.${status}`),
  "due_now",
  "oldest_due_age_seconds",
  "store_bytes",
  "attempts_in_flight",
  "executions_in_work",
  "dispatching",
  "clock_offset_seconds",
];

/** The timers. */
export const WEBHOOK_TIMERS: readonly string[] = ["attempt_time", "commit_time"];

/** What the store tells, as gauges. */
export function storeGauges(
  { deliveries, executions, dueNow, oldestDueAt, bytes }: StoreMetrics,
  now: number,
): Record<string, number> {
  const age = oldestDueAt === undefined ? 0 : Math.max(0, now - oldestDueAt) / 1_000;
  return {
    ...Object.fromEntries(Object.entries(deliveries).map(([state, count]) => [`deliveries.${state}`, count])),
    ...Object.fromEntries(
      Object.entries(executions).map(([status, count]) => [`executions.${status}`, count]),
    ),
    due_now: dueNow,
    oldest_due_age_seconds: age,
    store_bytes: bytes,
  };
}
