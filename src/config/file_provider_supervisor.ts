import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Problem } from "../base/problem.ts";
import { SupervisedWorker } from "../threads/supervised_worker.ts";
import type { FromRuleWorker, RuleFolderOptions, ToRuleWorker } from "./file_provider_worker.ts";
import { LoadGatherer, type LoadPart } from "./load_parts.ts";
import type { LoadReceiver, RulesLoad, RulesProvider } from "./provider.ts";
import type { RuleWorkerHandle } from "./rule_worker.ts";

/** Options of `createWorkerFileProvider`. */
interface WorkerFileProviderOptions extends RuleFolderOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** True if loads contain their rules for other threads. */
  readonly keepsTexts?: boolean;
  readonly createWorker: () => RuleWorkerHandle;
}

/** More than the worker waits for a file system that hangs. */
const STOP_TIMEOUT_MS = 2_000;
/** A worker that has taken this much memory to read files is replaced: nothing else returns it. */
const LARGE_HEAP_BYTES = 128 * 1_024 * 1_024;
const HEARTBEAT_MS = 10_000;
const LOAD_TIMEOUT_MS = 60_000;
const MAX_PATIENCE = 60;
const LOAD = "load of the rules";

/**
 * Rules from files that are read in a Web Worker: a watched file may block its thread for good (a named pipe does so on
 * this platform), and reading large files takes seconds.
 */
export function createWorkerFileProvider(options: WorkerFileProviderOptions): RulesProvider {
  return new WorkerFileProvider(options);
}

class WorkerFileProvider implements RulesProvider {
  readonly #worker: SupervisedWorker<ToRuleWorker, FromRuleWorker>;
  readonly #logger: Logger;
  readonly #folder: string;
  readonly #keepsTexts: boolean;
  #onLoad: LoadReceiver = ({ problems }) => Promise.resolve(problems);
  #gatherer: LoadGatherer;
  /** Of the last load, so that the next worker does not read the same again. */
  #digest: string | undefined;
  /** A successor of a large worker; its first load is reported only if it has changes. */
  #isSuccessor = false;
  /** Why a load is awaited, if one is: a worker begins with one. */
  #awaited: "start" | "reload" | undefined;
  #isClosed = false;

  constructor(options: WorkerFileProviderOptions) {
    const { clock, logger, createWorker, keepsTexts = false, ...folder } = options;
    this.#logger = logger;
    this.#folder = join(folder.root, folder.subdirectory, folder.appDirectory);
    this.#keepsTexts = keepsTexts;
    this.#gatherer = new LoadGatherer({ keepsTexts });
    this.#worker = new SupervisedWorker({
      name: "Rule file worker",
      meanwhile: "keeping the current rules",
      clock,
      logger,
      createWorker,
      startMessage: () => {
        this.#gatherer = new LoadGatherer({ keepsTexts: this.#keepsTexts });
        this.#expectLoad("start");
        return { type: "start", options: folder, known: this.#digest };
      },
      onMessage: ({ part }) => this.#takePart(part),
      onFailure: (reason) => {
        this.#digest = undefined;
        this.#isSuccessor = false;
        this.#failLoad(reason);
      },
      ping: { type: "ping" },
      heartbeatMs: HEARTBEAT_MS,
      maxPatience: MAX_PATIENCE,
    });
  }

  start(onLoad: LoadReceiver): void {
    this.#onLoad = onLoad;
    this.#worker.start();
  }

  reload(): void {
    // The next worker begins with a load anyway.
    if (this.#isClosed || !this.#worker.isRunning) return;
    this.#expectLoad("reload");
    this.#worker.post({ type: "reload" });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker.stop({ type: "stop" }, STOP_TIMEOUT_MS);
  }

  #takePart(part: LoadPart): void {
    const load = this.#gatherer.take(part);
    // Parts are requested one by one, so that calls are answered in between.
    if (load === undefined) return this.#worker.post({ type: "taken" });
    if (this.#isClosed) return;
    this.#worker.settle(LOAD);
    const isNews = this.#awaited === "reload" || !this.#isSuccessor || load.isUnchanged !== true;
    this.#isSuccessor = false;
    const isSpent = part.kind === "end" && (part.heapBytes > LARGE_HEAP_BYTES || part.isLower);
    // Where nothing has changed, the next one would take as much memory, and so on without end.
    const isReplaced = isSpent && load.isUnchanged !== true;
    // A reload that was requested during this load is left to the successor.
    if (!isReplaced) this.#awaited = undefined;
    this.#digest = load.digest;
    if (isNews) void this.#apply(load);
    if (!isReplaced) return;
    this.#isSuccessor = true;
    this.#worker.start();
  }

  #expectLoad(reason: "start" | "reload"): void {
    if (this.#awaited !== "reload") this.#awaited = reason;
    this.#worker.expect(LOAD, LOAD_TIMEOUT_MS);
  }

  /** The next worker loads again. */
  #failLoad(reason: string): void {
    if (this.#awaited === undefined) return;
    const text = `Cannot load the rule files: ${reason}`;
    const problem: Problem = { severity: "error", at: this.#folder, path: "", text };
    void this.#apply({ sources: undefined, problems: [problem], version: "" });
  }

  async #apply(load: RulesLoad): Promise<void> {
    try {
      await this.#onLoad(load);
    } catch (error) {
      this.#logger.error("Cannot apply the rule files; keeping the current rules", { error });
    }
  }
}
