import { counter, type MetricGroup, metricReaders } from "../base/metrics.ts";
import type { StatsStore } from "../stats/store.ts";
import type { Timer } from "../stats/timer.ts";
import type { WebhookAnswer } from "../webhooks/api/calls.ts";
import { WEBHOOK_METRICS, type WebhookMetrics } from "../webhooks/service/metrics.ts";

/** Results of calls of triggers by the status of the answer; all others are `failed`. */
const TRIGGER_RESULTS: Readonly<Record<number, string>> = {
  200: "filtered",
  202: "accepted",
  400: "invalid",
  401: "unauthorized",
  403: "disabled",
  404: "not_found",
  405: "invalid",
  408: "invalid",
  409: "in_flight",
  413: "invalid",
  415: "invalid",
  422: "invalid",
  429: "over_limit",
  503: "unavailable",
};

/** The metrics of calls of triggers. */
export const TRIGGER_METRICS = {
  prefix: WEBHOOK_METRICS.prefix,
  metrics: {
    triggers: counter(
      "calls",
      "Trigger calls by result; `unavailable` and `failed` return 5xx.",
      {
        label: "result",
        values: [...new Set([...Object.values(TRIGGER_RESULTS), "challenge", "replayed", "failed"])],
      },
    ),
  },
} satisfies MetricGroup;

/** Shows the metrics of the webhook service in the statistics. Counters continue when a worker is replaced. */
export class WebhookStatistics {
  readonly #timers: ReadonlyMap<string, Timer>;
  readonly #triggers = new Map<string, number>();
  /** Counters of former workers. */
  readonly #before = new Map<string, number>();
  #counters: WebhookMetrics["counters"] = {};
  #gauges: WebhookMetrics["gauges"] = {};

  constructor(stats: StatsStore) {
    const { metrics } = WEBHOOK_METRICS;
    stats.addMetrics(TRIGGER_METRICS, {
      counters: metricReaders(TRIGGER_METRICS.metrics, "counter", (name) => this.#triggers.get(name) ?? 0),
      gauges: {},
    });
    stats.addMetrics(WEBHOOK_METRICS, {
      counters: metricReaders(metrics, "counter", (name) => {
        return (this.#before.get(name) ?? 0) + (this.#counters[name] ?? 0);
      }),
      gauges: metricReaders(metrics, "gauge", (name) => this.#gauges[name] ?? 0),
    });
    this.#timers = new Map(Object.entries(stats.addTimers(WEBHOOK_METRICS)));
  }

  /** Counts an answer to a call of a trigger. */
  noteTrigger({ status, headers, isChallenge, isAccepted }: WebhookAnswer): void {
    const isReplay = headers["idempotency-replayed"] !== undefined;
    const byStatus = TRIGGER_RESULTS[isAccepted === true ? 202 : status] ?? "failed";
    const answered = isChallenge === true ? "challenge" : byStatus;
    const result = isReplay ? "replayed" : answered;
    const name = `triggers.${result}`;
    this.#triggers.set(name, (this.#triggers.get(name) ?? 0) + 1);
  }

  /** Takes the metrics of a worker; `isNew` when they are its first. */
  take({ counters, gauges, durations }: WebhookMetrics, isNew: boolean): void {
    if (isNew) {
      for (const [name, count] of Object.entries(this.#counters)) {
        this.#before.set(name, (this.#before.get(name) ?? 0) + count);
      }
    }
    this.#counters = counters;
    this.#gauges = { ...this.#gauges, ...gauges };
    for (const [name, times] of Object.entries(durations)) {
      const timer = this.#timers.get(name);
      for (const ms of times) timer?.record(ms);
    }
  }
}
