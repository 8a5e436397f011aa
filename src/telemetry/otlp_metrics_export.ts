import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { MetricBatch } from "../base/metric_batch.ts";
import { SupervisedWorker, type WorkerHandle } from "../base/supervised_worker.ts";
import { resourceOf, type ServiceNames } from "./otlp_resource.ts";
import { checkOtlp, type ExportOptions, type OtlpSettings } from "./otlp_settings.ts";

/** What the main thread sends to the exporting worker. `start` comes first and once. */
export type ToMetricsExporter =
  | { readonly type: "start"; readonly options: ExportOptions }
  /** Answered by `exported`; the next one comes after that. */
  | { readonly type: "metrics"; readonly batch: MetricBatch }
  /** Answered by `alive`. */
  | { readonly type: "ping" };

/** What the exporting worker sends to the main thread. */
export type FromMetricsExporter =
  | { readonly type: "ready" }
  | { readonly type: "exported"; readonly isAccepted: boolean }
  /** It cannot start. */
  | { readonly type: "failed"; readonly error: Error };

/** The main thread's side of the connection to the worker. */
export type MetricsExporterHandle = WorkerHandle<ToMetricsExporter, FromMetricsExporter>;

/** What is exported, and how. */
export interface MetricsExportOptions extends Pick<OtlpSettings, "otlp">, ServiceNames {
  /** Reads all metrics. */
  readonly read: () => Promise<Iterable<MetricBatch>>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Replaces the worker, in tests. */
  readonly createWorker?: () => MetricsExporterHandle;
}

const HEARTBEAT_MS = 10_000;
const READY_TIMEOUT_MS = 30_000;
const READY = "start";

/**
 * Exports metrics in a worker, so that neither the SDK nor a collector delays a decision. Values are cumulative:
 * an export that fails loses nothing, because the next one has all of them.
 */
export class MetricsExport {
  readonly #read: MetricsExportOptions["read"];
  readonly #logger: Logger;
  readonly #worker: SupervisedWorker<ToMetricsExporter, FromMetricsExporter>;
  /** Settles with whether the current worker is ready. */
  #ready = Promise.withResolvers<boolean>();
  /** Settles with whether the collector accepted the batch under way. */
  #sent = Promise.withResolvers<boolean>();
  #running: Promise<void> | undefined;
  #isStarted = false;
  #isClosed = false;

  /** Starts nothing yet; throws for invalid settings. */
  constructor({ read, otlp, clock, logger, createWorker = createExporter, ...names }: MetricsExportOptions) {
    this.#read = read;
    this.#logger = logger;
    const { version } = names;
    const protocol = checkOtlp({ protocol: undefined, otlp }, logger, "METRICS");
    const options = { protocol, otlp, attributes: resourceOf(names), version };
    this.#worker = new SupervisedWorker({
      name: "Metrics export worker",
      meanwhile: "exporting again at the next interval",
      clock,
      logger,
      createWorker,
      startMessage: () => {
        this.#ready = Promise.withResolvers();
        this.#worker.expect(READY, READY_TIMEOUT_MS);
        return { type: "start", options };
      },
      onMessage: (message) => this.#take(message),
      onFailure: () => {
        this.#giveUp();
        return {};
      },
      heartbeatMs: HEARTBEAT_MS,
      ping: { type: "ping" },
    });
  }

  /** Exports all metrics, unless an export is running. The first one starts the worker. */
  start(): void {
    this.#running ??= this.#export().finally(() => this.#running = undefined);
  }

  /** Awaits the running export, and exports once more. */
  async finish(): Promise<void> {
    await this.#running;
    this.start();
    await this.#running;
  }

  /** Ends the worker; an export under way fails. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#worker.terminate();
    this.#giveUp();
    return Promise.resolve();
  }

  async #export(): Promise<void> {
    if (this.#isClosed) return;
    if (!this.#isStarted) {
      this.#isStarted = true;
      this.#worker.start();
    }
    try {
      if (!this.#worker.isRunning || !await this.#ready.promise) return;
      for (const batch of await this.#read()) {
        if (!this.#worker.isRunning) return;
        this.#sent = Promise.withResolvers();
        this.#worker.post({ type: "metrics", batch });
        if (!await this.#sent.promise) return;
      }
    } catch (error) {
      this.#logger.warning("Cannot read the metrics to export", { error });
    }
  }

  #take(message: FromMetricsExporter): void {
    switch (message.type) {
      case "ready":
        this.#worker.settle(READY);
        return this.#ready.resolve(true);
      case "exported":
        return this.#sent.resolve(message.isAccepted);
      case "failed":
        return this.#worker.fail(message.error);
    }
  }

  /** No worker will answer. */
  #giveUp(): void {
    this.#ready.resolve(false);
    this.#sent.resolve(false);
  }
}

function createExporter(): MetricsExporterHandle {
  return new Worker(new URL("./otlp_metrics_worker.ts", import.meta.url), {
    type: "module",
    name: "metrics",
  });
}
