import type { FromRuleWorker, ToRuleWorker } from "../../../src/config/file_provider_message.ts";
import type { WorkerNotice } from "../../../src/base/supervised_worker.ts";
import type { RuleWorkerHandle } from "../../../src/config/file_provider_supervisor.ts";

/** A worker that loads nothing of its own: a test says what it tells, and sees what it was told. */
export class RuleWorkerDouble implements RuleWorkerHandle {
  /** The kinds of message that it was told. */
  readonly told: ToRuleWorker["type"][] = [];
  isTerminated = false;
  /** The digest of what was loaded when it was started. */
  known: string | undefined;
  /** Whether it answers pings and closes when it is told to. */
  isAlive = true;
  onmessage: RuleWorkerHandle["onmessage"] = null;
  onmessageerror: RuleWorkerHandle["onmessageerror"] = null;
  onerror: RuleWorkerHandle["onerror"] = null;

  postMessage(message: ToRuleWorker): void {
    this.told.push(message.type);
    if (message.type === "start") this.known = message.known;
    if (!this.isAlive) return;
    if (message.type === "ping") this.tell({ type: "alive" });
    if (message.type === "stop") this.tell({ type: "stopped" });
  }

  terminate(): void {
    this.isTerminated = true;
  }

  /** Tells the main thread something. */
  tell(message: FromRuleWorker | WorkerNotice): void {
    this.onmessage?.(new MessageEvent("message", { data: message }));
  }

  /** Fails as a worker does; answers whether the process would have ended by it. */
  fail(message: string): boolean {
    const event = new ErrorEvent("error", { message, error: new Error(message), cancelable: true });
    this.onerror?.(event);
    return !event.defaultPrevented;
  }
}
