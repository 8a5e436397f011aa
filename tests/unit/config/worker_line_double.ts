import type { FromWorker, ToWorker } from "../../../src/config/file_provider_message.ts";
import type { WorkerLine } from "../../../src/config/worker_file_provider.ts";

/** A worker that loads nothing of its own: a test says what it tells, and sees what it was told. */
export class WorkerLineDouble implements WorkerLine {
  /** The kinds of message that it was told. */
  readonly told: ToWorker["type"][] = [];
  isTerminated = false;
  /** The digest of what was loaded when it was started. */
  known: string | undefined;
  /** Whether it answers pings and closes when it is told to. */
  isAlive = true;
  onmessage: WorkerLine["onmessage"] = null;
  onmessageerror: WorkerLine["onmessageerror"] = null;
  onerror: WorkerLine["onerror"] = null;

  postMessage(message: ToWorker): void {
    this.told.push(message.type);
    if (message.type === "start") this.known = message.known;
    if (!this.isAlive) return;
    if (message.type === "ping") this.tell({ type: "alive" });
    if (message.type === "close") this.tell({ type: "closed" });
  }

  terminate(): void {
    this.isTerminated = true;
  }

  /** Tells the main thread something. */
  tell(message: FromWorker): void {
    this.onmessage?.(new MessageEvent("message", { data: message }));
  }

  /** Fails as a worker does; answers whether the process would have ended by it. */
  fail(message: string): boolean {
    const event = new ErrorEvent("error", { message, error: new Error(message), cancelable: true });
    this.onerror?.(event);
    return !event.defaultPrevented;
  }
}
