import { systemClock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import { Health } from "../../base/health.ts";
import { portLogger } from "../../base/log.ts";
import { captureConsole } from "../../base/standard_streams.ts";
import { settledWithin } from "../../base/wait.ts";
import { CountingClient } from "../../cache/counting_client.ts";
import { InFlightCache } from "../../cache/in_flight_cache.ts";
import { IN_FLIGHT_METRICS } from "../../cache/metrics.ts";
import { SharedPlaces } from "../../cache/shared_places.ts";
import { TextCompiler } from "../../config/load_parts.ts";
import type { CounterCache } from "../../ratelimit/counter_cache.ts";
import type { RateLimitService } from "../../ratelimit/service.ts";
import { StatsDeltas } from "../../stats/stats_delta.ts";
import { StatsStore } from "../../stats/store.ts";
import { guardProcess } from "../../telemetry/process_guard.ts";
import { ProcessMetrics, THREAD_METRICS } from "../../telemetry/process_metrics.ts";
import type { Decide } from "../../telemetry/tracing_decision.ts";
import type { Tracing } from "../../telemetry/tracing.ts";
import { CACHE_HEAD_START_MS, cacheKind, openBackend, type OpenCache } from "../cache.ts";
import { openService } from "../decisions.ts";
import { loadGrpc, openGrpc } from "../grpc.ts";
import type { ServiceParts } from "../parts.ts";
import type { OtlpExporter } from "../../telemetry/otlp_exporter.ts";
import { openOtlp } from "../otlp.ts";
import { openTracing } from "../tracing.ts";
import { ThreadLimitEvents } from "./thread_limit_events.ts";
import type { DecidingWorkerPort, ToDecidingWorker, WorkerReport } from "./message.ts";

type Message<Type extends ToDecidingWorker["type"]> = Extract<ToDecidingWorker, { readonly type: Type }>;

/** Longest wait for the main thread to count. */
const COUNT_MS = 1_000;
const REPORT_MS = 1_000;
/** The health of the rest of the process, as a component of this thread. */
const PROCESS = "process";

/** Decides gRPC calls over the port of a worker. */
export function serveDecisions(port: DecidingWorkerPort): void {
  const thread = new DecidingThread(port);
  port.addEventListener("message", ({ data: message }) => thread.take(message));
}

/** What is open in the thread, apart from the gRPC port. */
interface OpenParts {
  readonly parts: ServiceParts;
  readonly otlp: OtlpExporter | undefined;
  readonly tracing: Tracing;
  readonly cache: OpenCache;
  readonly service: RateLimitService;
  readonly forget: (keys: readonly string[]) => void;
  readonly decide: Decide;
  readonly deltas: StatsDeltas;
  readonly metrics: ProcessMetrics;
  readonly limitEvents: ThreadLimitEvents | undefined;
}

/** The counters of the process, some of which this thread adds to by itself. */
class ProcessCounters extends InFlightCache {
  placeOf?: NonNullable<CounterCache["placeOf"]>;
}

class DecidingThread {
  readonly #port: DecidingWorkerPort;
  readonly #health = new Health();
  readonly #compiler = new TextCompiler();
  readonly #client: CountingClient;
  #places: SharedPlaces | undefined;
  #open: OpenParts | undefined;
  #grpc: { close(graceMs: number): Promise<void> } | undefined;
  /** Messages that are handled one after the other. */
  #handled: Promise<void> = Promise.resolve();
  #cancelReport = () => {};

  constructor(port: DecidingWorkerPort) {
    this.#port = port;
    this.#client = new CountingClient({
      post: (request) => port.postMessage({ type: "count", request }),
      timeoutMs: COUNT_MS,
      clock: systemClock,
    });
    this.#health.onChange(() => this.#postHealth());
  }

  take(message: ToDecidingWorker): void {
    switch (message.type) {
      case "counted":
        return this.#client.settle(message.reply);
      case "places":
        return this.#places?.take(message.answers);
      case "health":
        return this.#health.set(PROCESS, message.isHealthy);
      case "forget":
        return this.#open?.forget(message.keys);
      case "report":
        return this.#postReport(message.id);
      default:
        this.#handled = this.#handled.then(() => this.#handle(message)).catch((error: unknown) => {
          this.#port.postMessage({ type: "failed", reason: errorText(error) });
        });
    }
  }

  async #handle(message: Message<"start" | "rules" | "apply" | "listen" | "stop">): Promise<void> {
    switch (message.type) {
      case "start":
        this.#open = await this.#openParts(message);
        this.#port.postMessage({ type: "opened" });
        return this.#postPeriodically();
      case "rules":
        return this.#compiler.take(message.text);
      case "apply":
        this.#open?.service.setRules(this.#compiler.finish());
        return this.#port.postMessage({ type: "applied", rules: message.rules });
      case "listen":
        return await this.#listen(message);
      case "stop":
        await this.#close(message.graceMs);
        return this.#port.postMessage({ type: "stopped" });
    }
  }

  async #openParts({ settings, version, cells }: Message<"start">): Promise<OpenParts> {
    const stats = new StatsStore(settings.STATS_MAX_KEYS);
    const logger = portLogger(this.#port);
    const clock = systemClock;
    const limitEvents = settings.WEBHOOK_STORE === undefined ? undefined : this.#limitEvents();
    const given = { settings, logger, clock, random: Math.random, health: this.#health, stats };
    const parts: ServiceParts = { ...given, limitEvents };
    const otlpOpening = openOtlp(parts, version);
    const tracing = await openTracing(parts, otlpOpening);
    const otlp = await otlpOpening;
    const cache = await openBackend({
      ...parts,
      onGivenUp: (reason) => this.#port.postMessage({ type: "given_up", reason }),
    }, this.#counters(parts, cells));
    const traced = tracing.cache(cache.cache, cacheKind(settings));
    const { service, forget } = openService(parts, { ...cache, cache: traced });
    const decide = tracing.decide((request, caller) => service.shouldRateLimit(request, caller));
    const metrics = new ProcessMetrics({ clock });
    stats.addMetrics<typeof THREAD_METRICS.metrics>(THREAD_METRICS, { counters: {}, gauges: metrics.gauges });
    await loadGrpc(settings);
    const deltas = new StatsDeltas(stats);
    return { parts, otlp, tracing, cache, service, forget, decide, deltas, metrics, limitEvents };
  }

  #limitEvents(): ThreadLimitEvents {
    return new ThreadLimitEvents(systemClock, (reports, suppressed) => {
      this.#port.postMessage({ type: "limit_events", reports, suppressed });
    });
  }

  /** The counters of the process. */
  #counters({ settings, stats }: ServiceParts, cells: BigInt64Array): CounterCache {
    const counters = new ProcessCounters(this.#client, {
      maxInFlight: settings.MAX_IN_FLIGHT,
      backend: "memory",
      timeoutMs: COUNT_MS,
      clock: systemClock,
    });
    if (settings.BACKEND_TYPE !== "memory") return counters;
    stats.addMetrics(IN_FLIGHT_METRICS, counters.metrics);
    const places = this.#places = new SharedPlaces(cells, (questions) => {
      this.#port.postMessage({ type: "places", questions });
    });
    counters.placeOf = (hit) => places.placeOf(hit);
    return counters;
  }

  async #listen({ port, isHealthy }: Message<"listen">): Promise<void> {
    if (this.#open === undefined) return;
    const { parts, otlp, tracing, cache, service, decide } = this.#open;
    this.#health.set(PROCESS, isHealthy);
    await settledWithin(cache.ready, CACHE_HEAD_START_MS, systemClock);
    // The other workers listen on the same port.
    const settings = { ...parts.settings, GRPC_PORT: port, LISTEN_SHARED: true };
    const grpc = this.#grpc = await openGrpc({ ...parts, settings }, tracing, decide, service);
    const { address } = grpc;
    const bound = Number(address.slice(address.lastIndexOf(":") + 1));
    this.#port.postMessage({ type: "listening", address, port: bound });
    otlp?.start();
  }

  async #close(graceMs: number): Promise<void> {
    await this.#grpc?.close(graceMs);
    if (this.#open === undefined) return;
    const { otlp, tracing, cache, metrics, limitEvents } = this.#open;
    await limitEvents?.close();
    this.#cancelReport();
    metrics.close();
    await tracing.close();
    await otlp?.close();
    this.#postReport();
    await cache.close();
  }

  #postPeriodically(): void {
    this.#postReport();
    this.#cancelReport = systemClock.after(REPORT_MS, () => this.#postPeriodically());
  }

  #postReport(id?: number): void {
    if (this.#open === undefined) return;
    const { deltas, service } = this.#open;
    const report: WorkerReport = {
      stats: deltas.take(),
      tally: service.tally.take(Math.floor(systemClock.now() / 1_000)),
      sums: service.ruleCounts?.takeSums() ?? [],
    };
    this.#port.postMessage({ type: "report", id, report });
    this.#postHealth();
  }

  /** Sends the components of this thread that fail or are degraded. */
  #postHealth(): void {
    const failing = this.#health.failing().filter(({ name }) => name !== PROCESS);
    this.#port.postMessage({ type: "health", failing, degraded: this.#health.degraded() });
  }
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
  serveDecisions(port);
}
