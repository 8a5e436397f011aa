import { backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import type { Logger } from "../../base/log.ts";
import { settledWithin } from "../../base/wait.ts";
import { problemAnswer, SHUTTING_DOWN, unavailable } from "../api/problem.ts";
import type {
  AdministrationCall,
  EventCall,
  EventCaller,
  TriggerCall,
  TriggerCaller,
  WebhookAnswer,
  WebhookCalls,
} from "../api/calls.ts";
import type { LimitCall } from "../model/limit_call.ts";
import type { WebhookFigures } from "./metrics.ts";
import type { FromWebhookWorker, ToWebhookWorker, WebhookOptions, WebhookQuestion } from "./message.ts";
import type { WebhookSpan } from "./spans.ts";
import { ANSWER_MS, WebhookQuestions } from "./questions.ts";

/** The main thread's side of its line to the worker; a `Worker` is one. */
export interface WebhookLine {
  postMessage(message: ToWebhookWorker): void;
  terminate(): void;
  onmessage: ((event: MessageEvent<FromWebhookWorker>) => void) | null;
  onmessageerror: ((event: MessageEvent) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
}

/** What the thread of the webhook service is started with. */
export interface WebhookThreadOptions {
  readonly options: WebhookOptions;
  /** Asks the decision service for the worker. */
  readonly limit: LimitCall;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly logger: Logger;
  /** Told how it stands, with what is wrong. */
  readonly onHealth: (healthy: boolean, reason: string) => void;
  /** Told what the worker counted; `isNew` says that it has begun to count anew. */
  readonly onFigures: (figures: WebhookFigures, isNew: boolean) => void;
  /** Told of work that is over, where the options ask for spans. */
  readonly onSpan?: ((span: WebhookSpan) => void) | undefined;
  /** Starts a worker; one with the webhook service when absent. */
  readonly startWorker?: (() => WebhookLine) | undefined;
}

const BACKOFF = { firstMs: 250, longestMs: 30_000 };
/** A worker that lived so long did not fail because of how it was started. */
const STEADY_MS = 60_000;
const BEAT_MS = 1_000;
/** How long calls wait for the first worker, whose store may have to be made. */
const HEAD_START_MS = 5_000;
/** What a worker waits for at its start is told of this often. */
const TELL_MS = 10_000;
/** Beats without a word from the worker that are borne; while it opens its store it may take longer. */
const PATIENCE = 15;
const OPENING_PATIENCE = 120;
/** A dry run asks for a name, connects and sends, each with a time limit of its own. */
const DRY_RUN_MS = 45_000;
/** How much longer than its grace the end may take. */
const STOP_MARGIN_MS = 3_000;

/**
 * The webhook service in a worker of its own, so that no write ever stalls a decision. Calls wait for the first worker
 * for a while. One that fails or falls silent is replaced; until the next one is ready every call is answered with 503.
 */
export class WebhookThread implements WebhookCalls {
  readonly #options: WebhookThreadOptions;
  readonly #questions: WebhookQuestions;
  readonly #ready = Promise.withResolvers<void>();
  /** What was asked before the first worker was ready; nothing once that is or can not be had in time. */
  #early: ToWebhookWorker[] | undefined = [];
  readonly #stopped = Promise.withResolvers<void>();
  #worker: WebhookLine | undefined;
  #state: "opening" | "ready" | "away" | "stopping" | "closed" = "opening";
  #reason = "it is starting";
  #failures = 0;
  #startedAt = 0;
  #nextTell = -Infinity;
  #silentBeats = 0;
  #isNew = true;
  #cancelHeadStart = () => {};
  #cancelRestart = () => {};
  #cancelBeat = () => {};
  /** Called when the worker has ended after it was told to. */
  #onEnd = () => {};

  constructor(options: WebhookThreadOptions) {
    this.#options = options;
    this.#questions = new WebhookQuestions(options.clock);
    options.onHealth(false, this.#reason);
  }

  /** Starts the worker, unless it was stopped before. */
  start(): void {
    if (this.#state !== "opening") return;
    this.#cancelHeadStart = this.#options.clock.after(HEAD_START_MS, () => this.#endHeadStart());
    this.#start();
    this.#beat();
  }

  /** Settles when the service answers for the first time, could not be opened, or took too long to. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  admitTrigger(call: TriggerCaller): Promise<WebhookAnswer | undefined> {
    return this.#ask({ method: "admitTrigger", call });
  }

  acceptTrigger(call: TriggerCall): Promise<WebhookAnswer> {
    return this.#wanted({ method: "acceptTrigger", call });
  }

  admitEvent(call: EventCaller): Promise<WebhookAnswer | undefined> {
    return this.#ask({ method: "admitEvent", call });
  }

  acceptEvent(call: EventCall): Promise<WebhookAnswer> {
    return this.#wanted({ method: "acceptEvent", call });
  }

  administer(call: AdministrationCall): Promise<WebhookAnswer> {
    return this.#wanted({ method: "administer", call });
  }

  /** Lets nothing more in, gives work that is under way so long, and ends the worker. */
  async stop(graceMs: number): Promise<void> {
    if (this.#state === "closed" || this.#state === "stopping") return await this.#stopped.promise;
    const wasReady = this.#state === "ready";
    this.#state = "stopping";
    this.#cancelHeadStart();
    this.#cancelRestart();
    this.#cancelBeat();
    if (wasReady && this.#worker !== undefined) {
      const ended = Promise.withResolvers<void>();
      this.#onEnd = ended.resolve;
      this.#worker.postMessage({ type: "stop", graceMs });
      const isOver = await settledWithin(ended.promise, graceMs + STOP_MARGIN_MS, this.#options.clock);
      if (!isOver) this.#options.logger.warning("The webhook service did not end in time");
    }
    this.#state = "closed";
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#questions.end(SHUTTING_DOWN);
    this.#stopped.resolve();
  }

  async #wanted(question: WebhookQuestion): Promise<WebhookAnswer> {
    const { requestId } = question.call;
    return await this.#ask(question) ?? problemAnswer(AWAY, requestId);
  }

  #ask(question: WebhookQuestion): Promise<WebhookAnswer | undefined> {
    const { requestId } = question.call;
    if (this.#state === "stopping" || this.#state === "closed") {
      return Promise.resolve(problemAnswer(SHUTTING_DOWN, requestId));
    }
    const worker = this.#worker;
    const early = this.#early;
    const isReady = this.#state === "ready" && worker !== undefined;
    if (!isReady && early === undefined) return Promise.resolve(problemAnswer(AWAY, requestId));
    const send = (id: number) => {
      const message: ToWebhookWorker = { type: "question", id, question };
      if (isReady) worker.postMessage(message);
      else early?.push(message);
    };
    return this.#questions.ask(requestId, send, isDryRun(question) ? DRY_RUN_MS : ANSWER_MS);
  }

  /** Nobody waits for the first worker any more: it is ready, or what waits is refused. */
  #endHeadStart(worker?: WebhookLine): void {
    const early = this.#early;
    if (early === undefined) return;
    this.#early = undefined;
    this.#cancelHeadStart();
    if (worker === undefined) this.#questions.end(AWAY);
    else for (const message of early) worker.postMessage(message);
    this.#ready.resolve();
  }

  #start(): void {
    this.#state = "opening";
    this.#startedAt = this.#options.clock.elapsed();
    this.#silentBeats = 0;
    this.#isNew = true;
    try {
      const worker = (this.#options.startWorker ?? startWebhookWorker)();
      this.#worker = worker;
      worker.onmessage = ({ data: message }) => {
        if (worker === this.#worker) this.#take(message, worker);
      };
      worker.onmessageerror = () => this.#fail(worker, "a message could not be read");
      worker.onerror = (event) => {
        // Otherwise it would end the process.
        event.preventDefault();
        this.#fail(worker, event.message);
      };
      worker.postMessage({ type: "start", options: this.#options.options });
    } catch (error) {
      this.#replace(`it cannot be started: ${errorText(error)}`);
    }
  }

  #take(message: FromWebhookWorker, worker: WebhookLine): void {
    this.#silentBeats = 0;
    switch (message.type) {
      case "ready":
        if (this.#state !== "opening") return;
        this.#state = "ready";
        this.#options.onHealth(true, "");
        return this.#endHeadStart(worker);
      case "waiting":
        return this.#noteWaiting(message.state);
      case "failed":
        return this.#fail(worker, message.state);
      case "answer":
        return this.#questions.answer(message.id, message.answer);
      case "limit":
        return void this.#decide(message, worker);
      case "log":
        return this.#options.logger[message.level](message.message, message.fields);
      case "figures":
        return this.#takeFigures(message.figures);
      case "span":
        return this.#options.onSpan?.(message.span);
      case "stopped":
        this.#onEnd();
    }
  }

  #takeFigures(figures: WebhookFigures): void {
    this.#options.onFigures(figures, this.#isNew);
    this.#isNew = false;
    if (this.#state !== "ready") return;
    const { problem, note = "" } = figures;
    this.#options.onHealth(problem === undefined, problem ?? note);
  }

  #noteWaiting(state: string): void {
    const { clock, logger, onHealth } = this.#options;
    this.#endHeadStart();
    this.#reason = state;
    onHealth(false, state);
    const elapsed = clock.elapsed();
    if (elapsed < this.#nextTell) return;
    this.#nextTell = elapsed + TELL_MS;
    logger.error("The webhook service waits for its store; decisions go on", { state });
  }

  async #decide(
    { id, domain, descriptors }: Extract<FromWebhookWorker, { type: "limit" }>,
    worker: WebhookLine,
  ): Promise<void> {
    const decision = await this.#options.limit(domain, descriptors).catch((error: unknown) => {
      this.#options.logger.warning("Cannot decide on a limit for the webhook service", { domain, error });
      return undefined;
    });
    if (worker === this.#worker) worker.postMessage({ type: "limit", id, decision });
  }

  #beat(): void {
    this.#cancelBeat = this.#options.clock.after(BEAT_MS, () => {
      this.#silentBeats++;
      const patience = this.#state === "ready" ? PATIENCE : OPENING_PATIENCE;
      const worker = this.#worker;
      if (worker !== undefined && this.#silentBeats > patience) {
        this.#fail(worker, `it was silent for ${patience} s`);
      }
      this.#beat();
    });
  }

  #fail(worker: WebhookLine, state: string): void {
    if (worker !== this.#worker) return;
    if (this.#state === "stopping") return this.#onEnd();
    this.#replace(state);
  }

  #replace(state: string): void {
    const { clock, random, logger, onHealth } = this.#options;
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#state = "away";
    this.#endHeadStart();
    this.#questions.end(AWAY);
    if (clock.elapsed() - this.#startedAt >= STEADY_MS) this.#failures = 0;
    const delayMs = backoffMs(++this.#failures, random(), BACKOFF);
    this.#reason = state;
    onHealth(false, state);
    const text = `The webhook service failed and is started anew in ${
      Math.round(delayMs)
    } ms; decisions go on`;
    logger.error(text, { state });
    this.#cancelRestart = clock.after(delayMs, () => this.#start());
  }
}

function isDryRun(question: WebhookQuestion): boolean {
  return question.method === "administer" && question.call.path.endsWith("/check");
}

const AWAY = unavailable("webhooks_unavailable", "Cannot answer: the webhook service is being started");

function startWebhookWorker(): WebhookLine {
  return new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "webhooks" });
}
