import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { ThrottledLog } from "../../base/throttled_log.ts";
import { SupervisedWorker, type WorkerHandle } from "../../threads/supervised_worker.ts";
import type {
  AdministrationCall,
  EventCall,
  SignedTriggerCall,
  TriggerCall,
  TriggerCheck,
  WebhookAnswer,
  WebhookCalls,
} from "../api/calls.ts";
import { problemAnswer, SHUTTING_DOWN, unavailable } from "../api/problem.ts";
import type { LimitCall } from "../model/limit_call.ts";
import type { OperationalBatch } from "../model/operational_event.ts";
import type {
  FromWebhookWorker,
  NumberedRequest,
  ToWebhookWorker,
  WebhookOptions,
  WebhookRequest,
} from "./message.ts";
import type { WebhookMetrics } from "./metrics.ts";
import { PendingRequests, REQUEST_TIMEOUT_MS } from "./pending_requests.ts";
import type { TracedWork } from "../../base/traced_work.ts";
import { TurnBatch } from "../../base/turn.ts";

/** The supervisor's side of the connection to a worker. */
export type WebhookWorkerHandle = WorkerHandle<ToWebhookWorker, FromWebhookWorker>;

/** Options of `WebhookWorkerSupervisor`. */
interface WebhookWorkerSupervisorOptions {
  readonly options: WebhookOptions;
  /** Asks the decision service for the worker. */
  readonly limit: LimitCall;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly logger: Logger;
  /** Called with the health of the service, and with what is wrong, or why it is degraded, a line for each cause. */
  readonly onHealth: (healthy: boolean, reason: string) => void;
  /** Called with the metrics of the worker; `isNew` when it has started to count from zero. */
  readonly onMetrics: (metrics: WebhookMetrics, isNew: boolean) => void;
  /** Called with finished work, where the options ask for spans. */
  readonly onSpan?: ((span: TracedWork) => void) | undefined;
  readonly createWorker: () => WebhookWorkerHandle;
}

const BACKOFF = { firstMs: 250, longestMs: 30_000 };
const HEARTBEAT_MS = 1_000;
/** Time that a worker may be silent; opening its store may take longer. */
const SILENCE_MS = 15_000;
const OPENING_SILENCE_MS = 120_000;
/** Time that calls wait for the first worker, which may have to create its store. */
const HEAD_START_MS = 5_000;
const WAITING_LOG_MS = 10_000;
/** A dry run resolves a name, connects and sends, each with its own timeout. */
const DRY_RUN_TIMEOUT_MS = 45_000;
/** Time that stopping may take beyond its grace period. */
const STOP_MARGIN_MS = 3_000;

/** The outcome of a batch of operational events: `unknown` when the worker was replaced, or is not ready. */
export type ReportEnd = "written" | "lost" | "unknown";

const AWAY = unavailable("webhooks_unavailable", "Cannot answer: the webhook service is starting");

/**
 * Runs the webhook service in a worker, so that no write ever stalls a decision. Calls wait for the first worker for a
 * while. While a worker is being replaced every call is answered with 503.
 */
export class WebhookWorkerSupervisor implements WebhookCalls {
  readonly #options: WebhookWorkerSupervisorOptions;
  readonly #worker: SupervisedWorker<ToWebhookWorker, FromWebhookWorker>;
  readonly #pending: PendingRequests;
  readonly #requests = new TurnBatch<NumberedRequest>((requests) => {
    this.#worker.post({ type: "requests", requests });
  });
  readonly #log: ThrottledLog;
  readonly #ready = Promise.withResolvers<void>();
  #state: "opening" | "ready" | "away" | "stopping" = "opening";
  #stopped: Promise<void> | undefined;
  /** Requests that wait for the first worker; absent once it is ready or took too long. */
  #early: NumberedRequest[] | undefined = [];
  #cancelHeadStart = () => {};
  #endReport: (end: ReportEnd) => void = () => {};
  /** True if the worker has not sent any metrics yet. */
  #isNew = true;

  constructor(options: WebhookWorkerSupervisorOptions) {
    this.#options = options;
    this.#log = new ThrottledLog(options.logger, { clock: options.clock, intervalMs: WAITING_LOG_MS });
    this.#pending = new PendingRequests(options.clock);
    this.#worker = new SupervisedWorker({
      name: "Webhook worker",
      meanwhile: "answering its calls with 503",
      clock: options.clock,
      random: options.random,
      logger: options.logger,
      createWorker: options.createWorker,
      startMessage: () => {
        this.#state = "opening";
        this.#isNew = true;
        return { type: "start", options: options.options };
      },
      onMessage: (message, reply) => this.#take(message, reply),
      onFailure: (reason) => {
        this.#state = "away";
        this.#endHeadStart();
        this.#requests.drop();
        this.#pending.end(AWAY);
        this.#endReport("unknown");
        options.onHealth(false, reason);
      },
      heartbeatMs: HEARTBEAT_MS,
      maxSilenceMs: () => this.#state === "ready" ? SILENCE_MS : OPENING_SILENCE_MS,
      backoff: BACKOFF,
    });
    options.onHealth(false, "starting");
  }

  /** Starts the worker, unless it was started or stopped before. */
  start(): void {
    if (this.#state !== "opening" || this.#worker.isRunning) return;
    this.#cancelHeadStart = this.#options.clock.after(HEAD_START_MS, () => this.#endHeadStart());
    this.#worker.start();
  }

  /** Settles when the service is ready for the first time, cannot be opened, or takes too long to. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  acceptTrigger(call: TriggerCall): Promise<WebhookAnswer> {
    return this.#ask({ method: "acceptTrigger", call });
  }

  acceptSignedTrigger(call: SignedTriggerCall): Promise<WebhookAnswer> {
    return this.#ask({ method: "acceptSignedTrigger", call });
  }

  checkTrigger(call: TriggerCheck): Promise<WebhookAnswer> {
    return this.#ask({ method: "checkTrigger", call });
  }

  acceptEvent(call: EventCall): Promise<WebhookAnswer> {
    return this.#ask({ method: "acceptEvent", call });
  }

  administer(call: AdministrationCall): Promise<WebhookAnswer> {
    return this.#ask({ method: "administer", call });
  }

  /** Writes operational events, one batch after the other. */
  report(batch: OperationalBatch): Promise<ReportEnd> {
    if (this.#state !== "ready") return Promise.resolve("unknown");
    const { promise, resolve } = Promise.withResolvers<ReportEnd>();
    this.#endReport = resolve;
    this.#worker.post({ type: "report", batch });
    return promise;
  }

  /** Refuses new calls, gives running work this long, and ends the worker. */
  stop(graceMs: number): Promise<void> {
    return this.#stopped ??= this.#stop(graceMs);
  }

  async #stop(graceMs: number): Promise<void> {
    const wasReady = this.#state === "ready";
    this.#state = "stopping";
    this.#cancelHeadStart();
    if (wasReady) {
      this.#requests.flush();
      const isInTime = await this.#worker.stop({ type: "stop", graceMs }, graceMs + STOP_MARGIN_MS);
      if (!isInTime) this.#options.logger.warning("Webhook worker did not stop in time");
    } else this.#worker.terminate();
    this.#pending.end(SHUTTING_DOWN);
    this.#endReport("unknown");
  }

  #ask(request: WebhookRequest): Promise<WebhookAnswer> {
    const { requestId } = request.call;
    if (this.#state === "stopping") return Promise.resolve(problemAnswer(SHUTTING_DOWN, requestId));
    const early = this.#early;
    const isReady = this.#state === "ready";
    if (!isReady && early === undefined) return Promise.resolve(problemAnswer(AWAY, requestId));
    const send = (id: number) => {
      if (isReady) this.#requests.add({ id, request });
      else early?.push({ id, request });
    };
    return this.#pending.ask(requestId, send, isDryRun(request) ? DRY_RUN_TIMEOUT_MS : REQUEST_TIMEOUT_MS);
  }

  /** Sends the early requests if the first worker is ready, and refuses them otherwise. */
  #endHeadStart(): void {
    const early = this.#early;
    if (early === undefined) return;
    this.#early = undefined;
    this.#cancelHeadStart();
    const isReady = this.#state === "ready";
    if (isReady && early.length > 0) this.#worker.post({ type: "requests", requests: early });
    if (!isReady) this.#pending.end(AWAY);
    this.#ready.resolve();
  }

  #take(message: FromWebhookWorker, reply: (message: ToWebhookWorker) => void): void {
    switch (message.type) {
      case "ready":
        if (this.#state !== "opening") return;
        this.#state = "ready";
        this.#options.onHealth(true, "");
        return this.#endHeadStart();
      case "waiting":
        return this.#noteWaiting(message.reason);
      case "failed":
        return this.#worker.fail(message.reason);
      case "answers":
        for (const { id, answer } of message.answers) this.#pending.settle(id, answer);
        return;
      case "limit":
        return void this.#decide(message, reply);
      case "reported":
        return this.#endReport(message.isWritten ? "written" : "lost");
      case "metrics":
        return this.#takeMetrics(message.metrics);
      case "span":
        return this.#options.onSpan?.(message.span);
    }
  }

  #takeMetrics(metrics: WebhookMetrics): void {
    this.#options.onMetrics(metrics, this.#isNew);
    this.#isNew = false;
    if (this.#state !== "ready") return;
    const { problem, note = "" } = metrics;
    this.#options.onHealth(problem === undefined, problem ?? note);
  }

  #noteWaiting(reason: string): void {
    this.#endHeadStart();
    this.#options.onHealth(false, reason);
    this.#log.error("waiting", "Webhook worker is waiting for its store", { reason });
  }

  async #decide(
    { id, domain, descriptors }: Extract<FromWebhookWorker, { type: "limit" }>,
    reply: (message: ToWebhookWorker) => void,
  ): Promise<void> {
    const decision = await this.#options.limit(domain, descriptors).catch((error: unknown) => {
      this.#options.logger.warning("Cannot decide on a limit for the webhook service", { domain, error });
      return undefined;
    });
    reply({ type: "limit", id, decision });
  }
}

function isDryRun({ method, call }: WebhookRequest): boolean {
  return method === "administer" && /\/(?:test|check)$/.test(call.path);
}

/** Starts the worker that serves webhooks. */
export function createWebhookWorker(): WebhookWorkerHandle {
  return new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "webhooks" });
}
