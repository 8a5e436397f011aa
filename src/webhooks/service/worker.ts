import { backoffMs } from "../../base/backoff.ts";
import { systemClock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import { portLogger } from "../../base/log.ts";
import { captureConsole } from "../../base/standard_streams.ts";
import { lowerPriority } from "../../threads/thread_priority.ts";
import { WakeLoop } from "../../threads/wake_loop.ts";
import { TurnBatch } from "../../base/turn.ts";
import { waitUnlessAborted, withTimeout } from "../../base/wait.ts";
import type { WebhookAnswer, WebhookCalls } from "../api/calls.ts";
import type { PostgresLogin } from "../store/postgres/login.ts";
import { StoreError } from "../store/store.ts";
import type { LimitCall, LimitDecision } from "../model/limit_call.ts";
import type { NumberedAnswer, WebhookOptions, WebhookRequest, WebhookWorkerPort } from "./message.ts";
import { openWebhookService, type WebhookOpening } from "./opening.ts";
import type { WebhookService } from "./service.ts";
import type { TracedWork } from "../../base/traced_work.ts";
import { attemptSpan, stepSpan } from "./spans.ts";

const DECISION_TIMEOUT_MS = 5_000;
const METRICS_MS = 1_000;
/** Waits before an unavailable store is opened again. */
const OPENING_BACKOFF = { firstMs: 250, longestMs: 5_000 };

/** The parts of a worker that tests change. */
type WebhookExtras = Pick<WebhookOpening, "parts" | "pragmas">;

/** Runs the webhook service over the port; `extrasOf` is called when it is opened. */
export function serveWebhooks(port: WebhookWorkerPort, extrasOf: () => WebhookExtras = () => ({})): void {
  const limits = new PortLimits(port);
  const stopping = new AbortController();
  const { signal } = stopping;
  const answers = new TurnBatch<NumberedAnswer>((answers) => port.postMessage({ type: "answers", answers }));
  let service: Promise<WebhookService | undefined> = Promise.resolve(undefined);
  port.addEventListener("message", ({ data: message }) => {
    switch (message.type) {
      case "start":
        service = loadAll().then(() => {
          return open(message.options, { limit: limits.ask, port, extras: extrasOf(), signal });
        });
        break;
      case "requests":
        void service.then((opened) => {
          // One that cannot be opened has reported so, which answers every request.
          if (opened === undefined) return;
          for (const { id, request } of message.requests) {
            void answer(opened, request).then((answer) => answers.add({ id, answer }));
          }
        });
        break;
      case "limit":
        limits.take(message.id, message.decision);
        break;
      case "report":
        void service.then(async (opened) => {
          if (opened === undefined) return;
          port.postMessage({ type: "reported", isWritten: await opened.report(message.batch) });
        });
        break;
      case "stop":
        stopping.abort();
        void service.then(async (opened) => {
          await opened?.stop(message.graceMs).catch((error: unknown) => {
            portLogger(port).error("Cannot stop the webhook service cleanly", { error });
          });
          answers.flush();
          port.postMessage({ type: "stopped" });
        });
    }
  });
}

/** Imports what is used later: an import would fail while no file descriptor is left. */
async function loadAll(): Promise<void> {
  await Promise.all([
    import("../api/administration.ts"),
    import("./outbound_clients.ts"),
    import("../workflows/request_step.ts"),
  ]);
}

interface WorkerOpening {
  readonly limit: LimitCall;
  readonly port: WebhookWorkerPort;
  readonly extras: WebhookExtras;
  /** Ends the wait for an unavailable store, and the metrics. */
  readonly signal: AbortSignal;
}

/** Opens the service; while the database server is unavailable it tries again, and reports each failure. */
async function open(options: WebhookOptions, opening: WorkerOpening): Promise<WebhookService | undefined> {
  const { port, signal } = opening;
  const login = await openLogin(options, opening);
  for (let attempt = 1; !signal.aborted; attempt++) {
    // Other credentials, during the attempt too, end the wait after it.
    const changed = new AbortController();
    login?.credential.onChange(() => changed.abort(), changed.signal);
    try {
      const service = await openWebhookService({ ...serviceOpening(options, opening), login });
      service.start();
      port.postMessage({ type: "ready" });
      sendMetrics(service, opening);
      return service;
    } catch (error) {
      const reason = errorText(error);
      if (!mayReturn(error, options)) {
        port.postMessage({ type: "failed", reason });
        return undefined;
      }
      port.postMessage({ type: "waiting", reason });
      const waitMs = backoffMs(attempt, Math.random(), OPENING_BACKOFF);
      await waitUnlessAborted(waitMs, systemClock, AbortSignal.any([signal, changed.signal]));
    } finally {
      changed.abort();
    }
  }
  return undefined;
}

/** Who logs in to PostgreSQL, where a file has its address; closed when the signal is aborted. */
async function openLogin(
  { store }: WebhookOptions,
  { port, signal }: WorkerOpening,
): Promise<PostgresLogin | undefined> {
  if (store.kind === "file" || store.addressFile === undefined) return undefined;
  const { openPostgresLogin } = await import("../store/postgres/login.ts");
  const file = { name: "WEBHOOK_STORE", path: store.addressFile, value: store.address };
  const login = openPostgresLogin({ file, clock: systemClock, logger: portLogger(port) });
  const close = () => void login.close();
  if (signal.aborted) close();
  else signal.addEventListener("abort", close, { once: true });
  return login;
}

function sendMetrics(service: WebhookService, { port, signal }: WorkerOpening): void {
  // A stop during the opening has aborted already.
  if (signal.aborted) return;
  const round = async () => {
    const metrics = await service.metrics();
    if (!signal.aborted) port.postMessage({ type: "metrics", metrics });
    return false;
  };
  // A store that answers late is no reason to replace the worker.
  const onPoll = () => port.postMessage({ type: "alive" });
  const loop = new WakeLoop({ clock: systemClock, pollMs: METRICS_MS, round, onPoll });
  signal.addEventListener("abort", () => void loop.stop(), { once: true });
  loop.start();
}

function mayReturn(error: unknown, { store }: WebhookOptions): boolean {
  if (store.kind === "file" || !(error instanceof StoreError)) return false;
  return error.code !== "failed" && error.code !== "closed";
}

function serviceOpening(
  options: WebhookOptions,
  { limit, port, extras }: WorkerOpening,
): WebhookOpening {
  const send = (span: TracedWork) => port.postMessage({ type: "span", span });
  const spans: WebhookOpening["parts"] = options.isTraced
    ? { onAttempt: (report) => send(attemptSpan(report)), onStep: (report) => send(stepSpan(report)) }
    : {};
  const logger = portLogger(port);
  // The next worker waits for the lock.
  const onLockLost = (reason: string) => port.postMessage({ type: "failed", reason });
  const parts = { onLockLost, ...spans, ...extras.parts };
  return { options, limit, logger, clock: systemClock, parts, pragmas: extras.pragmas };
}

function answer(calls: WebhookCalls, { method, call }: WebhookRequest): Promise<WebhookAnswer> {
  switch (method) {
    case "acceptTrigger":
      return calls.acceptTrigger(call);
    case "acceptSignedTrigger":
      return calls.acceptSignedTrigger(call);
    case "checkTrigger":
      return calls.checkTrigger(call);
    case "acceptEvent":
      return calls.acceptEvent(call);
    case "administer":
      return calls.administer(call);
  }
}

/** Asks the decision service on the main thread. */
class PortLimits {
  readonly #port: WebhookWorkerPort;
  readonly #waiting = new Map<number, PromiseWithResolvers<LimitDecision>>();
  #lastId = 0;

  constructor(port: WebhookWorkerPort) {
    this.#port = port;
  }

  readonly ask: LimitCall = async (domain, descriptors) => {
    const id = ++this.#lastId;
    const waiting = Promise.withResolvers<LimitDecision>();
    this.#waiting.set(id, waiting);
    this.#port.postMessage({ type: "limit", id, domain, descriptors });
    try {
      return await withTimeout(
        waiting.promise,
        DECISION_TIMEOUT_MS,
        systemClock,
        () => failed("it timed out"),
      );
    } finally {
      this.#waiting.delete(id);
    }
  };

  take(id: number, decision: LimitDecision | undefined): void {
    const waiting = this.#waiting.get(id);
    if (decision === undefined) waiting?.reject(failed("it failed"));
    else waiting?.resolve(decision);
  }
}

function failed(state: string): Error {
  return new Error(`Cannot use the decision: ${state}`);
}

/** The least that keeps decisions undelayed; at 10 its own timeouts pass while other programs take the cores. */
const NICENESS = 5;

// A worker's module is the main module of its thread.
if (import.meta.main) {
  lowerPriority(NICENESS);
  const port = globalThis as unknown as WebhookWorkerPort;
  captureConsole(portLogger(port));
  serveWebhooks(port);
}
