import { SupervisedWorker } from "../../threads/supervised_worker.ts";
import { settledWithin } from "../../base/wait.ts";
import type { RuleTexts } from "../../config/provider.ts";
import type { QuotaFilter, QuotaView } from "../../quota/quota_view.ts";
import type { RateLimitService } from "../../ratelimit/decision/service.ts";
import { StatsMerger } from "../../stats/stats_delta.ts";
import type { SpanExport } from "../../telemetry/otlp_exporter.ts";
import type { ServiceParts } from "../parts.ts";
import type {
  DecidingWorkerHandle,
  FromDecidingWorker,
  ToDecidingWorker,
  WorkerCommand,
  WorkerReport,
} from "./message.ts";

const BACKOFF = { firstMs: 250, longestMs: 30_000 };
const HEARTBEAT_MS = 1_000;
/** Longest silence of a worker that listens and reports every second. */
const SILENCE_MS = 15_000;
/** Longest time to open, to apply large rules and to open the port. */
const OPENING_MS = 120_000;
/** Added to the grace period when a worker stops. */
const STOP_MARGIN_MS = 6_000;
/** Longest wait for what is asked of all workers that listen. */
const ASK_MS = 1_000;

/** A worker; `rules` and `isListening` are of its current thread. */
interface DecidingWorker {
  /** The component of health that it is. */
  readonly name: string;
  readonly supervised: SupervisedWorker<ToDecidingWorker, FromDecidingWorker>;
  /** Commands without an answer, by their id. */
  readonly asked: Map<number, PromiseWithResolvers<QuotaView | undefined>>;
  rules: number;
  isListening: boolean;
  /** Updates follow one another. */
  updated: Promise<void>;
}

/** Options of `DecidingWorkers`. */
interface DecidingWorkersOptions {
  /** Exports the spans of all threads. */
  readonly spans?: SpanExport | undefined;
  /** The product's when absent. */
  readonly createWorker?: (() => DecidingWorkerHandle) | undefined;
}

/**
 * The threads that decide gRPC calls in addition to this one, on its port. One that fails is replaced by another with
 * the current rules.
 */
export class DecidingWorkers {
  readonly #parts: ServiceParts;
  readonly #service: RateLimitService;
  readonly #spans: SpanExport | undefined;
  readonly #merger: StatsMerger;
  readonly #workers: readonly DecidingWorker[];
  #rules: { readonly number: number; readonly texts: RuleTexts } = { number: 0, texts: [] };
  #port: number | undefined;
  #lastId = 0;

  /** Starts the threads; they listen later. */
  constructor(parts: ServiceParts, service: RateLimitService, options: DecidingWorkersOptions = {}) {
    const { spans, createWorker = createDecidingWorker } = options;
    this.#parts = parts;
    this.#spans = spans;
    this.#service = service;
    this.#merger = new StatsMerger(parts.stats);
    // The main thread is the first.
    const others = { length: parts.settings.WORKERS - 1 };
    this.#workers = Array.from(others, (_, index) => this.#createWorker(index + 2, createWorker));
    parts.health.onChange((isHealthy) => void this.#askAll({ type: "health", isHealthy }));
    this.#noteState();
    for (const { supervised } of this.#workers) supervised.start();
  }

  /** Applies rules; settles once every worker that runs has them. */
  setRules(texts: RuleTexts): Promise<void> {
    this.#rules = { number: this.#rules.number + 1, texts };
    return this.#updateAll();
  }

  /** Listens on the port of this thread; settles once every worker that runs does. */
  listen(port: number): Promise<void> {
    this.#port = port;
    return this.#updateAll();
  }

  /** Settles when the statistics contain what the workers have counted so far; waits a second for them at most. */
  refresh(): Promise<void> {
    return this.#askAll({ type: "report" });
  }

  /** Removes keys from the local caches; settles when they are gone, or a worker takes too long. */
  forget(keys: readonly string[]): Promise<void> {
    return this.#askAll({ type: "forget", keys });
  }

  /** The buckets of quotas of each worker that answers; waits a second for them at most. */
  async quotas(filter: QuotaFilter): Promise<QuotaView[]> {
    const views: QuotaView[] = [];
    await this.#askAll({ type: "quotas", filter }, (view) => void (view && views.push(view)));
    return views;
  }

  /** Stops accepting calls, gives running ones this long, and ends the threads. */
  async close(graceMs: number): Promise<void> {
    await Promise.all(this.#workers.map(async (worker) => {
      await worker.supervised.stop({ type: "stop", graceMs }, graceMs + STOP_MARGIN_MS);
      this.#end(worker, "the service is stopping");
    }));
  }

  #createWorker(number: number, createWorker: () => DecidingWorkerHandle): DecidingWorker {
    const { settings, version, secretFiles } = this.#parts;
    const worker: DecidingWorker = {
      name: `worker ${number}`,
      supervised: new SupervisedWorker<ToDecidingWorker, FromDecidingWorker>({
        ...this.#parts,
        createWorker,
        name: `Worker ${number}`,
        meanwhile: "deciding in the others",
        startMessage: () => {
          void this.#update(worker);
          return {
            type: "start",
            id: ++this.#lastId,
            settings,
            version,
            secretFiles,
            spanProtocol: this.#spans?.protocol,
          };
        },
        onMessage: (message, reply) => this.#take(worker, message, reply),
        onFailure: (reason) => {
          this.#end(worker, reason);
          return {};
        },
        heartbeatMs: HEARTBEAT_MS,
        maxSilenceMs: () => worker.isListening ? SILENCE_MS : OPENING_MS,
        backoff: BACKOFF,
      }),
      asked: new Map(),
      rules: 0,
      isListening: false,
      updated: Promise.resolve(),
    };
    return worker;
  }

  async #updateAll(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => this.#update(worker)));
  }

  /** Settles when the worker has the current rules and listens, or its thread has ended: the next one is updated too. */
  #update(worker: DecidingWorker): Promise<void> {
    return worker.updated = worker.updated.then(() => this.#bringUpToDate(worker)).catch(() => {});
  }

  async #bringUpToDate(worker: DecidingWorker): Promise<void> {
    const { number, texts } = this.#rules;
    if (worker.rules < number) {
      for (const text of texts) await this.#ask(worker, { type: "rules", text });
      await this.#ask(worker, { type: "apply" });
      worker.rules = number;
    }
    // Without the rules it would answer calls wrongly.
    if (this.#port === undefined || worker.isListening) return;
    await this.#ask(worker, { type: "listen", port: this.#port });
    worker.isListening = true;
    this.#noteState();
    await this.#ask(worker, { type: "health", isHealthy: this.#parts.health.healthy });
  }

  async #askAll(
    command: WorkerCommand,
    take: (answer: QuotaView | undefined) => void = () => {},
  ): Promise<void> {
    const listening = this.#workers.filter(({ isListening }) => isListening);
    const answers = Promise.allSettled(listening.map((worker) => this.#ask(worker, command).then(take)));
    await settledWithin(answers, ASK_MS, this.#parts.clock);
  }

  /** Throws when the thread ends before it has done this. */
  async #ask({ supervised, asked }: DecidingWorker, command: WorkerCommand): Promise<QuotaView | undefined> {
    if (!supervised.isRunning) throw new Error("there is no thread");
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<QuotaView | undefined>();
    asked.set(id, answer);
    supervised.expect(`answer to message ${id}`, OPENING_MS);
    supervised.post({ ...command, id });
    return await answer.promise;
  }

  #take(
    { name, supervised, asked }: DecidingWorker,
    message: FromDecidingWorker,
    reply: (message: ToDecidingWorker) => void,
  ): void {
    if (message.type === "report") return this.#takeReport(name, message.report);
    if (message.type === "export") {
      const { id, batch } = message;
      return void this.#spans?.send(batch).then((isAccepted) => reply({ type: "exported", id, isAccepted }));
    }
    if (message.type === "failed") return supervised.fail(new Error(message.reason));
    supervised.settle(`answer to message ${message.id}`);
    asked.get(message.id)?.resolve(message.quotas);
    asked.delete(message.id);
  }

  #takeReport(name: string, report: WorkerReport): void {
    const { health, clock, events } = this.#parts;
    const { stats, tally, sums, limits, suppressed, failing, degraded } = report;
    this.#merger.add(name, stats);
    this.#service.tally.add(tally, Math.floor(clock.now() / 1_000));
    this.#service.ruleCounts?.addSums(sums);
    if (limits.length > 0 || suppressed > 0) events?.merge(limits, suppressed);
    health.set(name, failing.length === 0, failing.join("; "));
    health.degrade(name, degraded);
  }

  /** The thread of a worker has ended. */
  #end(worker: DecidingWorker, reason: string): void {
    for (const { reject } of worker.asked.values()) reject(new Error(reason));
    worker.asked.clear();
    worker.rules = 0;
    worker.isListening = false;
    this.#merger.end(worker.name);
    this.#parts.health.set(worker.name, true);
    this.#parts.health.degrade(worker.name, []);
    this.#noteState();
  }

  #noteState(): void {
    const { health, settings } = this.#parts;
    const ready = 1 + this.#workers.filter(({ isListening }) => isListening).length;
    health.degrade("workers", ready < settings.WORKERS ? [`${ready} of ${settings.WORKERS} are ready`] : []);
  }
}

function createDecidingWorker(): DecidingWorkerHandle {
  return new Worker(new URL("./deciding_thread.ts", import.meta.url), { type: "module", name: "decisions" });
}
