import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { MetricBatch } from "../base/metric_batch.ts";
import { settledWithin } from "../base/wait.ts";
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
/** On a machine that is busy for long, a thread of low priority may need minutes to start. */
const MAX_PATIENCE = 8;
const READY = "start";
/** Longest time at the end for a worker that is starting, and for a collector to accept the last spans. */
const LAST_READY_MS = 5_000;
const LAST_SPANS_MS = 5_000;
/** The same for a collector that did not accept the batch before. */
const LAST_SPANS_FAILING_MS = 1_000;

/** An export of spans: that of the process, or a further thread's way to it. */
export interface SpanExport {
  readonly protocol: OtlpProtocol;
  readonly send: SendBatch;
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
  /** Batches of spans without an outcome; some wait for a worker. */
  readonly #spansUnderWay = new Set<Promise<boolean>>();
  readonly #tools: { readonly clock: Clock; readonly logger: Logger };
  #lastId = 0;
  /** The collector did not accept the last batch of spans. */
  #isFailing = false;
  /** Settles when a worker is ready, or none will be. */
  #ready = Promise.withResolvers<void>();
  #isReady = false;
  #isStarted = false;

  /** Starts nothing yet. */
  constructor(options: ExportOptions, tools: { readonly clock: Clock; readonly logger: Logger }) {
    const { TRACES: protocol } = options.protocols;
    this.#tools = tools;
    this.spans = protocol && { protocol, send: (batch) => this.send(batch) };
    this.#worker = new SupervisedWorker({
      name: "OTLP export worker",
      meanwhile: "keeping new spans",
      ...tools,
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
      maxPatience: MAX_PATIENCE,
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
    const sending = this.#send(batch);
    if (batch.signal !== "TRACES") return await sending;
    this.#spansUnderWay.add(sending);
    return await sending.finally(() => this.#spansUnderWay.delete(sending));
  }

  /** Waits for the spans that are under way, for 10 seconds at most, and ends the worker. */
  async close(): Promise<void> {
    if (this.#spansUnderWay.size > 0) await this.#awaitLastSpans();
    this.#worker.terminate();
    this.#ready.resolve();
    this.#giveUp();
  }

  async #awaitLastSpans(): Promise<void> {
    const { clock, logger } = this.#tools;
    const cannot = (problem: string) => logger.warning(`Cannot export the last spans: ${problem}`);
    if (!await settledWithin(this.#ready.promise, LAST_READY_MS, clock)) {
      return cannot("the worker is not ready");
    }
    const limitMs = this.#isFailing ? LAST_SPANS_FAILING_MS : LAST_SPANS_MS;
    if (await settledWithin(Promise.all(this.#spansUnderWay), limitMs, clock)) return;
    cannot("the collector did not accept them in time");
  }

  async #send(batch: OtlpBatch): Promise<boolean> {
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

  #take(message: FromOtlpWorker): void {
    switch (message.type) {
      case "ready":
        this.#worker.settle(READY);
        this.#isReady = true;
        return this.#ready.resolve();
      case "exported":
        return this.#answer(message.id, message.isAccepted);
      case "failed":
        return this.#worker.fail(message.error);
    }
  }

  #answer(id: number, isAccepted: boolean): void {
    const sent = this.#sent.get(id);
    if (sent === undefined) return;
    if (sent.spans > 0) this.#isFailing = !isAccepted;
    sent.answer(isAccepted);
    this.#sent.delete(id);
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
