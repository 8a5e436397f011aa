import type { WebhookWorkerPort } from "../../src/webhooks/service/message.ts";
import { serveWebhooks } from "../../src/webhooks/service/worker.ts";
import { FakeClock, shiftWallClock } from "./fake_clock.ts";
import { type KillPoint, STOPPING, type WebhookFaults } from "./webhook_faults.ts";

/** A message of a test to the worker, in addition to those of the main thread. */
export type FaultMessage =
  | { readonly type: "faults"; readonly faults: WebhookFaults }
  /** Throws outside of every handler. */
  | { readonly type: "throw" }
  /** Skips some time of the work, where the faults say that it may be skipped. */
  | { readonly type: "hurry"; readonly ms: number };

const port = globalThis as unknown as WebhookWorkerPort & {
  addEventListener(type: "message", listener: (event: MessageEvent<FaultMessage>) => void): void;
};
let faults: WebhookFaults = {};
/** Time that it may take until all threads of a process are stopped: a machine with others on it takes its time. */
const STOP_REACHES_ALL_MS = 2_000;
const clock = FakeClock.ofMachine();
const times = { kill: 0, stop: 0 };

// Comes before the message that starts the service.
port.addEventListener("message", ({ data: message }: MessageEvent<FaultMessage>) => {
  if (message.type === "faults") take(message.faults);
  if (message.type === "hurry") clock.advance(message.ms);
  if (message.type === "throw") setTimeout(() => thrown());
});

serveWebhooks(port, () => ({
  parts: {
    ...(faults.isHurried === true ? { clock } : {}),
    atAttempt: (when, step) => pass(`${when} ${step}`),
    atStep: (point) => pass(`execution ${point}`),
  },
  pragmas: faults.pragmas,
}));

function take(told: WebhookFaults): void {
  faults = told;
  shiftWallClock(told.wallAheadMs);
}

function pass(point: KillPoint): void {
  const { kill, stop } = faults;
  if (stop?.at === point && ++times.stop === stop.nth) {
    console.error(STOPPING);
    Deno.kill(Deno.pid, "SIGSTOP");
    // Another thread may take the signal, and this one would go on until it is notified.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STOP_REACHES_ALL_MS);
  }
  if (kill?.at === point && ++times.kill >= kill.nth) Deno.kill(Deno.pid, "SIGKILL");
}

function thrown(): never {
  throw new Error("the test ends this worker");
}
