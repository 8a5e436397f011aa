import type { Clock } from "../base/clock.ts";
import { counter, type MetricGroup } from "../base/metrics.ts";
import { problemText } from "../base/problem.ts";
import { WakeLoop } from "../threads/wake_loop.ts";
import { settledWithin } from "../base/wait.ts";
import type { ConcludedLoad } from "../config/rules_loader.ts";
import { LimitEpisodes, type LimitReport } from "../ratelimit/decision/limit_episodes.ts";
import type { LimitEventSink, LimitFact } from "../ratelimit/decision/limit_events.ts";
import type { StatsStore } from "../stats/store.ts";
import {
  loadedEvent,
  OPERATIONAL_KINDS,
  type OperationalBatch,
  type OperationalEvent,
  rejectedEvent,
} from "../webhooks/model/operational_event.ts";
import type { ReportEnd } from "../webhooks/service/supervisor.ts";

/** The metrics of operational events. */
export const OPERATIONAL_EVENT_METRICS = {
  prefix: "ratelimit.events.",
  metrics: {
    sent: counter(
      "events",
      "Events about limits and the configuration that were written to the webhook store.",
    ),
    suppressed: counter(
      "events",
      "Events about limits that were not sent because of `RATE_LIMIT_EVENTS_MAX_PER_SECOND`.",
    ),
    dropped: counter("events", "Events about limits and the configuration that could not be written."),
  },
} satisfies MetricGroup;

/** Options of the operational events. */
interface OperationalEventsOptions {
  readonly clock: Clock;
  readonly stats: StatsStore;
  /** Events about limits that begin per second. */
  readonly maxPerSecond: number;
  /** Other threads decide as well. */
  readonly hasThreads: boolean;
}

/** Writes a batch; never rejects. */
type WriteBatch = (batch: OperationalBatch) => Promise<ReportEnd>;

/** Time to collect before a batch. */
const FLUSH_MS = 250;
const POLL_MS = 1_000;
/** Ended episodes wait so long for reports of other threads, which come every second. */
const THREADS_MS = 2_000;
const MAX_REPORTS = 100;
const MAX_EVENTS = 100;
/** Longest time for the last batches. */
const LAST_MS = 2_000;

/**
 * Collects the operational events of this process and sends them to the webhook service in batches. Nothing that is
 * noted here waits or fails, and memory is bounded.
 */
export class OperationalEvents implements LimitEventSink {
  readonly #options: OperationalEventsOptions;
  readonly #episodes: LimitEpisodes;
  readonly #loop: WakeLoop;
  readonly #reporter = crypto.randomUUID();
  #write: WriteBatch | undefined;
  #events: OperationalEvent[] = [];
  #number = 0;
  /** Sent, with an unknown outcome. */
  #unsettled: OperationalBatch | undefined;
  #sent = 0;
  #dropped = 0;

  constructor(options: OperationalEventsOptions) {
    const { clock, stats, maxPerSecond, hasThreads } = this.#options = options;
    this.#episodes = new LimitEpisodes({ maxPerSecond, graceMs: hasThreads ? THREADS_MS : 0 });
    this.#loop = new WakeLoop({ clock, pollMs: POLL_MS, round: () => this.#round(false) });
    stats.addMetrics(OPERATIONAL_EVENT_METRICS, {
      counters: {
        sent: () => this.#sent,
        suppressed: () => this.#episodes.suppressed,
        dropped: () => this.#dropped,
      },
      gauges: {},
    });
  }

  note(facts: readonly LimitFact[], now: number): void {
    this.#episodes.note(facts, now);
    this.#loop.wakeIn(FLUSH_MS);
  }

  /** Takes what another thread has collected. */
  merge(reports: readonly LimitReport[], suppressed: number): void {
    const now = this.#options.clock.now();
    this.#episodes.merge(reports, now);
    this.#episodes.addSuppressed(suppressed, now);
    this.#loop.wakeIn(FLUSH_MS);
  }

  /** Takes a load of rules from this source. */
  reportRules(from: string, { rules, version, problems, hasRules }: ConcludedLoad): void {
    const errors = problems.filter(({ severity }) => severity === "error");
    const shared = { what: "rules", from, version, warnings: problems.length - errors.length };
    this.report(
      rules === undefined
        ? rejectedEvent({ ...shared, kept: hasRules }, errors.map(problemText))
        : loadedEvent({ ...shared, domains: rules.domainCount, limits: rules.limits.length }),
    );
  }

  /** Takes an event. */
  report(event: OperationalEvent): void {
    if (this.#events.length >= MAX_EVENTS) {
      this.#dropped++;
      return;
    }
    this.#events.push(event);
    this.#loop.wakeIn(FLUSH_MS);
  }

  /** Begins to send. */
  start(write: WriteBatch): void {
    this.#write = write;
    this.#loop.start();
  }

  /** Sends what is left, if that takes no longer than two seconds. */
  async close(): Promise<void> {
    if (!this.#loop.isRunning) return;
    const sending = async () => {
      await this.#loop.stop();
      while (await this.#round(true));
    };
    await settledWithin(sending(), LAST_MS, this.#options.clock);
  }

  /** Sends a batch; answers whether there may be another. */
  async #round(isLast: boolean): Promise<boolean> {
    const batch = this.#unsettled ?? this.#nextBatch(isLast);
    if (batch === undefined || this.#write === undefined) return false;
    this.#unsettled = batch;
    const end = await this.#write(batch);
    if (end === "unknown") return false;
    this.#unsettled = undefined;
    const begun = batch.reports.filter(({ facts }) => facts !== undefined).length + batch.events.length;
    if (end === "written") this.#sent += begun;
    else this.#dropped += begun;
    return batch.reports.length === MAX_REPORTS || isLast;
  }

  #nextBatch(isLast: boolean): OperationalBatch | undefined {
    const now = this.#options.clock.now();
    const reports = this.#episodes.take(now, MAX_REPORTS, isLast);
    const events = this.#events.splice(0);
    const suppressed = this.#episodes.takeSuppressed(now, isLast);
    if (suppressed !== undefined) {
      const { count, from, to } = suppressed;
      const times = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
      const { maxPerSecond } = this.#options;
      events.push({ kind: OPERATIONAL_KINDS.suppressed, data: { count, ...times, maxPerSecond } });
    }
    if (reports.length === 0 && events.length === 0) return undefined;
    return { reporter: this.#reporter, number: ++this.#number, reports, events };
  }
}
