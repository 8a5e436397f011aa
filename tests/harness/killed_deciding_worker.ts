import type { DecidingWorkerPort } from "../../src/serve/workers/message.ts";
import { DecidingThread } from "../../src/serve/workers/deciding_thread.ts";

/** A message of a test to a worker, in addition to those of the main thread. */
export type FaultMessage =
  /** Throws outside every handler. */
  | { readonly type: "throw" }
  /** Blocks the thread for this time. */
  | { readonly type: "block"; readonly ms: number };

const port = globalThis as unknown as DecidingWorkerPort & {
  addEventListener(type: "message", listener: (event: MessageEvent<FaultMessage>) => void): void;
};

port.addEventListener("message", ({ data: message }: MessageEvent<FaultMessage>) => {
  if (message.type === "throw") setTimeout(() => thrown());
  if (message.type === "block") {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, message.ms);
  }
});

new DecidingThread(port);

function thrown(): never {
  throw new Error("the test ends this worker");
}
