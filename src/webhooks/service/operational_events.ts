import { backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { ThrottledLog } from "../../base/throttled_log.ts";
import { waitUnlessAborted } from "../../base/wait.ts";
import {
  type LimitReport,
  type OperationalBatch,
  type OperationalEvent,
  sharedFacts,
} from "../model/operational_event.ts";
import { type EpisodeReport, type ReportOptions, takeReports } from "../store/operations/limit_episodes.ts";
import { StoreError, type WebhookStore } from "../store/store.ts";

/** Options of the writer of operational events. */
export interface OperationalEventsOptions {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly random: () => number;
  readonly newId: () => string;
  readonly secretBox: { hash(text: string): Promise<string> };
  readonly logger: Logger;
  /** True if the store is larger than its bound: events are then lost. */
  readonly isStoreFull: () => boolean;
  /** Events were written that go to these endpoints. */
  readonly onWritten: (endpointIds: readonly string[]) => void;
}

const BACKOFF = { firstMs: 250, longestMs: 5_000 };
/** Most events of this thread that wait for the store. */
const MAX_WAITING = 100;

/** Writes operational events. A failure is logged and causes no further event. */
export class OperationalEvents {
  readonly #options: OperationalEventsOptions;
  readonly #log: ThrottledLog;
  readonly #stop = new AbortController();
  readonly #reporter: string;
  #number = 0;
  #waiting = 0;
  #written: Promise<unknown> = Promise.resolve();

  constructor(options: OperationalEventsOptions) {
    this.#options = options;
    this.#reporter = options.newId();
    this.#log = new ThrottledLog(options.logger, { clock: options.clock });
  }

  /** Writes a batch of the main thread, which is tried again while the store is unavailable; false when it cannot be. */
  async write(batch: OperationalBatch): Promise<boolean> {
    const { store, clock, random, newId, isStoreFull, onWritten } = this.#options;
    const { signal } = this.#stop;
    if (isStoreFull()) {
      this.#log.error("full", "Cannot write operational events: the store is full");
      return false;
    }
    const { reporter, number } = batch;
    const events = batch.events.map(({ kind, data }) => ({ kind, json: JSON.stringify(data) }));
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        const reports = await Promise.all(batch.reports.map((report) => this.#hidden(report)));
        const options: ReportOptions = { reporter, number, events, reports, now: clock.now(), newId };
        onWritten(await store.write(takeReports, options));
        return true;
      } catch (error) {
        this.#log.error("store", "Cannot write operational events", { error });
        if (!(error instanceof StoreError) || error.code === "failed" || error.code === "closed") {
          return false;
        }
        await waitUnlessAborted(backoffMs(tries, random(), BACKOFF), clock, signal);
      }
    }
    return false;
  }

  /** Writes an event of this thread after those before it; does not wait. */
  report(event: OperationalEvent): void {
    if (this.#waiting === MAX_WAITING) {
      return this.#log.error("waiting", "Cannot write an operational event: too many are waiting", {
        kind: event.kind,
      });
    }
    this.#waiting++;
    const batch = { reporter: this.#reporter, number: ++this.#number, reports: [], events: [event] };
    this.#written = this.#written.then(() => this.write(batch)).finally(() => this.#waiting--);
  }

  /** Ends repeated tries, and waits for the last ones. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#written;
  }

  /** The report without its key and with redacted values. */
  async #hidden({ event, key, facts, ...report }: LimitReport): Promise<EpisodeReport> {
    const hash = (text: string) => this.#options.secretBox.hash(text);
    const id = await hash(JSON.stringify([event, key]));
    if (facts === undefined) return { id, event, ...report };
    return { id, event, ...report, first: { facts: await sharedFacts(facts, hash), freeAt: facts.freeAt } };
  }
}
