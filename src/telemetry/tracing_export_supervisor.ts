import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { SupervisedWorker, type WorkerHandle } from "../base/supervised_worker.ts";
import { settledWithin } from "../base/wait.ts";
import { type ExportOptions, maxWaitingSpans } from "./otlp_settings.ts";
import { SpanOutbox } from "./tracing_span_outbox.ts";
import type { SpanPack } from "./tracing_span_pack.ts";
import type { SpanRecord } from "./tracing_span_record.ts";

/** What the main thread sends to the exporting worker. `start` comes first and once. */
export type ToExporter =
  | { readonly type: "start"; readonly options: ExportOptions }
  /** Answered by `taken` immediately. */
  | { readonly type: "spans"; readonly pack: SpanPack }
  /** Answered by `stopped`, or `failed`, when no span is left. */
  | { readonly type: "stop" };

/** What the exporting worker sends to the main thread. */
export type FromExporter =
  /** It may be sent spans. */
  | { readonly type: "ready" }
  | { readonly type: "taken" }
  /** The collector accepted some spans. */
  | { readonly type: "exported" }
  /** It cannot start, or could not export the last spans. */
  | { readonly type: "failed"; readonly error: Error };

/** The main thread's side of the connection to the worker. */
export type ExporterHandle = WorkerHandle<ToExporter, FromExporter>;

/** What is exported how, and what else is needed to do so in a worker. */
export interface WorkerExportOptions extends ExportOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Replaces the worker, in tests. */
  readonly createWorker?: (() => ExporterHandle) | undefined;
}

/** Longest time at the end for a worker to become ready, and for it to export the last spans. */
const FLUSH_MS = 5_000;
/** The end waits no longer for a collector that accepted nothing for this long. */
const STALL_MS = 1_000;
const HEARTBEAT_MS = 10_000;
const READY_TIMEOUT_MS = 30_000;
const TAKE_TIMEOUT_MS = 30_000;
const READY = "start";
const TAKEN = "receipt of spans";

/**
 * Exports spans in a worker, so that neither the SDK nor a collector delays a decision. The worker starts
 * with the first span, because it costs memory and time.
 */
export class WorkerExport {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #worker: SupervisedWorker<ToExporter, FromExporter>;
  readonly #outbox: SpanOutbox;
  /** Settles when the current worker accepts spans. */
  #ready = Promise.withResolvers<void>();
  /** How many exports the collector accepted. */
  #exports = 0;
  #isStarted = false;

  /** Starts nothing yet. */
  constructor({ clock, logger, createWorker = createExporter, ...options }: WorkerExportOptions) {
    this.#clock = clock;
    this.#logger = logger;
    this.#worker = new SupervisedWorker({
      name: "Span export worker",
      meanwhile: "keeping new spans",
      clock,
      logger,
      createWorker,
      startMessage: () => {
        this.#ready = Promise.withResolvers();
        this.#worker.expect(READY, READY_TIMEOUT_MS);
        return { type: "start", options };
      },
      onMessage: (message) => this.#take(message),
      onFailure: () => ({ lost: this.#outbox.suspend() }),
      heartbeatMs: HEARTBEAT_MS,
    });
    this.#outbox = new SpanOutbox({
      clock,
      logger,
      maxWaiting: maxWaitingSpans(),
      post: (pack) => {
        this.#worker.post({ type: "spans", pack });
        this.#worker.expect(TAKEN, TAKE_TIMEOUT_MS);
      },
    });
  }

  /** Takes an ended span; it is dropped where too many wait. */
  add(span: SpanRecord): void {
    this.#outbox.add(span);
    this.start();
  }

  /** Starts the worker, unless the first span did. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#worker.start();
  }

  /** Exports the remaining spans while the collector accepts some each second, and for a few seconds at most. */
  async close(): Promise<void> {
    this.#worker.retire();
    const problem = await this.#flush();
    if (problem !== undefined) this.#logger.warning(`Cannot export the last spans: ${problem}`);
    this.#outbox.close();
    this.#worker.terminate();
  }

  /** What prevented the last spans from being exported. */
  async #flush(): Promise<string | undefined> {
    if (!this.#worker.isRunning) return this.#outbox.waiting > 0 ? "no worker is running" : undefined;
    const ended = this.#worker.ended.then(() => {});
    // A worker that failed may never become ready.
    if (!await settledWithin(Promise.race([this.#ready.promise, ended]), FLUSH_MS, this.#clock)) {
      return `the worker was not ready within ${FLUSH_MS} ms`;
    }
    this.#outbox.close();
    this.#worker.post({ type: "stop" });
    if (await this.#progresses(ended)) return await this.#worker.ended;
    return "the collector did not accept them in time";
  }

  /** Whether the worker ended, with no second before in which the collector accepted nothing. */
  async #progresses(ended: Promise<void>): Promise<boolean> {
    for (let waitedMs = 0; waitedMs < FLUSH_MS; waitedMs += STALL_MS) {
      const before = this.#exports;
      if (await settledWithin(ended, STALL_MS, this.#clock)) return true;
      if (this.#exports === before) return false;
    }
    return false;
  }

  #take(message: FromExporter): void {
    switch (message.type) {
      case "ready":
        this.#worker.settle(READY);
        this.#outbox.open();
        this.#ready.resolve();
        break;
      case "taken":
        this.#worker.settle(TAKEN);
        if (this.#outbox.noteTaken() > 0) this.#worker.expect(TAKEN, TAKE_TIMEOUT_MS);
        break;
      case "exported":
        this.#exports++;
        break;
      case "failed":
        this.#worker.fail(message.error);
    }
  }
}

function createExporter(): ExporterHandle {
  return new Worker(new URL("./tracing_export_worker.ts", import.meta.url), {
    type: "module",
    name: "spans",
  });
}
