import { systemClock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import { type ComponentHealth, Health } from "../../base/health.ts";
import { portLogger } from "../../base/log.ts";
import { captureConsole } from "../../base/standard_streams.ts";
import { settledWithin } from "../../base/wait.ts";
import { TextCompiler } from "../../config/load_parts.ts";
import type { QuotaView } from "../../quota/quota_view.ts";
import { LimitEpisodes } from "../../ratelimit/decision/limit_episodes.ts";
import type { LimitEventSink } from "../../ratelimit/decision/limit_events.ts";
import { StatsDeltas } from "../../stats/stats_delta.ts";
import { StatsStore } from "../../stats/store.ts";
import type { OtlpBatch, SendBatch } from "../../telemetry/otlp_exporter.ts";
import { guardProcess } from "../../telemetry/process_guard.ts";
import { ProcessMetrics, THREAD_METRICS } from "../../telemetry/process_metrics.ts";
import { CACHE_HEAD_START_MS, cacheKind, openCache } from "../cache.ts";
import { openService } from "../decisions.ts";
import { openGrpc } from "../grpc.ts";
import { openTracing } from "../tracing.ts";
import type { DecidingWorkerPort, ToDecidingWorker, WorkerCommand } from "./message.ts";

const REPORT_MS = 1_000;
/** The health of the rest of the process, as a component of this thread. */
const PROCESS = "process";

/** Decides gRPC calls, as the other side of its port requires. */
export class DecidingThread {
  readonly #port: DecidingWorkerPort;
  readonly #health = new Health();
  readonly #compiler = new TextCompiler();
  /** The main thread limits how many begin per second. */
  readonly #episodes = new LimitEpisodes({ maxPerSecond: Infinity, graceMs: 0, reportMs: REPORT_MS });
  readonly #exports: PortExports;
  #open: Awaited<ReturnType<typeof openParts>> | undefined;
  #grpc: Awaited<ReturnType<typeof openGrpc>> | undefined;
  /** Messages are handled one after the other. */
  #handled: Promise<void> = Promise.resolve();

  constructor(port: DecidingWorkerPort) {
    this.#port = port;
    this.#exports = new PortExports(port);
    this.#health.set(PROCESS, false);
    this.#health.onChange(() => this.#postReport());
    port.addEventListener("message", ({ data: message }) => {
      this.#handled = this.#handled.then(() => this.#take(message)).catch((error: unknown) => {
        port.postMessage({ type: "failed", reason: errorText(error) });
      });
    });
  }

  async #take(message: ToDecidingWorker): Promise<void> {
    // It reports while it drains.
    if (message.type === "stop") return void this.#close(message.graceMs);
    if (message.type === "exported") return this.#exports.settle(message.id, message.isAccepted);
    let quotas: QuotaView | undefined;
    if (message.type === "quotas") quotas = await this.#grpc?.quotas?.snapshot(message.filter);
    else await this.#do(message);
    this.#port.postMessage({ type: "done", id: message.id, quotas });
  }

  async #do(command: Exclude<WorkerCommand, { readonly type: "quotas" }>): Promise<void> {
    switch (command.type) {
      case "start":
        this.#open = await openParts(this.#port, command, {
          health: this.#health,
          limitEvents: this.#episodes,
          send: (batch) => this.#exports.send(batch),
        });
        return this.#postPeriodically();
      case "rules":
        return this.#compiler.take(command.text);
      case "apply":
        return this.#open?.service.setRules(this.#compiler.finish());
      case "listen":
        return await this.#listen(command.port);
      case "health":
        return this.#health.set(PROCESS, command.isHealthy);
      case "forget":
        return this.#open?.forget(command.keys);
      case "report":
        return this.#postReport();
    }
  }

  async #listen(port: number): Promise<void> {
    if (this.#open === undefined) return;
    const { parts, tracing, cache, service } = this.#open;
    await settledWithin(cache.ready, CACHE_HEAD_START_MS, systemClock);
    const decide = tracing.decide((request, caller) => service.shouldRateLimit(request, caller));
    const settings = { ...parts.settings, GRPC_PORT: port };
    this.#grpc = await openGrpc({ ...parts, settings }, {
      tracing,
      decide,
      service,
      shares: cache.shares,
    });
  }

  /** The end of the thread closes the rest. */
  async #close(graceMs: number): Promise<void> {
    await this.#grpc?.close(graceMs);
    await this.#open?.tracing.close();
    this.#postReport(true);
    this.#port.postMessage({ type: "stopped" });
  }

  #postPeriodically(): void {
    this.#postReport();
    systemClock.after(REPORT_MS, () => this.#postPeriodically());
  }

  #postReport(isLast = false): void {
    if (this.#open === undefined) return;
    const { deltas, service } = this.#open;
    const now = systemClock.now();
    const causeOf = ({ name, reason }: ComponentHealth) => `${name}: ${reason}`;
    const report = {
      stats: deltas.take(),
      tally: service.tally.take(Math.floor(now / 1_000)),
      sums: service.ruleCounts?.takeSums() ?? [],
      limits: this.#episodes.take(now, Infinity, isLast),
      suppressed: this.#episodes.takeSuppressed(now, isLast)?.count ?? 0,
      failing: this.#health.failing().filter(({ name }) => name !== PROCESS).map(causeOf),
      degraded: this.#health.degraded().map(causeOf),
    };
    this.#port.postMessage({ type: "report", report });
  }
}

/** Sends spans to the exporting thread of the process. */
class PortExports {
  readonly #port: DecidingWorkerPort;
  readonly #sent = new Map<number, (isAccepted: boolean) => void>();
  #lastId = 0;

  constructor(port: DecidingWorkerPort) {
    this.#port = port;
  }

  send(batch: OtlpBatch): Promise<boolean> {
    const id = ++this.#lastId;
    this.#port.postMessage({ type: "export", id, batch });
    return new Promise((resolve) => this.#sent.set(id, resolve));
  }

  settle(id: number, isAccepted: boolean): void {
    this.#sent.get(id)?.(isAccepted);
    this.#sent.delete(id);
  }
}

async function openParts(
  port: DecidingWorkerPort,
  { settings, version, secretFiles, spanProtocol: protocol }: Extract<
    WorkerCommand,
    { readonly type: "start" }
  >,
  { send, ...shared }: {
    readonly health: Health;
    readonly limitEvents: LimitEventSink;
    readonly send: SendBatch;
  },
) {
  const stats = new StatsStore(settings.STATS_MAX_KEYS);
  const tools = { logger: portLogger(port), clock: systemClock, random: Math.random };
  const parts = { ...shared, ...tools, settings, version, secretFiles, stats };
  const tracing = await openTracing(parts, protocol && { protocol, send });
  const onGivenUp = (reason: string) => port.postMessage({ type: "failed", reason });
  const cache = await openCache({ ...parts, onGivenUp });
  const traced = tracing.cache(cache.cache, cacheKind(settings));
  const { service, forget } = openService(parts, { ...cache, cache: traced });
  const { gauges } = new ProcessMetrics(parts);
  stats.addMetrics<typeof THREAD_METRICS.metrics>(THREAD_METRICS, { counters: {}, gauges });
  return { parts, tracing, cache, service, forget, deltas: new StatsDeltas(stats) };
}

// A worker's module is the main module of its thread.
if (import.meta.main) {
  const port = globalThis as unknown as DecidingWorkerPort;
  const logger = portLogger(port);
  captureConsole(logger);
  guardProcess({
    logger,
    clock: systemClock,
    onUnexpected: (error) => port.postMessage({ type: "failed", reason: errorText(error) }),
  });
  new DecidingThread(port);
}
