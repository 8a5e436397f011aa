import { systemClock } from "../base/clock.ts";
import { portLogger } from "../base/port_logger.ts";
import { captureConsole } from "../base/standard_streams.ts";
import { createFileProvider } from "./file_provider.ts";
import type { FromWorker, RuleFolderOptions, ToWorker } from "./file_provider_message.ts";
import { partsOfLoad } from "./load_parts.ts";
import type { RulesLoad, RulesProvider } from "./provider.ts";

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
  let provider: RulesProvider | undefined;
  let sender: LoadSender | undefined;
  port.addEventListener("message", ({ data: message }) => {
    switch (message.type) {
      case "start": {
        const { options, known } = message;
        const loads = sender = new LoadSender(port, options, known);
        const tools = { clock: systemClock, logger: portLogger(port), known: () => loads.digest };
        provider = createFileProvider({ ...options, ...tools });
        provider.start((load) => {
          loads.send(load);
          return load.problems;
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
      case "close":
        void (provider?.close() ?? Promise.resolve()).then(() => port.postMessage({ type: "closed" }));
    }
  });
}

/** Sends loads one after the other, each part when the one before was taken. */
class LoadSender {
  /** Of what was sent last. */
  digest: string | undefined;
  readonly #port: WorkerPort;
  readonly #options: RuleFolderOptions;
  #sent: Promise<void> = Promise.resolve();
  #taken = () => {};

  constructor(port: WorkerPort, options: RuleFolderOptions, digest: string | undefined) {
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
    for (const part of partsOfLoad(load, this.#options)) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#taken = resolve;
      this.#port.postMessage({ type: "load", part });
      if (part.kind !== "end") await promise;
    }
  }
}

// A worker's module is the main module of its thread.
if (import.meta.main) {
  const port = globalThis as unknown as WorkerPort;
  captureConsole(portLogger(port));
  serveFileProvider(port);
}
