import type { WorkerHandle } from "../threads/supervised_worker.ts";
import type { FromRuleWorker, ToRuleWorker } from "./file_provider_worker.ts";

/** The supervisor's side of the connection to a worker that reads rule files. */
export type RuleWorkerHandle = WorkerHandle<ToRuleWorker, FromRuleWorker>;

/** Starts the worker that reads rule files. */
export function createRuleWorker(): RuleWorkerHandle {
  return new Worker(new URL("./file_provider_worker.ts", import.meta.url), {
    type: "module",
    name: "rule files",
  });
}

/** Starts the worker that reads rule files early, so that it loads its modules before anyone supervises it. */
export class EarlyRuleWorker {
  readonly #createWorker: () => RuleWorkerHandle;
  #early: RuleWorkerHandle | undefined;

  constructor(createWorker = createRuleWorker) {
    this.#createWorker = createWorker;
  }

  start(): void {
    try {
      const worker = this.#early = this.#createWorker();
      worker.onerror = (event) => {
        // Otherwise it would end the process. The supervisor reports why the next one fails.
        event.preventDefault();
        this.#early = undefined;
      };
    } catch {
      // The supervisor tries again, and reports the failure.
    }
  }

  /** Returns the early worker at the first call if it runs, and starts another one otherwise. */
  take(): RuleWorkerHandle {
    const worker = this.#early ?? this.#createWorker();
    this.#early = undefined;
    return worker;
  }

  /** Ends the early worker if it was not taken. */
  close(): void {
    this.#early?.terminate();
    this.#early = undefined;
  }
}
