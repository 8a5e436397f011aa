import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { settledWithin } from "../base/wait.ts";
import { WorkerPulse } from "../base/worker_pulse.ts";
import type { Problem } from "../base/problem.ts";
import type { FromWorker, RuleFolderOptions, ToWorker } from "./file_provider_message.ts";
import { LoadGatherer, type LoadPart } from "./load_parts.ts";
import type { RulesLoad, RulesProvider } from "./provider.ts";

/** The main thread's side of its line to the worker; a `Worker` is one. */
export interface WorkerLine {
  postMessage(message: ToWorker): void;
  terminate(): void;
  onmessage: ((event: MessageEvent<FromWorker>) => void) | null;
  onmessageerror: ((event: MessageEvent) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
}

/** Where rule files are, and what else is needed to have them read in a thread of their own. */
export interface WorkerFileProviderOptions extends RuleFolderOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Starts a worker; one with the module that reads rule files when absent. */
  readonly startWorker?: () => WorkerLine;
}

const CLOSE_MS = 1_000;
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;
/** A worker that has taken so much memory to read files is replaced: nothing else gives it back. */
const LARGE_HEAP_BYTES = 128 * 1_024 * 1_024;
/** A worker that lived so long did not fail because of how it was started. */
const STEADY_MS = 60_000;

/**
 * Rules from files that are read in a Web Worker: what is watched may hold its thread up for good (a
 * named pipe does so on this platform), and reading large files takes seconds. A worker that fails or
 * falls silent is replaced, and the rules in force stay.
 */
export function createWorkerFileProvider(options: WorkerFileProviderOptions): RulesProvider {
  return new WorkerFileProvider(options);
}

class WorkerFileProvider implements RulesProvider {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #startWorker: () => WorkerLine;
  readonly #folder: RuleFolderOptions;
  readonly #pulse: WorkerPulse;
  readonly #closed = Promise.withResolvers<void>();
  #onLoad: (load: RulesLoad) => readonly Problem[] = (load) => load.problems;
  #worker: WorkerLine | undefined;
  #gatherer = new LoadGatherer();
  /** Of the last load, so that another worker does not read the same once more. */
  #digest: string | undefined;
  /** The first look of a worker that took over from a large one is of interest only if it finds a change. */
  #isTakenOver = false;
  /** A load was asked for and has not come yet. */
  #isAsked = false;
  #startedAt = 0;
  #backoffMs = FIRST_BACKOFF_MS;
  #cancelRestart = () => {};
  #isClosed = false;

  constructor(options: WorkerFileProviderOptions) {
    const { clock, logger, startWorker = startReader, ...folder } = options;
    this.#clock = clock;
    this.#logger = logger;
    this.#startWorker = startWorker;
    this.#folder = folder;
    this.#pulse = new WorkerPulse({
      clock,
      ping: () => this.#worker?.postMessage({ type: "ping" }),
      onSilence: (seconds) => {
        this.#replace(`the worker that reads the rule files did not answer for ${seconds} s`);
      },
    });
  }

  start(onLoad: (load: RulesLoad) => readonly Problem[]): void {
    this.#onLoad = onLoad;
    this.#start();
  }

  reload(): void {
    // Without a worker, the one that comes next begins with a load.
    if (this.#isClosed || this.#worker === undefined) return;
    this.#isAsked = true;
    this.#pulse.awaitLoad();
    this.#worker.postMessage({ type: "reload" });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRestart();
    this.#pulse.stop();
    const worker = this.#worker;
    if (worker === undefined) return;
    worker.postMessage({ type: "close" });
    await settledWithin(this.#closed.promise, CLOSE_MS, this.#clock);
    this.#worker = undefined;
    // Not waited for: its thread may never end.
    worker.terminate();
  }

  #start(): void {
    this.#startedAt = this.#clock.now();
    try {
      const worker = this.#startWorker();
      this.#worker = worker;
      this.#gatherer = new LoadGatherer();
      worker.onmessage = ({ data: message }) => {
        if (worker === this.#worker) this.#take(message);
      };
      worker.onmessageerror = () => this.#fail(worker, new Error("a message could not be read"));
      worker.onerror = (event) => {
        // Otherwise it would end the process.
        event.preventDefault();
        this.#fail(worker, event.error ?? new Error(event.message));
      };
      worker.postMessage({ type: "start", options: this.#folder, known: this.#digest });
      this.#pulse.start();
    } catch (error) {
      this.#replace("the worker that reads the rule files cannot be started", error);
    }
  }

  #take(message: FromWorker): void {
    switch (message.type) {
      case "load":
        this.#takePart(message.part);
        break;
      case "log":
        this.#logger[message.level](message.message, message.fields);
        break;
      case "alive":
        this.#pulse.noteAnswer();
        break;
      case "closed":
        this.#closed.resolve();
    }
  }

  #takePart(part: LoadPart): void {
    const load = this.#gatherer.take(part);
    // Parts that wait in line would be taken one after the other, and no call be answered in between.
    if (load === undefined) return this.#worker?.postMessage({ type: "taken" });
    if (this.#isClosed) return;
    this.#pulse.noteLoad();
    const isNews = this.#isAsked || !this.#isTakenOver || load.isUnchanged !== true;
    this.#isTakenOver = false;
    // Where nothing has changed, the next one would take as much memory, and so on without end.
    const isReplaced = part.kind === "end" && part.heapBytes > LARGE_HEAP_BYTES && load.isUnchanged !== true;
    // What was asked for during this load goes to the successor of its worker.
    if (!isReplaced) this.#isAsked = false;
    this.#digest = load.digest;
    try {
      if (isNews) this.#onLoad(load);
    } catch (error) {
      this.#logger.error("taking over the rule files failed, the rules before stay", { error });
    }
    if (isReplaced) this.#takeOver();
  }

  /** Starts another worker in the place of one that has done its work. */
  #takeOver(): void {
    this.#worker?.terminate();
    this.#pulse.stop();
    this.#isTakenOver = true;
    this.#start();
  }

  #fail(worker: WorkerLine, error: unknown): void {
    if (worker !== this.#worker) return;
    if (this.#isClosed) return this.#closed.resolve();
    this.#replace("the worker that reads the rule files failed", error);
  }

  #replace(what: string, error?: unknown): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#digest = undefined;
    this.#isTakenOver = false;
    this.#pulse.stop();
    if (this.#clock.now() - this.#startedAt >= STEADY_MS) this.#backoffMs = FIRST_BACKOFF_MS;
    const delayMs = this.#backoffMs;
    this.#backoffMs = Math.min(delayMs * 2, MAX_BACKOFF_MS);
    const text = `${what}; the rules in force stay, another one is started in ${delayMs / 1_000} s`;
    this.#logger.error(text, error === undefined ? {} : { error });
    this.#cancelRestart = this.#clock.after(delayMs, () => this.#start());
  }
}

function startReader(): WorkerLine {
  return new Worker(new URL("./file_provider_worker.ts", import.meta.url), {
    type: "module",
    name: "rule files",
  });
}
