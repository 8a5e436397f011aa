import {
  counter,
  gauge,
  type MetricGroup,
  type MetricKind,
  type MetricName,
  timer,
} from "../../base/metrics.ts";
import { SIGNATURE_REFUSALS, type SignatureRefusal } from "../model/trigger_verification.ts";
import { ATTEMPT_FIELDS, DELIVERY_FIELDS } from "../resources/delivery.ts";
import { EXECUTION_FIELDS } from "../resources/execution.ts";
import type { StoreMetrics } from "../store/store.ts";

/** The metrics of the webhook service. */
export interface WebhookMetrics {
  /** Since the start of the worker. */
  readonly counters: Readonly<Partial<Record<WebhookMetricName<"counter">, number>>>;
  readonly gauges: Readonly<Partial<Record<WebhookMetricName<"gauge">, number>>>;
  /** Durations since the last metrics, in milliseconds. */
  readonly durations: Readonly<Partial<Record<WebhookMetricName<"timer">, readonly number[]>>>;
  /** The problem of the store, if any. */
  readonly problem?: string | undefined;
  /** Why the service is degraded although it works, a line for each cause. */
  readonly note?: string | undefined;
}

/** The metrics of a store that several machines share. */
export interface SharedStoreMetrics {
  /** Transactions that were retried after a conflict. */
  readonly retries: number;
  /** Lead of the clock of this machine over the store's. */
  readonly wallAheadMs: number;
  /** The problem of the clock of this machine, if any. */
  readonly problem?: string | undefined;
  /** Changes of the file with the credentials, and refused logins. */
  readonly logins?: { readonly [Name in "reloaded" | "rejected" | "refused"]?: number | undefined };
}

/** The metrics; each one is shown from the start. */
export const WEBHOOK_METRICS = {
  prefix: "ratelimit.webhooks.",
  metrics: {
    attempts: counter(
      "attempts",
      "Attempts of deliveries: `acknowledged`, or the kind of error (`failed` if there is none).",
      {
        label: "result",
        values: ["acknowledged", ...ATTEMPT_FIELDS.errorKind.choices, "failed"],
      },
    ),
    attempt_time: timer("Time of an attempt of a delivery.", "ratelimit_webhooks_attempt_seconds"),
    attempts_in_flight: gauge("attempts", "Attempts in flight in this process."),
    deliveries: gauge("deliveries", "Deliveries in the store by state.", {
      label: "state",
      values: DELIVERY_FIELDS.state.choices,
    }),
    deliveries_paused: gauge("0 or 1", "1 while an administrator has paused all deliveries."),
    signature_refusals: counter(
      "calls",
      "Calls of signed triggers with a missing or wrong signature, by reason; the responses do not contain it.",
      { label: "reason", values: Object.keys(SIGNATURE_REFUSALS) as SignatureRefusal[] },
    ),
    due_now: gauge(
      "deliveries",
      "Deliveries whose next attempt is due, without those of disabled and failing endpoints, and of endpoints that wait for their rate limit.",
    ),
    oldest_due_age_seconds: gauge("seconds", "Time since the oldest of these deliveries became due."),
    endpoints: gauge(
      "endpoints",
      "Endpoints by state; `failing` is one whose last 20 attempts or more failed.",
      { label: "state", values: ["healthy", "failing", "disabled_by_admin", "disabled_by_weir"] },
    ),
    replays_running: gauge("replays", "Replays that run, including retries of deliveries."),
    replayed_deliveries: counter("deliveries", "Deliveries that replays have created or retried."),
    endpoints_rate_limited: gauge(
      "endpoints",
      "Enabled endpoints whose rate limit allows no attempt at the moment.",
    ),
    executions: gauge("executions", "Executions of workflows in the store by status.", {
      label: "status",
      values: EXECUTION_FIELDS.status.choices,
    }),
    executions_ended: counter("executions", "Executions of workflows that ended, by status.", {
      label: "status",
      values: ["succeeded", "failed", "cancelled"],
    }),
    executions_in_flight: gauge("executions", "Executions that this process runs."),
    expired_claims: counter(
      "claims",
      "Claims on deliveries that expired because their process did not renew them.",
    ),
    lost_claims: counter(
      "claims",
      "Claims on deliveries that this process lost, so that it discarded the result.",
    ),
    is_dispatcher: gauge(
      "0 or 1",
      "1 in a process that delivers and runs workflows, 0 in one that waits for the lock.",
    ),
    bound_refusals: counter(
      "calls",
      "Trigger calls and events that were rejected because of a bound of the store.",
      {
        label: "bound",
        values: ["store", "backlog"],
      },
    ),
    largest_backlog: gauge(
      "deliveries",
      "Largest known number of open deliveries of one endpoint; a value below half of `max_backlog` may be outdated.",
    ),
    max_backlog: gauge("deliveries", "Value of `WEBHOOK_MAX_BACKLOG`."),
    store_used_bytes: gauge(
      "bytes",
      "Size that `WEBHOOK_STORE_MAX_BYTES` bounds: the SQLite file without its free pages, or the PostgreSQL tables.",
    ),
    store_max_bytes: gauge("bytes", "Value of `WEBHOOK_STORE_MAX_BYTES`."),
    store_bytes: gauge("bytes", "Size of the SQLite file and its `-wal`, or of the PostgreSQL tables."),
    commit_time: timer("Time of a commit of the store.", "ratelimit_webhooks_commit_seconds"),
    store_errors: counter("errors", "Failed reads and writes of the store."),
    transaction_retries: counter(
      "transactions",
      "PostgreSQL transactions that were repeated after a conflict.",
    ),
    store_credentials_reloaded: counter(
      "reloads",
      "Credentials of PostgreSQL that were reloaded because their file changed.",
    ),
    store_credentials_rejected: counter(
      "reloads",
      "Files with credentials of PostgreSQL that could not be used; the previous credentials remain in use.",
    ),
    store_logins_refused: counter("logins", "Logins that PostgreSQL refused."),
    clock_offset_seconds: gauge(
      "seconds",
      "How far the clock of the machine is ahead of the clock of PostgreSQL.",
    ),
  },
} satisfies MetricGroup;

/** The last parts of the names of one kind. */
type WebhookMetricName<Kind extends MetricKind> = MetricName<typeof WEBHOOK_METRICS.metrics, Kind>;

/** The store's metrics as gauges. */
export function storeGauges(
  { deliveries, executions, endpoints, replays, rateLimited, dueNow, oldestDueAt, bytes, pause }:
    StoreMetrics,
  now: number,
): WebhookMetrics["gauges"] {
  const age = oldestDueAt === undefined ? 0 : Math.max(0, now - oldestDueAt) / 1_000;
  return {
    ...prefixed("deliveries", Object.entries(deliveries)),
    ...prefixed("executions", Object.entries(executions)),
    deliveries_paused: pause === undefined ? 0 : 1,
    ...prefixed("endpoints", Object.entries(endpoints)),
    replays_running: replays,
    endpoints_rate_limited: rateLimited,
    due_now: dueNow,
    oldest_due_age_seconds: age,
    store_bytes: bytes,
  };
}

/** Why endpoints degrade the service, if any do. */
export function endpointNote({ endpoints }: Pick<StoreMetrics, "endpoints">): string | undefined {
  const words = [["failing", endpoints.failing], ["disabled by Weir", endpoints.disabled_by_weir]] as const;
  const found = words.filter(([, count]) => count > 0).map(([word, count]) => `${count} ${word}`);
  return found.length === 0 ? undefined : `endpoints: ${found.join(", ")}; see weir endpoints list`;
}

/** Counts by name, with a prefix before each name. */
export function prefixed<Prefix extends string>(
  prefix: Prefix,
  counts: Iterable<readonly [string, number]>,
): Record<`${Prefix}.${string}`, number> {
  const entries = [...counts].map(([name, count]) => [`${prefix}.${name}`, count] as const);
  return Object.fromEntries(entries) as Record<`${Prefix}.${string}`, number>;
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
