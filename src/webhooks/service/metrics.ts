import type { StoreMetrics } from "../store/store.ts";

/** The metrics of the webhook service. */
export interface WebhookMetrics {
  /** Since the start of the worker. */
  readonly counters: Readonly<Record<string, number>>;
  readonly gauges: Readonly<Record<string, number>>;
  /** Durations since the last metrics, in milliseconds. */
  readonly durations: Readonly<Record<string, readonly number[]>>;
  /** What is wrong with the store, if anything. */
  readonly problem?: string | undefined;
  /** What the operator should know although the service works. */
  readonly note?: string | undefined;
}

/** The metrics of a store that several machines share. */
export interface SharedStoreMetrics {
  /** Transactions that were retried after a conflict. */
  readonly retries: number;
  /** How far the clock of this machine is ahead of the store's. */
  readonly wallAheadMs: number;
  /** What is wrong with the clock of this machine, if anything. */
  readonly problem?: string | undefined;
}

/** The counters; each one is shown from the start. */
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
  "transaction_retries",
];

/** The gauges. */
export const WEBHOOK_GAUGES: readonly string[] = [
  ...["attempting", "retrying", "acknowledged", "failed"].map((state) => `deliveries.${state}`),
  ...["queued", "running", "succeeded", "failed", "cancelled"].map((status) => `executions.${status}`),
  "due_now",
  "oldest_due_age_seconds",
  "store_bytes",
  "attempts_in_flight",
  "executions_in_flight",
  "is_dispatcher",
  "clock_offset_seconds",
];

/** The timers. */
export const WEBHOOK_TIMERS: readonly string[] = ["attempt_time", "commit_time"];

/** The store's metrics as gauges. */
export function storeGauges(
  { deliveries, executions, dueNow, oldestDueAt, bytes }: StoreMetrics,
  now: number,
): Record<string, number> {
  const age = oldestDueAt === undefined ? 0 : Math.max(0, now - oldestDueAt) / 1_000;
  return {
    ...prefixed("deliveries", Object.entries(deliveries)),
    ...prefixed("executions", Object.entries(executions)),
    due_now: dueNow,
    oldest_due_age_seconds: age,
    store_bytes: bytes,
  };
}

/** Counts by name, with a prefix before each name. */
export function prefixed(
  prefix: string,
  counts: Iterable<readonly [string, number]>,
): Record<string, number> {
  return Object.fromEntries([...counts].map(([name, count]) => [`${prefix}.${name}`, count]));
}

/** Durations between two takes; of more than this many the rest is dropped. */
const MAX_SAMPLES = 10_000;

/** Collects durations, in milliseconds, until they are taken. */
export class DurationSamples {
  #samples: number[] = [];

  add(ms: number): void {
    if (this.#samples.length < MAX_SAMPLES) this.#samples.push(ms);
  }

  take(): readonly number[] {
    const samples = this.#samples;
    this.#samples = [];
    return samples;
  }
}
