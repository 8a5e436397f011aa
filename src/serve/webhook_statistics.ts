import type { StatsStore } from "../stats/store.ts";
import type { WebhookAnswer } from "../webhooks/api/calls.ts";
import {
  WEBHOOK_COUNTERS,
  WEBHOOK_GAUGES,
  WEBHOOK_TIMERS,
  type WebhookMetrics,
} from "../webhooks/service/metrics.ts";

const PREFIX = "ratelimit.webhooks";

/** Results of calls of triggers by the status of the answer; all others are `failed`. */
const TRIGGER_RESULTS: Readonly<Record<number, string>> = {
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

/** Shows the metrics of the webhook service in the statistics. Counters continue when a worker is replaced. */
export class WebhookStatistics {
  readonly #stats: StatsStore;
  readonly #triggers = new Map<string, number>();
  /** Counters of former workers. */
  readonly #before = new Map<string, number>();
  #counters: Readonly<Record<string, number>> = {};
  #gauges: Readonly<Record<string, number>> = {};

  constructor(stats: StatsStore) {
    this.#stats = stats;
    for (const result of new Set([...Object.values(TRIGGER_RESULTS), "replayed", "failed"])) {
      stats.addCounter(`${PREFIX}.triggers.${result}`, () => this.#triggers.get(result) ?? 0);
    }
    for (const name of WEBHOOK_COUNTERS) {
      stats.addCounter(
        `${PREFIX}.${name}`,
        () => (this.#before.get(name) ?? 0) + (this.#counters[name] ?? 0),
      );
    }
    for (const name of WEBHOOK_GAUGES) stats.addGauge(`${PREFIX}.${name}`, () => this.#gauges[name] ?? 0);
    for (const name of WEBHOOK_TIMERS) stats.timer(`${PREFIX}.${name}`);
  }

  /** Counts an answer to a call of a trigger. */
  noteTrigger({ status, headers }: WebhookAnswer): void {
    const isReplay = headers["idempotency-replayed"] !== undefined;
    const result = isReplay ? "replayed" : TRIGGER_RESULTS[status] ?? "failed";
    this.#triggers.set(result, (this.#triggers.get(result) ?? 0) + 1);
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
      const timer = this.#stats.timer(`${PREFIX}.${name}`);
      for (const ms of times) timer.record(ms);
    }
  }
}
