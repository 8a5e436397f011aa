import { type FolderEventsPort, serveFolderEvents } from "../../src/base/folder_events_worker.ts";
import { serveFileProvider, type WorkerPort } from "../../src/config/file_provider_worker.ts";
import { serveWebhooks, type WebhookPort } from "../../src/webhooks/webhook_worker.ts";

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

/** What runs in a worker, by the end of its address. Each returns a function that ends what its port is used for. */
const PARTS: Readonly<Record<string, (port: Port) => () => void>> = {
  "/src/base/folder_events_worker.ts": (port) => serveFolderEvents(port satisfies FolderEventsPort),
  "/src/config/file_provider_worker.ts": (port) => {
    serveFileProvider(port satisfies WorkerPort);
    return () => port.take({ type: "close" });
  },
  "/src/webhooks/webhook_worker.ts": (port) => {
    serveWebhooks(port satisfies WebhookPort);
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
    this.#isEnding ||= ["close", "stop"].includes(message.type);
    this.#port.take(message);
  }

  terminate(): void {
    this.onmessage = null;
    if (!this.#isEnding) this.#end();
    this.#isEnding = true;
  }
}

/**
 * From now on the workers of services in this thread run in it: the start of a worker takes a fifth of a second of the
 * processor, which the tests of most services would spend for nothing. Not for tests of what workers are there for, such
 * as a file that holds up its thread. Workers with other modules are workers as before.
 */
export function runWorkersInThread(): void {
  const started = globalThis.Worker;
  const worker = function (address: string | URL, options?: WorkerOptions) {
    const [, start] = Object.entries(PARTS).find(([end]) => String(address).endsWith(end)) ?? [];
    return start === undefined ? new started(address, options) : new WorkerInThread(start);
  };
  Reflect.set(globalThis, "Worker", worker);
}
