import { type RuleWorkerPort, serveFileProvider } from "../../src/config/file_provider_worker.ts";
import type { WebhookWorkerPort } from "../../src/webhooks/service/message.ts";
import { serveWebhooks } from "../../src/webhooks/service/worker.ts";

type Listener = (event: MessageEvent) => void;

/** The worker's side of a line within one thread. */
class Port {
  readonly #worker: WorkerInThread;
  #listener: Listener = () => {};

  constructor(worker: WorkerInThread) {
    this.#worker = worker;
  }

  postMessage(message: unknown): void {
    const event = new MessageEvent("message", { data: structuredClone(message) });
    queueMicrotask(() => this.#worker.onmessage?.(event));
  }

  addEventListener(_type: "message", listener: Listener): void {
    this.#listener = listener;
  }

  /** Takes a message to the worker. */
  take(message: unknown): void {
    const event = new MessageEvent("message", { data: structuredClone(message) });
    queueMicrotask(() => this.#listener(event));
  }
}

/** The workers, by the end of their address. Each returns a function that closes its port. */
const PARTS: Readonly<Record<string, (port: Port) => () => void>> = {
  "/src/config/file_provider_worker.ts": (port) => {
    serveFileProvider(port satisfies RuleWorkerPort, () => false);
    return () => port.take({ type: "stop" });
  },
  "/src/webhooks/service/worker.ts": (port) => {
    serveWebhooks(port satisfies WebhookWorkerPort);
    return () => port.take({ type: "stop", graceMs: 0 });
  },
};

class WorkerInThread {
  onmessage: Listener | null = null;
  onmessageerror: Listener | null = null;
  onerror: ((event: ErrorEvent) => void) | null = null;
  readonly #port = new Port(this);
  readonly #end: () => void;
  #isEnding = false;

  constructor(start: (port: Port) => () => void) {
    this.#end = start(this.#port);
  }

  postMessage(message: { readonly type: string }): void {
    this.#isEnding ||= message.type === "stop";
    this.#port.take(message);
  }

  terminate(): void {
    this.onmessage = null;
    if (!this.#isEnding) this.#end();
    this.#isEnding = true;
  }
}

/**
 * From now on services in this thread read rule files, and serve webhooks, in it and not in a worker: loading the modules of
 * such a worker takes a quarter of a second of the processor for each service. Folders are watched by workers as before.
 * Not for tests of what these workers are there for, such as a file that holds up its thread.
 */
export function runWorkersInThread(): void {
  const started = globalThis.Worker;
  const worker = function (address: string | URL, options?: WorkerOptions) {
    const [, start] = Object.entries(PARTS).find(([end]) => String(address).endsWith(end)) ?? [];
    return start === undefined ? new started(address, options) : new WorkerInThread(start);
  };
  Reflect.set(globalThis, "Worker", worker);
}
