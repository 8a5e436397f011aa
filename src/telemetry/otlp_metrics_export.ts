import type { Logger } from "../base/log.ts";
import type { MetricBatch } from "../base/metric_batch.ts";
import type { SendBatch } from "./otlp_exporter.ts";

/** Options of `MetricsExport`. */
interface MetricsExportOptions {
  /** Reads all metrics. */
  readonly read: () => Promise<Iterable<MetricBatch>>;
  readonly send: SendBatch;
  readonly logger: Logger;
}

/**
 * Exports all metrics whenever it is started. Values are cumulative: an export that fails loses nothing, because the
 * next one has all of them.
 */
export class MetricsExport {
  readonly #options: MetricsExportOptions;
  readonly #closed = Promise.withResolvers<boolean>();
  #running: Promise<void> | undefined;

  constructor(options: MetricsExportOptions) {
    this.#options = options;
  }

  /** Exports all metrics, unless an export is running. */
  start(): void {
    this.#running ??= this.#export().finally(() => this.#running = undefined);
  }

  /** Awaits the running export, and exports once more. */
  async finish(): Promise<void> {
    await this.#running;
    this.start();
    await this.#running;
  }

  /** Ends the running export. */
  close(): Promise<void> {
    this.#closed.resolve(false);
    return Promise.resolve();
  }

  async #export(): Promise<void> {
    const { read, send, logger } = this.#options;
    try {
      for (const metrics of await read()) {
        const sent = send({ signal: "METRICS", metrics });
        if (!await Promise.race([sent, this.#closed.promise])) return;
      }
    } catch (error) {
      logger.warning("Cannot read the metrics to export", { error });
    }
  }
}
