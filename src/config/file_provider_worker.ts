import { systemClock } from "../base/clock.ts";
import { portLogger } from "../base/port_logger.ts";
import { captureConsole } from "../base/standard_streams.ts";
import { createFileProvider } from "./file_provider.ts";
import type { FromWorker, ToWorker } from "./file_provider_message.ts";
import { partsOfLoad } from "./load_parts.ts";
import type { RulesLoad, RulesProvider } from "./provider.ts";
import type { Problem } from "../ratelimit/rule_source.ts";

/** The worker's side of its line to the main thread. */
export interface WorkerPort {
  postMessage(message: FromWorker): void;
  addEventListener(type: "message", listener: (event: MessageEvent<ToWorker>) => void): void;
}

/**
 * Serves rules from files over the port: what the file provider loads and logs is sent to the main
 * thread, which is told of a load that changes nothing without its rules. What becomes of a load there is
 * of no concern here.
 */
export function serveFileProvider(port: WorkerPort): void {
  const sender = new LoadSender(port);
  let provider: RulesProvider | undefined;
  port.addEventListener("message", ({ data: message }) => {
    switch (message.type) {
      case "start":
        provider = createFileProvider({ ...message.options, clock: systemClock, logger: portLogger(port) });
        provider.start((load) => {
          sender.send(load);
          return load.problems;
        });
        break;
      case "reload":
        provider?.reload();
        break;
      case "taken":
        sender.noteTaken();
        break;
      case "ping":
        port.postMessage({ type: "alive" });
        break;
      case "close":
        void (provider?.close() ?? Promise.resolve()).then(() => port.postMessage({ type: "closed" }));
    }
  });
}

/** Sends loads one after the other, each part when the one before was taken. */
class LoadSender {
  readonly #port: WorkerPort;
  #last: RulesLoad | undefined;
  #sent: Promise<void> = Promise.resolve();
  #taken = () => {};

  constructor(port: WorkerPort) {
    this.#port = port;
  }

  send(load: RulesLoad): void {
    const told = isSame(load, this.#last) ? UNCHANGED : load;
    this.#last = load;
    this.#sent = this.#sent.then(() => this.#sendParts(told));
  }

  noteTaken(): void {
    this.#taken();
  }

  async #sendParts(load: RulesLoad): Promise<void> {
    for (const part of partsOfLoad(load)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#taken = resolve;
      this.#port.postMessage({ type: "load", part });
      if (part.kind !== "end") await promise;
    }
  }
}

const UNCHANGED: RulesLoad = { sources: [], problems: [], version: "", isUnchanged: true };

/** Whether a load brings nothing new; a file that was not read again has the source that it had. */
function isSame(load: RulesLoad, before: RulesLoad | undefined): boolean {
  if (before?.sources === undefined || load.sources === undefined) return false;
  const { sources, problems } = before;
  return load.sources.length === sources.length && load.problems.length === problems.length &&
    load.sources.every((source, index) => source === sources[index]) &&
    load.problems.every((problem, index) => isEqual(problem, problems[index]));
}

function isEqual(a: Problem, b: Problem | undefined): boolean {
  return a.severity === b?.severity && a.at === b.at && a.path === b.path && a.text === b.text;
}

// A worker's module is the main module of its thread.
if (import.meta.main) {
  const port = globalThis as unknown as WorkerPort;
  captureConsole(portLogger(port));
  serveFileProvider(port);
}
