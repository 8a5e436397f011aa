import { settledWithin } from "../../base/wait.ts";
import { countHits } from "../../cache/counting_client.ts";
import type { SharedMemoryCache } from "../../cache/shared_memory_cache.ts";
import type { RuleTexts } from "../../config/provider.ts";
import type { RateLimitService } from "../../ratelimit/service.ts";
import { StatsMerger } from "../../stats/stats_delta.ts";
import type { ServiceParts } from "../parts.ts";
import { DecidingWorker } from "./deciding_worker.ts";
import type { DecidingWorkerHandle, WorkerHealth, WorkerReport } from "./message.ts";

/** What the workers are opened with. */
export interface DecidingWorkersOptions {
  readonly version: string;
  /** Counts for all workers. */
  readonly memory: SharedMemoryCache;
  /** Its tally is that of the process. */
  readonly service: Pick<RateLimitService, "tally" | "rules" | "ruleCounts">;
  /** Called when the settings end the attempts of a worker to connect to its cache. */
  readonly onGivenUp: (reason: string) => void;
  /** Replaces the threads that decide, in tests. */
  readonly createWorker?: (() => DecidingWorkerHandle) | undefined;
}

/** Longest wait for the statistics of the workers. */
const REPORT_MS = 1_000;
/** The component of health that the workers are as a whole. */
const WORKERS = "workers";
/** Fails until the ports are open, which does not concern the workers. */
const START = "start";

/** The threads that decide gRPC calls on one port. */
export class DecidingWorkers {
  readonly #parts: ServiceParts;
  readonly #options: DecidingWorkersOptions;
  readonly #merger: StatsMerger;
  readonly #workers: readonly DecidingWorker[];
  #texts: RuleTexts | undefined;
  #rules = 0;
  /** Rules are sent to all workers before the next ones. */
  #applied: Promise<unknown> = Promise.resolve();
  #reports = 0;
  #isClosing = false;
  #stopWatching = () => {};

  /** Starts the threads; their port is opened later. */
  constructor(parts: ServiceParts, options: DecidingWorkersOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#merger = new StatsMerger(parts.stats, (metricKey) => this.#domainOf(metricKey));
    const { settings } = parts;
    this.#workers = Array.from({ length: settings.WORKERS }, (_, index) => {
      const number = index + 1;
      return new DecidingWorker({
        ...parts,
        number,
        createWorker: options.createWorker ?? createDecidingWorker,
        startMessage: { type: "start", settings, version: options.version, cells: options.memory.cells },
        current: () => ({ rules: this.#rules, texts: this.#texts, isHealthy: this.#isHealthy() }),
        onCount: (request) => countHits(request, options.memory),
        onPlaces: (questions) => options.memory.share(questions),
        onReport: (report) => this.#takeReport(number, report),
        onLimitEvents: (reports, suppressed) => parts.events?.merge(reports, suppressed),
        onHealth: (own) => this.#takeHealth(number, own),
        onState: () => this.#noteState(),
        onEnd: () => this.#merger.end(number),
        onGivenUp: options.onGivenUp,
      });
    });
    this.#noteState();
  }

  /** Applies rules; settles once every worker that runs has them. */
  setRules(texts: RuleTexts): Promise<void> {
    const number = ++this.#rules;
    this.#texts = texts;
    const applied = this.#applied.then(() => {
      return Promise.all(this.#workers.map((worker) => worker.setRules(number, texts)));
    });
    this.#applied = applied;
    return applied.then(() => {});
  }

  /** Opens the gRPC port; returns its address. Throws when a worker cannot open. */
  async listen(): Promise<string> {
    const { settings, health } = this.#parts;
    const [first, ...others] = this.#workers;
    if (first === undefined) throw new Error("Cannot listen for gRPC: there is no worker");
    await Promise.all(this.#workers.map((worker) => worker.opened));
    // It may choose the port.
    const { address, port } = await first.listen(settings.GRPC_PORT);
    await Promise.all(others.map((worker) => worker.listen(port)));
    this.#stopWatching = health.onChange(() => this.#postHealth());
    this.#postHealth();
    return address;
  }

  /** Settles when the statistics contain what the workers have counted so far; waits a second for them at most. */
  async refresh(): Promise<void> {
    const id = ++this.#reports;
    const reports = Promise.all(this.#workers.map((worker) => worker.report(id)));
    await settledWithin(reports, REPORT_MS, this.#parts.clock);
  }

  /** Removes keys from the local caches; settles when they are gone, or a worker takes too long. */
  forget(keys: readonly string[]): Promise<void> {
    for (const worker of this.#workers) worker.post({ type: "forget", keys });
    // A worker takes its messages in order.
    return this.refresh();
  }

  /** Stops accepting calls, gives running ones this long, and ends the threads. */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.#workers.map((worker) => worker.close(graceMs)));
    this.#stopWatching();
  }

  #takeReport(number: number, { stats, tally, sums }: WorkerReport): void {
    const { service } = this.#options;
    this.#merger.add(number, stats);
    service.tally.add(tally, Math.floor(this.#parts.clock.now() / 1_000));
    service.ruleCounts?.addSums(sums);
  }

  #takeHealth(number: number, { failing, degraded }: WorkerHealth): void {
    const { health } = this.#parts;
    const prefix = `worker ${number} `;
    const names = new Set(failing.map(({ name }) => prefix + name));
    for (const { name, reason } of failing) health.set(prefix + name, false, reason);
    for (const { name } of health.failing()) {
      if (name.startsWith(prefix) && !names.has(name)) health.set(name, true);
    }
    const causes = Map.groupBy(degraded, ({ name }) => prefix + name);
    for (const { name } of health.degraded()) {
      if (name.startsWith(prefix) && !causes.has(name)) health.degrade(name, []);
    }
    for (const [name, own] of causes) health.degrade(name, own.map(({ reason }) => reason));
  }

  #noteState(): void {
    if (this.#isClosing) return;
    const { health, settings } = this.#parts;
    const ready = this.#workers.filter((worker) => worker.isListening).length;
    health.set(WORKERS, ready > 0, "no worker is ready to decide gRPC calls");
    health.degrade(WORKERS, ready < settings.WORKERS ? [`${ready} of ${settings.WORKERS} are ready`] : []);
  }

  #postHealth(): void {
    for (const worker of this.#workers) worker.post({ type: "health", isHealthy: this.#isHealthy() });
  }

  #isHealthy(): boolean {
    return this.#parts.health.failing().every(({ name }) => name === START || name === WORKERS);
  }

  /** The longest domain of the rules that a metric key begins with. */
  #domainOf(metricKey: string): string | undefined {
    const domains = this.#options.service.rules?.domains;
    let end = metricKey.lastIndexOf(".");
    while (end > 0 && domains?.has(metricKey.slice(0, end)) !== true) {
      end = metricKey.lastIndexOf(".", end - 1);
    }
    return end > 0 ? metricKey.slice(0, end) : undefined;
  }
}

function createDecidingWorker(): DecidingWorkerHandle {
  return new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "decisions" });
}
