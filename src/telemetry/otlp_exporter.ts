import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { MetricBatch } from "../base/metric_batch.ts";
import { SupervisedWorker } from "../threads/supervised_worker.ts";
import type { OtlpProtocol, OtlpSignal } from "./otlp_settings.ts";
import type { SpanPack } from "./tracing_span_pack.ts";

/** Spans or metrics that are exported by one request. */
export type OtlpBatch =
  | { readonly signal: "TRACES"; readonly spans: SpanPack }
  | { readonly signal: "METRICS"; readonly metrics: MetricBatch };

/** The export of spans and metrics. */
export interface ExportOptions {
  /** Of the signals that are exported. */
  readonly protocols: Readonly<Partial<Record<OtlpSignal, OtlpProtocol>>>;
  /** The values of `OTEL_EXPORTER_OTLP_<OPTION>` by option. */
  readonly otlp: ReadonlyMap<string, string>;
  /** Attributes of the resource; they take precedence over `OTEL_RESOURCE_ATTRIBUTES`. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly version: string;
}

/** Messages of the main thread to the exporting worker. `start` comes first and once. */
export type ToOtlpWorker =
  | { readonly type: "start"; readonly options: ExportOptions }
  /** Answered by `exported`. */
  | { readonly type: "export"; readonly id: number; readonly batch: OtlpBatch }
  /** Answered by `alive`. */
  | { readonly type: "ping" };

/** Messages of the exporting worker to the main thread. */
export type FromOtlpWorker =
  | { readonly type: "ready" }
  | { readonly type: "exported"; readonly id: number; readonly isAccepted: boolean }
  /** It cannot continue. */
  | { readonly type: "failed"; readonly error: Error };

/** Sends a batch and returns whether the collector accepted it; never rejects. */
export type SendBatch = (batch: OtlpBatch) => Promise<boolean>;

const HEARTBEAT_MS = 10_000;
const READY_TIMEOUT_MS = 30_000;
const READY = "start";

/** An export of spans: that of the process, or a further thread's way to it. */
export interface SpanExport {
  readonly protocol: OtlpProtocol;
  readonly send: SendBatch;
  /** Settles when spans can be sent, or never will be. */
  readonly ready: () => Promise<void>;
}

/**
 * Exports spans and metrics in a worker, so that neither the SDK nor a collector delays a decision. The worker starts
 * with the first batch, because it costs memory and time.
 */
export class OtlpExporter {
  /** Undefined if spans are not exported. */
  readonly spans: SpanExport | undefined;
  readonly #worker: SupervisedWorker<ToOtlpWorker, FromOtlpWorker>;
  /** Batches without an answer. */
  readonly #sent = new Map<number, { readonly spans: number; answer(isAccepted: boolean): void }>();
  #lastId = 0;
  /** Settles when a worker is ready, or none will be. */
  #ready = Promise.withResolvers<void>();
  #isReady = false;
  #isStarted = false;

  /** Starts nothing yet. */
  constructor(options: ExportOptions, { clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    const { TRACES: protocol } = options.protocols;
    const ready = () => this.#ready.promise;
    this.spans = protocol && { protocol, send: (batch) => this.send(batch), ready };
    this.#worker = new SupervisedWorker({
      name: "OTLP export worker",
      meanwhile: "keeping new spans",
      clock,
      logger,
      createWorker: () => {
        return new Worker(new URL("./otlp_worker.ts", import.meta.url), { type: "module", name: "otlp" });
      },
      startMessage: () => {
        this.#worker.expect(READY, READY_TIMEOUT_MS);
        return { type: "start", options };
      },
      onMessage: (message) => this.#take(message),
      onFailure: () => {
        if (this.#isReady) this.#ready = Promise.withResolvers();
        this.#isReady = false;
        return { lost: this.#giveUp() };
      },
      heartbeatMs: HEARTBEAT_MS,
      ping: { type: "ping" },
    });
  }

  /** Starts the worker, unless the first batch did. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#worker.start();
  }

  /** As `SendBatch`; waits for a worker. */
  async send(batch: OtlpBatch): Promise<boolean> {
    this.start();
    await this.#ready.promise;
    if (!this.#worker.isRunning) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const spans = batch.signal === "TRACES" ? batch.spans.count : 0;
    const id = ++this.#lastId;
    this.#sent.set(id, { spans, answer: resolve });
    this.#worker.post({ type: "export", id, batch });
    return await promise;
  }

  /** Ends the worker; batches without an answer are not accepted. */
  close(): Promise<void> {
    this.#worker.terminate();
    this.#ready.resolve();
    this.#giveUp();
    return Promise.resolve();
  }

  #take(message: FromOtlpWorker): void {
    switch (message.type) {
      case "ready":
        this.#worker.settle(READY);
        this.#isReady = true;
        return this.#ready.resolve();
      case "exported":
        this.#sent.get(message.id)?.answer(message.isAccepted);
        return void this.#sent.delete(message.id);
      case "failed":
        return this.#worker.fail(message.error);
    }
  }

  /** Ends the waits for answers; returns how many spans are lost. */
  #giveUp(): number {
    let lost = 0;
    for (const { spans, answer } of this.#sent.values()) {
      lost += spans;
      answer(false);
    }
    this.#sent.clear();
    return lost;
  }
}
