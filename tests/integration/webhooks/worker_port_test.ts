import { assertEquals } from "#assert";
import { join } from "node:path";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { SERVICE_OPTIONS } from "../../harness/store_service.ts";
import { until } from "../../harness/until.ts";
import {
  type WebhookWorkerHandle,
  WebhookWorkerSupervisor,
} from "../../../src/webhooks/service/supervisor.ts";
import type { ToWebhookWorker, WebhookOptions } from "../../../src/webhooks/service/message.ts";
import { serveWebhooks } from "../../../src/webhooks/service/worker.ts";

/** A worker in this thread, whose metrics wait for the store. */
function workerWaitingForStore(store: Promise<undefined>, onMessage: () => void): WebhookWorkerHandle {
  let take = (_: MessageEvent<ToWebhookWorker>) => {};
  const worker: WebhookWorkerHandle = {
    onmessage: null,
    onmessageerror: null,
    onerror: null,
    postMessage: (data) => queueMicrotask(() => take(new MessageEvent("message", { data }))),
    terminate: () => worker.postMessage({ type: "stop", graceMs: 0 }),
  };
  serveWebhooks({
    postMessage(data) {
      worker.onmessage?.(new MessageEvent("message", { data }));
      onMessage();
    },
    addEventListener: (_, listener) => void (take = listener),
  }, () => ({ parts: { noteOfSecrets: () => store } }));
  return worker;
}

function optionsOf(folder: string): WebhookOptions {
  return { ...SERVICE_OPTIONS, encryptionKeys: [], store: { kind: "file", path: join(folder, "weir.db") } };
}

Deno.test("a worker whose store answers late is not taken for silent", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_worker_" });
  const [clock, log, store] = [new FakeClock(), new RecordedLogger(), Promise.withResolvers<undefined>()];
  let [workers, messages] = [0, 0];
  const options = optionsOf(folder);
  const supervisor = new WebhookWorkerSupervisor({
    options,
    clock,
    logger: log,
    random: () => 0,
    onHealth: () => {},
    onMetrics: () => {},
    limit: () => Promise.resolve({ code: "OK" }),
    createWorker() {
      workers++;
      return workerWaitingForStore(store.promise, () => messages++);
    },
  });
  supervisor.start();
  await supervisor.ready;
  for (let beats = 0; beats < 28; beats += 14) {
    const before = messages;
    await until("a message", () => messages > before);
    for (let beat = 0; beat < 14; beat++) clock.advance(1_000);
  }
  assertEquals(workers, 1);
  store.resolve(undefined);
  await supervisor.stop(0);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a worker that is stopped while it opens leaves no timer", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_worker_" });
  const stopped = Promise.withResolvers<void>();
  let take = (_: MessageEvent<ToWebhookWorker>) => {};
  const post = (data: ToWebhookWorker) => take(new MessageEvent("message", { data }));
  serveWebhooks({
    postMessage: ({ type }) => type === "stopped" && stopped.resolve(),
    addEventListener: (_, listener) => void (take = listener),
  }, () => {
    queueMicrotask(() => post({ type: "stop", graceMs: 0 }));
    return {};
  });
  post({ type: "start", options: optionsOf(folder) });
  await stopped.promise;
  await Deno.remove(folder, { recursive: true });
});
