import { systemClock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import type { LogFields, Logger } from "../base/log.ts";
import { giveWay } from "../base/thread_priority.ts";
import { answeredWithin } from "../base/wait.ts";
import type { WebhookAnswer, WebhookCalls } from "./routes.ts";
import type { LimitCall, LimitDecision } from "./trigger_limit.ts";
import type {
  FromWebhookWorker,
  LogLevel,
  ToWebhookWorker,
  WebhookOptions,
  WebhookQuestion,
} from "./webhook_message.ts";
import { openWebhookService, type WebhookOpening } from "./webhook_opening.ts";
import type { WebhookService } from "./webhook_service.ts";
import { attemptSpan, stepSpan, type WebhookSpan } from "./webhook_spans.ts";

/** The worker's side of its line to the main thread. */
export interface WebhookPort {
  postMessage(message: FromWebhookWorker): void;
  addEventListener(type: "message", listener: (event: MessageEvent<ToWebhookWorker>) => void): void;
}

/** How long a decision may take. */
const DECISION_MS = 5_000;
const FIGURES_MS = 1_000;

/** What a test wants otherwise in its worker. */
export type WebhookExtras = Pick<WebhookOpening, "parts" | "pragmas">;

/** Runs the webhook service over the port; `extrasOf` is asked when it is opened. */
export function serveWebhooks(port: WebhookPort, extrasOf: () => WebhookExtras = () => ({})): void {
  const limits = new PortLimits(port);
  let service: Promise<WebhookService | undefined> = Promise.resolve(undefined);
  let cancelFigures = () => {};
  const tellFigures = (of: WebhookService): void => {
    cancelFigures = systemClock.after(FIGURES_MS, () => {
      void of.figures().then((figures) => {
        port.postMessage({ type: "figures", figures });
        tellFigures(of);
      });
    });
  };
  port.addEventListener("message", ({ data: message }) => {
    switch (message.type) {
      case "start":
        service = open(message.options, { limit: limits.ask, port, extras: extrasOf() }).then((opened) => {
          if (opened !== undefined) tellFigures(opened);
          return opened;
        });
        break;
      case "question":
        void service.then((opened) => answer(opened, message.question)).then((given) => {
          port.postMessage({ type: "answer", id: message.id, answer: given });
        });
        break;
      case "limit":
        limits.take(message.id, message.decision);
        break;
      case "stop":
        void service.then(async (opened) => {
          await opened?.stop(message.graceMs).catch((error: unknown) => {
            portLogger(port).error("The webhook service did not end well", { error });
          });
          cancelFigures();
          port.postMessage({ type: "stopped" });
        });
    }
  });
}

async function open(
  options: WebhookOptions,
  { limit, port, extras }: {
    readonly limit: LimitCall;
    readonly port: WebhookPort;
    readonly extras: WebhookExtras;
  },
): Promise<WebhookService | undefined> {
  try {
    const tell = (span: WebhookSpan) => port.postMessage({ type: "span", span });
    const spans: WebhookOpening["parts"] = options.isTraced
      ? { onAttempt: (report) => tell(attemptSpan(report)), onStep: (report) => tell(stepSpan(report)) }
      : {};
    const logger = portLogger(port);
    const parts = { ...spans, ...extras.parts };
    const opening = { options, limit, logger, clock: systemClock, parts, pragmas: extras.pragmas };
    const service = await openWebhookService(opening);
    service.start();
    port.postMessage({ type: "ready" });
    return service;
  } catch (error) {
    port.postMessage({ type: "failed", state: errorText(error) });
    return undefined;
  }
}

async function answer(
  calls: WebhookCalls | undefined,
  question: WebhookQuestion,
): Promise<WebhookAnswer | undefined> {
  switch (question.method) {
    case "admitTrigger":
      return await calls?.admitTrigger(question.call);
    case "acceptTrigger":
      return await calls?.acceptTrigger(question.call);
    case "admitEvent":
      return await calls?.admitEvent(question.call);
    case "acceptEvent":
      return await calls?.acceptEvent(question.call);
    case "administer":
      return await calls?.administer(question.call);
  }
}

/** Asks the decision service on the main thread. */
class PortLimits {
  readonly #port: WebhookPort;
  readonly #waiting = new Map<number, PromiseWithResolvers<LimitDecision>>();
  #lastId = 0;

  constructor(port: WebhookPort) {
    this.#port = port;
  }

  readonly ask: LimitCall = async (domain, descriptors) => {
    const id = ++this.#lastId;
    const waiting = Promise.withResolvers<LimitDecision>();
    this.#waiting.set(id, waiting);
    this.#port.postMessage({ type: "limit", id, domain, descriptors });
    try {
      return await answeredWithin(
        waiting.promise,
        DECISION_MS,
        systemClock,
        () => failed("it took too long"),
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

/** Sends every line to the main thread, whose logger knows which of them are wanted. */
function portLogger(port: WebhookPort): Logger {
  const log = (level: LogLevel) => (message: string, fields: LogFields = {}) => {
    port.postMessage({ type: "log", level, message, fields });
  };
  return { debug: log("debug"), info: log("info"), warning: log("warning"), error: log("error") };
}

// A worker's module is the main module of its thread.
if (import.meta.main) {
  giveWay();
  serveWebhooks(globalThis as unknown as WebhookPort);
}
