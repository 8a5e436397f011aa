import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { timeTextIf } from "../../base/rfc3339.ts";
import { ThrottledLog } from "../../base/throttled_log.ts";
import type { AttemptReport } from "../deliveries/metrics.ts";
import { type AttemptSummary, followedBy, type HealthChange } from "../model/endpoint_health.ts";
import { isOperationalKind } from "../model/event.ts";
import {
  type ChangedEndpoint,
  type EndpointAttempts,
  recordAttempts,
} from "../store/operations/endpoint_health.ts";
import type { WebhookStore } from "../store/store.ts";

/** Options of `HealthRecorder`. */
interface HealthRecorderOptions {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly logger: Logger;
  readonly disableAfterMs: number;
  /** Events about endpoints are due for these endpoints. */
  readonly wake: (endpointIds: readonly string[]) => void;
}

/** Most endpoints that are recorded in a transaction, and whose attempts are kept meanwhile. */
const PORTION = 500;
const MAX_ENDPOINTS = 20_000;

const MESSAGES: Readonly<Record<HealthChange, string>> = {
  failing: "Endpoint is failing",
  recovered: "Endpoint recovered",
  disabled: "Endpoint disabled",
  gone: "Endpoint disabled: it is gone",
};

/** Sums up the attempts of endpoints, so that they are recorded together and an attempt costs no further statement. */
export class HealthRecorder {
  readonly #options: HealthRecorderOptions;
  readonly #log: ThrottledLog;
  readonly #summaries = new Map<string, AttemptSummary>();

  constructor(options: HealthRecorderOptions) {
    this.#options = options;
    this.#log = new ThrottledLog(options.logger, { clock: options.clock });
  }

  /** An attempt is over. */
  add(report: AttemptReport): void {
    const { endpointId, errorKind } = report;
    // These are not the fault of the endpoint.
    if (errorKind === "unsendable" || errorKind === "interrupted") return;
    const earlier = this.#summaries.get(endpointId);
    if (earlier === undefined && this.#summaries.size >= MAX_ENDPOINTS) return;
    const summary = summaryOf(report, this.#options.clock.now());
    this.#summaries.set(endpointId, earlier === undefined ? summary : followedBy(earlier, summary));
  }

  /** Records a portion of what was added; answers whether there is more. A failure records it again later. */
  async record(): Promise<boolean> {
    const { store, clock, newId, disableAfterMs, wake } = this.#options;
    const portion = this.#take();
    if (portion.length === 0) return false;
    try {
      const options = { now: clock.now(), newId, disableAfterMs };
      const { changed, wokenIds } = await store.write(recordAttempts, portion, options);
      for (const one of changed) this.#report(one);
      if (wokenIds.length > 0) wake(wokenIds);
    } catch (error) {
      for (const { endpointId, summary } of portion) {
        const later = this.#summaries.get(endpointId);
        this.#summaries.set(endpointId, later === undefined ? summary : followedBy(summary, later));
      }
      throw error;
    }
    return this.#summaries.size > 0;
  }

  #take(): readonly EndpointAttempts[] {
    const portion = [...this.#summaries.entries().take(PORTION)];
    for (const [endpointId] of portion) this.#summaries.delete(endpointId);
    return portion.map(([endpointId, summary]) => ({ endpointId, summary }));
  }

  #report({ endpointId, change, run: { failures, failingSince } }: ChangedEndpoint): void {
    const facts = { endpoint: endpointId, failures, failingSince: timeTextIf(failingSince) };
    if (change === "recovered") this.#log.info(change, MESSAGES[change], facts);
    else this.#log.warning(change, MESSAGES[change], facts);
  }
}

function summaryOf(report: AttemptReport, now: number): AttemptSummary {
  const { result, event, status, tookMs, startedAt, isGone } = report;
  const isFailed = result !== "acknowledged";
  const gone = isGone === true ? { goneAt: startedAt } : {};
  const ms = status === undefined ? 0 : tookMs;
  return {
    succeeded: isFailed ? 0 : 1,
    failed: isFailed ? 1 : 0,
    answered: status === undefined ? 0 : 1,
    totalMs: ms,
    maxMs: ms,
    failures: isFailed
      ? { count: 1, firstAt: now, lastAt: now, areReportable: !isOperationalKind(event), ...gone }
      : undefined,
  };
}
