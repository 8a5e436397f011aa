import { systemClock } from "../base/clock.ts";
import type { LogFields, Logger } from "../base/log.ts";
import { createFileProvider } from "./file_provider.ts";
import type { FromWorker, LogLevel, ToWorker } from "./file_provider_message.ts";
import type { RulesProvider } from "./provider.ts";

/** The worker's side of its line to the main thread. */
export interface WorkerPort {
  postMessage(message: FromWorker): void;
  addEventListener(type: "message", listener: (event: MessageEvent<ToWorker>) => void): void;
}

/**
 * Serves rules from files over the port: what the file provider loads and logs is sent to the main
 * thread. What becomes of a load there is of no concern here.
 */
export function serveFileProvider(port: WorkerPort): void {
  let provider: RulesProvider | undefined;
  port.addEventListener("message", ({ data: message }) => {
    switch (message.type) {
      case "start":
        provider = createFileProvider({ ...message.options, clock: systemClock, logger: portLogger(port) });
        provider.start((load) => {
          port.postMessage({ type: "load", load });
          return load.problems;
        });
        break;
      case "reload":
        provider?.reload();
        break;
      case "ping":
        port.postMessage({ type: "alive" });
        break;
      case "close":
        void (provider?.close() ?? Promise.resolve()).then(() => port.postMessage({ type: "closed" }));
    }
  });
}

/** Sends every line to the main thread, whose logger knows which of them are wanted. */
function portLogger(port: WorkerPort): Logger {
  const log = (level: LogLevel) => (message: string, fields: LogFields = {}) => {
    port.postMessage({ type: "log", level, message, fields });
  };
  return { debug: log("debug"), info: log("info"), warning: log("warning"), error: log("error") };
}

// A worker's module is the main module of its thread.
if (import.meta.main) serveFileProvider(globalThis as unknown as WorkerPort);
