import type { Clock } from "../base/clock.ts";
import type { LogFields, Logger } from "../base/log.ts";
import { settledWithin } from "../base/wait.ts";
import { maxWaitingSpans, type OtlpProtocol } from "./tracing_otlp.ts";
import { SpanOutbox } from "./tracing_span_outbox.ts";
import type { SpanPack } from "./tracing_span_pack.ts";
import type { SpanRecord } from "./tracing_span_record.ts";

/** Where spans go and what all of them have in common. */
export interface ExportOptions {
  readonly protocol: OtlpProtocol;
  /** The values of `OTEL_EXPORTER_OTLP_<OPTION>` by option. */
  readonly otlp: ReadonlyMap<string, string>;
  /** Attributes of the resource; they take precedence over `OTEL_RESOURCE_ATTRIBUTES`. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly version: string;
}

/** What the main thread sends to the exporting worker. `start` comes first and once. */
export type ToExporter =
  | { readonly type: "start"; readonly options: ExportOptions }
  /** Answered by `taken` immediately. */
  | { readonly type: "spans"; readonly pack: SpanPack }
  /** Answered by `closed`, the last message, when everything is exported. */
  | { readonly type: "close" };

/** What the exporting worker sends to the main thread. */
export type FromExporter =
  /** It may be sent spans. */
  | { readonly type: "ready" }
  /** It cannot be used as it was started. */
  | { readonly type: "refused"; readonly error: Error }
  | { readonly type: "taken" }
  /** The collector accepted some spans. */
  | { readonly type: "exported" }
  | {
    readonly type: "log";
    readonly level: "warning" | "error";
    readonly message: string;
    readonly fields: LogFields;
  }
  /** With the failure of the last spans, if any. */
  | { readonly type: "closed"; readonly error: Error | undefined };

/** The main thread's side of its line to the worker; a `Worker` is one. */
export interface ExporterLine {
  postMessage(message: ToExporter): void;
  terminate(): void;
  onmessage: ((event: MessageEvent<FromExporter>) => void) | null;
  onmessageerror: ((event: MessageEvent) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
}

/** What is exported how, and what else is needed to have it done in a thread of its own. */
export interface WorkerExportOptions extends ExportOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Starts a worker; one with the module that exports spans when absent. */
  readonly startWorker?: (() => ExporterLine) | undefined;
}

/** Longest time that a worker gets to become ready at the end, and that the last spans get to be exported. */
const FLUSH_MS = 5_000;
/** The end waits no longer for a collector that took nothing for this long. */
const STALL_MS = 1_000;
/** Longest time that a worker gets to load its packages, and to take spans. */
const READY_MS = 30_000;
const TAKE_MS = 30_000;
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;
/** A worker that lived so long did not fail because of how it was started. */
const STEADY_MS = 60_000;

/**
 * Has spans exported by a Web Worker: neither the packages of the SDK nor what a collector does ever hold
 * up a decision. It is started with the first span, because it costs memory and time that a service without a traced call
 * need not spend. A worker that fails or takes nothing any more is replaced.
 */
export class WorkerExport {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #startWorker: () => ExporterLine;
  readonly #exported: ExportOptions;
  readonly #outbox: SpanOutbox;
  readonly #closed = Promise.withResolvers<void>();
  #worker: ExporterLine | undefined;
  /** Settles when the worker that is there takes spans. */
  #readied = Promise.withResolvers<void>();
  /** How many exports the collector took. */
  #exports = 0;
  #isBegun = false;
  #isClosing = false;
  #startedAt = 0;
  #backoffMs = FIRST_BACKOFF_MS;
  #cancelRestart = () => {};
  /** Ends the wait for the answer that the worker owes. */
  #cancelWait = () => {};

  /** Starts nothing yet. */
  constructor(options: WorkerExportOptions) {
    const { clock, logger, startWorker = startExporter, protocol, otlp, attributes, version } = options;
    this.#clock = clock;
    this.#logger = logger;
    this.#startWorker = startWorker;
    this.#exported = { protocol, otlp, attributes, version };
    this.#outbox = new SpanOutbox({
      clock,
      logger,
      maxWaiting: maxWaitingSpans(),
      post: (pack) => {
        this.#worker?.postMessage({ type: "spans", pack });
        this.#await(TAKE_MS, "took no spans");
      },
    });
  }

  /** Takes a span that is over; it is dropped where too many wait. */
  add(span: SpanRecord): void {
    this.#outbox.add(span);
    this.start();
  }

  /** Starts the worker, unless the first span did. */
  start(): void {
    if (!this.#isBegun && !this.#isClosing) this.#start();
  }

  /** Exports what is left, as long as the collector takes some of it each second, and for a few seconds at most. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#cancelRestart();
    this.#cancelWait();
    const worker = this.#worker;
    if (worker === undefined) {
      if (this.#outbox.waiting > 0) this.#logger.warning("Cannot export the last spans: no thread exports");
    } else {
      const flushed = this.#flush(worker).catch((error: unknown) =>
        this.#logger.warning("Cannot export the last spans", { error })
      );
      const ready = Promise.race([this.#readied.promise, flushed]);
      if (!await settledWithin(ready, FLUSH_MS, this.#clock)) {
        this.#logger.warning(`Cannot export the last spans: not done after ${FLUSH_MS} ms`);
      } else if (!await this.#progresses(flushed)) {
        this.#logger.warning("Cannot export the last spans: the collector does not take them in time");
      }
    }
    this.#outbox.close();
    this.#stop();
  }

  /** Whether the spans are exported, with no second in which the collector took none. */
  async #progresses(flushed: Promise<void>): Promise<boolean> {
    for (let waitedMs = 0; waitedMs < FLUSH_MS; waitedMs += STALL_MS) {
      const before = this.#exports;
      if (await settledWithin(flushed, STALL_MS, this.#clock)) return true;
      if (this.#exports === before) return false;
    }
    return false;
  }

  async #flush(worker: ExporterLine): Promise<void> {
    // One that fails has closed, and may never have been ready.
    await Promise.race([this.#readied.promise, this.#closed.promise]);
    this.#outbox.close();
    worker.postMessage({ type: "close" });
    await this.#closed.promise;
  }

  #start(): void {
    this.#isBegun = true;
    this.#readied = Promise.withResolvers();
    this.#startedAt = this.#clock.now();
    try {
      const worker = this.#startWorker();
      this.#worker = worker;
      worker.onmessage = ({ data: message }) => {
        if (worker === this.#worker) this.#take(message);
      };
      worker.onmessageerror = () => this.#fail(worker, new Error("a message could not be read"));
      worker.onerror = (event) => {
        // Otherwise it would end the process.
        event.preventDefault();
        this.#fail(worker, event.error ?? new Error(event.message));
      };
      worker.postMessage({ type: "start", options: this.#exported });
      this.#await(READY_MS, "was not ready");
    } catch (error) {
      this.#replace("the thread that exports spans cannot be started", error);
    }
  }

  #take(message: FromExporter): void {
    switch (message.type) {
      case "ready":
        this.#cancelWait();
        this.#outbox.open();
        this.#readied.resolve();
        break;
      case "refused":
        this.#replace("the thread that exports spans cannot be used", message.error);
        break;
      case "taken":
        this.#cancelWait();
        if (this.#outbox.noteTaken() > 0) this.#await(TAKE_MS, "took no spans");
        break;
      case "exported":
        this.#exports++;
        break;
      case "log":
        this.#logger[message.level](message.message, message.fields);
        break;
      case "closed":
        if (message.error === undefined) this.#closed.resolve();
        else this.#closed.reject(message.error);
    }
  }

  #await(ms: number, what: string): void {
    if (this.#isClosing) return;
    this.#cancelWait();
    const silence = `the thread that exports spans ${what} for ${ms / 1_000} s`;
    this.#cancelWait = this.#clock.after(ms, () => this.#replace(silence));
  }

  #fail(worker: ExporterLine, error: unknown): void {
    if (worker === this.#worker) this.#replace("the thread that exports spans failed", error);
  }

  #replace(what: string, error?: unknown): void {
    if (this.#isClosing) return this.#closed.reject(error);
    this.#stop();
    const lost = this.#outbox.suspend();
    if (this.#clock.now() - this.#startedAt >= STEADY_MS) this.#backoffMs = FIRST_BACKOFF_MS;
    const delayMs = this.#backoffMs;
    this.#backoffMs = Math.min(delayMs * 2, MAX_BACKOFF_MS);
    const text = `${what}; its spans are lost, another one is started in ${delayMs / 1_000} s`;
    this.#logger.error(text, { ...(error === undefined ? {} : { error }), lost });
    this.#cancelRestart = this.#clock.after(delayMs, () => this.#start());
  }

  #stop(): void {
    this.#cancelWait();
    const worker = this.#worker;
    this.#worker = undefined;
    // Not waited for: its thread may never end.
    worker?.terminate();
  }
}

function startExporter(): ExporterLine {
  return new Worker(new URL("./tracing_export_worker.ts", import.meta.url), {
    type: "module",
    name: "spans",
  });
}
