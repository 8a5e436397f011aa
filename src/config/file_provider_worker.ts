import { systemBell } from "../threads/bell.ts";
import { systemClock } from "../base/clock.ts";
import { portLogger } from "../base/log.ts";
import { captureConsole } from "../base/standard_streams.ts";
import { lowerPriority } from "../threads/thread_priority.ts";
import { createFileProvider, type RuleFolder } from "./file_provider.ts";
import type { CompileOptions } from "../ratelimit/rules/compile_rules.ts";
import type { SourceChecks } from "../ratelimit/rules/rule_check.ts";
import { type LoadPart, partsOfLoad } from "./load_parts.ts";
import type { RulesLoad, RulesProvider } from "./provider.ts";
import type { WorkerPort } from "../threads/supervised_worker.ts";

/** A folder of rule files, and the checks and the compilation of its rules. */
export type RuleFolderOptions = RuleFolder & SourceChecks & CompileOptions;

/** A message to the worker that reads rule files. `start` comes first and once. */
export type ToRuleWorker =
  | { readonly type: "start"; readonly options: RuleFolderOptions; readonly known: string | undefined }
  | { readonly type: "reload" }
  /** A part of a load that was not its last was taken; the next one may come. */
  | { readonly type: "taken" }
  | { readonly type: "ping" }
  | { readonly type: "stop" };

/** A message of that worker, in addition to those of every worker. */
export type FromRuleWorker = { readonly type: "load"; readonly part: LoadPart };

/** The worker's side of its connection. */
export type RuleWorkerPort = WorkerPort<ToRuleWorker, FromRuleWorker>;

/**
 * Reads rule files and sends what it loads and logs over the port; a load without changes is sent without its rules.
 * `lowerPriority` is called before a reload that takes long, and returns whether it did.
 */
export function serveFileProvider(port: RuleWorkerPort, lowerPriority: () => boolean): void {
  let provider: RulesProvider | undefined;
  let sender: LoadSender | undefined;
  port.addEventListener("message", ({ data: message }) => {
    switch (message.type) {
      case "start": {
        const { options, known } = message;
        const loads = sender = new LoadSender(port, options, known);
        provider = createFileProvider({
          ...options,
          known: () => loads.digest,
          beforeLargeReload: () => void (loads.isLower ||= lowerPriority()),
          bell: systemBell,
          clock: systemClock,
          logger: portLogger(port),
        });
        provider.start((load) => {
          loads.send(load);
          return Promise.resolve(load.problems);
        });
        break;
      }
      case "reload":
        provider?.reload();
        break;
      case "taken":
        sender?.noteTaken();
        break;
      case "ping":
        port.postMessage({ type: "alive" });
        break;
      case "stop":
        void (provider?.close() ?? Promise.resolve()).then(() => port.postMessage({ type: "stopped" }));
    }
  });
}

/** Sends loads one after the other, each part once the previous one was taken. */
class LoadSender {
  /** Of the last load. */
  digest: string | undefined;
  /** True if this thread has a low priority. */
  isLower = false;
  readonly #port: RuleWorkerPort;
  readonly #options: RuleFolderOptions;
  #sent: Promise<void> = Promise.resolve();
  #taken = () => {};

  constructor(port: RuleWorkerPort, options: RuleFolderOptions, digest: string | undefined) {
    this.#port = port;
    this.#options = options;
    this.digest = digest;
  }

  send(load: RulesLoad): void {
    this.digest = load.digest;
    this.#sent = this.#sent.then(() => this.#sendParts(load));
  }

  noteTaken(): void {
    this.#taken();
  }

  async #sendParts(load: RulesLoad): Promise<void> {
    const { isLower } = this;
    for (const part of partsOfLoad(load, { ...this.#options, isLower })) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#taken = resolve;
      this.#port.postMessage({ type: "load", part });
      if (part.kind !== "end") await promise;
    }
  }
}

// A worker's module is the main module of its thread.
if (import.meta.main) {
  const port = globalThis as unknown as RuleWorkerPort;
  captureConsole(portLogger(port));
  // Calls go on during a reload, and the supervisor replaces this worker after it.
  serveFileProvider(port, lowerPriority);
}
