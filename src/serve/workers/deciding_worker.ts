import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { SupervisedWorker } from "../../base/supervised_worker.ts";
import type { CountReply, CountRequest } from "../../cache/counting_client.ts";
import type { PlaceAnswer, PlaceQuestion } from "../../cache/shared_places.ts";
import type { RuleTexts } from "../../config/provider.ts";
import type { LimitReport } from "../../ratelimit/limit_episodes.ts";
import type {
  DecidingWorkerHandle,
  FromDecidingWorker,
  ToDecidingWorker,
  WorkerHealth,
  WorkerReport,
} from "./message.ts";

/** The state of the process that a new worker begins with. */
export interface CurrentState {
  /** The number of the current rules; 0 before the first. */
  readonly rules: number;
  readonly texts: RuleTexts | undefined;
  readonly isHealthy: boolean;
}

/** What a worker is supervised with. */
export interface DecidingWorkerOptions {
  /** From 1. */
  readonly number: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random: () => number;
  readonly createWorker: () => DecidingWorkerHandle;
  readonly startMessage: ToDecidingWorker;
  readonly current: () => CurrentState;
  readonly onCount: (request: CountRequest) => CountReply;
  readonly onPlaces: (questions: readonly PlaceQuestion[]) => PlaceAnswer[];
  readonly onReport: (report: WorkerReport) => void;
  readonly onLimitEvents: (reports: readonly LimitReport[], suppressed: number) => void;
  readonly onHealth: (health: WorkerHealth) => void;
  /** `isListening` may have changed. */
  readonly onState: () => void;
  /** The thread has ended. */
  readonly onEnd: () => void;
  readonly onGivenUp: (reason: string) => void;
}

const BACKOFF = { firstMs: 250, longestMs: 30_000 };
const HEARTBEAT_MS = 1_000;
/** How long a worker that listens may send nothing; it reports every second. */
const SILENCE_MS = 15_000;
/** How long opening, large rules and the port may take. */
const OPENING_MS = 120_000;
/** What a thread owes after it was started, and after it was sent its port. */
const OPENED = "open parts";
const LISTENING = "open port";
/** How much longer than its grace period stopping may take. */
const STOP_MARGIN_MS = 6_000;

/** One thread that decides. One that fails is replaced by another with the current rules, on the same port. */
export class DecidingWorker {
  readonly #options: DecidingWorkerOptions;
  readonly #worker: SupervisedWorker<ToDecidingWorker, FromDecidingWorker>;
  readonly #opened = Promise.withResolvers<void>();
  readonly #listening = Promise.withResolvers<Listening>();
  readonly #applying = new Map<number, () => void>();
  readonly #reporting = new Map<number, () => void>();
  /** The port, once it is to be opened. */
  #port: number | undefined;
  #isListening = false;
  /** Rules are sent one after the other. */
  #sent: Promise<void> = Promise.resolve();
  /** The thread and what it was sent. */
  #thread: Thread = { isOpen: false, hasPort: false, rules: 0, applied: 0 };

  constructor(options: DecidingWorkerOptions) {
    const { number, startMessage } = options;
    this.#options = options;
    // They are thrown where they are awaited, if they are.
    this.#opened.promise.catch(() => {});
    this.#listening.promise.catch(() => {});
    this.#worker = new SupervisedWorker<ToDecidingWorker, FromDecidingWorker>({
      ...options,
      name: `Worker ${number}`,
      meanwhile: "deciding in the others",
      startMessage: () => {
        this.#thread = { isOpen: false, hasPort: false, rules: 0, applied: 0 };
        this.#worker.expect(OPENED, OPENING_MS);
        return startMessage;
      },
      onMessage: (message, reply) => this.#take(message, reply),
      onFailure: (reason) => {
        this.#end(reason);
        return {};
      },
      heartbeatMs: HEARTBEAT_MS,
      maxSilenceMs: () => this.#isListening ? SILENCE_MS : OPENING_MS,
      backoff: BACKOFF,
    });
    this.#worker.start();
  }

  /** Settles when the first thread is open, apart from its port; throws when it cannot be opened. */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  /** Whether a thread accepts calls. */
  get isListening(): boolean {
    return this.#isListening;
  }

  post(message: ToDecidingWorker): void {
    this.#worker.post(message);
  }

  /** Opens the port, 0 for any free one. Throws when it cannot be opened. */
  listen(port: number): Promise<Listening> {
    this.#port = port;
    if (this.#thread.isOpen) this.#listenAfterRules();
    return this.#listening.promise;
  }

  /** Applies rules; settles when the thread has them, or has ended. */
  async setRules(number: number, texts: RuleTexts): Promise<void> {
    // The next thread begins with the current ones.
    if (!this.#worker.isRunning || this.#thread.applied >= number) return;
    const applied = Promise.withResolvers<void>();
    this.#applying.set(number, applied.resolve);
    await this.#sendRules(number, texts);
    await applied.promise;
  }

  /** Settles when the thread has sent its statistics, or has ended. */
  async report(id: number): Promise<void> {
    if (!this.#worker.isRunning || !this.#thread.isOpen) return;
    const reported = Promise.withResolvers<void>();
    this.#reporting.set(id, reported.resolve);
    this.#worker.post({ type: "report", id });
    await reported.promise;
  }

  /** Drains the calls and ends the thread. */
  async close(graceMs: number): Promise<void> {
    await this.#worker.stop({ type: "stop", graceMs }, graceMs + STOP_MARGIN_MS);
    this.#end("it is stopped");
  }

  #take(message: FromDecidingWorker, reply: (message: ToDecidingWorker) => void): void {
    const { onCount, onPlaces, onReport, onHealth, onGivenUp, onState } = this.#options;
    switch (message.type) {
      case "count":
        return reply({ type: "counted", reply: onCount(message.request) });
      case "places":
        return reply({ type: "places", answers: onPlaces(message.questions) });
      case "report":
        onReport(message.report);
        return settle(this.#reporting, message.id ?? 0);
      case "limit_events":
        return this.#options.onLimitEvents(message.reports, message.suppressed);
      case "health":
        return onHealth(message);
      case "opened":
        return this.#noteOpened();
      case "applied":
        this.#thread.applied = message.rules;
        this.#worker.settle(applied(message.rules));
        return settle(this.#applying, message.rules);
      case "listening":
        this.#isListening = true;
        this.#worker.settle(LISTENING);
        // Further threads listen on the same one.
        this.#port = message.port;
        this.#listening.resolve(message);
        return onState();
      case "given_up":
        return onGivenUp(message.reason);
      case "failed":
        return this.#worker.fail(new Error(message.reason));
    }
  }

  #noteOpened(): void {
    this.#thread.isOpen = true;
    this.#opened.resolve();
    this.#worker.settle(OPENED);
    const { rules, texts } = this.#options.current();
    if (texts !== undefined) void this.#sendRules(rules, texts);
    this.#listenAfterRules();
  }

  /** Rules come before the port, which would answer calls without them. */
  #listenAfterRules(): void {
    const thread = this.#thread;
    void this.#sent.then(() => {
      const port = this.#port;
      if (port === undefined || thread !== this.#thread || thread.hasPort) return;
      thread.hasPort = true;
      this.#worker.expect(LISTENING, OPENING_MS);
      this.post({ type: "listen", port, isHealthy: this.#options.current().isHealthy });
    });
  }

  #sendRules(number: number, texts: RuleTexts): Promise<void> {
    const thread = this.#thread;
    return this.#sent = this.#sent.then(async () => {
      if (thread.rules >= number) return;
      thread.rules = number;
      for (const text of texts) {
        if (thread !== this.#thread) return;
        this.post({ type: "rules", text });
        await setImmediate();
      }
      if (thread !== this.#thread) return;
      this.#worker.expect(applied(number), OPENING_MS);
      this.post({ type: "apply", rules: number });
    }).catch((error: unknown) => {
      if (thread === this.#thread) this.#worker.fail(error);
    });
  }

  /** The thread has ended. */
  #end(reason: string): void {
    this.#isListening = false;
    const error = new Error(reason);
    this.#opened.reject(error);
    // Before it is to listen, the next thread may still open.
    if (this.#port !== undefined) this.#listening.reject(error);
    settle(this.#applying, Infinity);
    settle(this.#reporting, Infinity);
    this.#options.onHealth({ failing: [], degraded: [] });
    this.#options.onEnd();
    this.#options.onState();
  }
}

/** Where a thread listens. */
export interface Listening {
  readonly address: string;
  readonly port: number;
}

/** A thread, and what it was sent. */
interface Thread {
  isOpen: boolean;
  hasPort: boolean;
  /** The number of the rules that it was sent. */
  rules: number;
  /** The number of the rules that it has. */
  applied: number;
}

/** What a thread owes after it was sent these rules. */
function applied(rules: number): string {
  return `answer to rules ${rules}`;
}

/** Settles what waits for this number or a lower one. */
function settle(waiting: Map<number, () => void>, number: number): void {
  for (const [waited, resolve] of waiting) {
    if (waited > number) continue;
    waiting.delete(waited);
    resolve();
  }
}
