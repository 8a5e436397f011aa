import { ADMINISTRATOR } from "../../harness/administrators.ts";
import { assertEquals } from "#assert";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import type { WebhookAnswer } from "../../../src/webhooks/api/calls.ts";
import type { WebhookMetrics } from "../../../src/webhooks/service/metrics.ts";
import {
  type WebhookWorkerHandle,
  WebhookWorkerSupervisor,
} from "../../../src/webhooks/service/supervisor.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { SERVICE_OPTIONS } from "../../harness/store_service.ts";
import { eventually, until } from "../../harness/until.ts";
import { ECHO_WORKFLOW, WebhookFolder } from "../../harness/webhook_weir.ts";
import { sha256 } from "../../harness/webhook_service_fixture.ts";

class ThreadBed implements AsyncDisposable {
  readonly log = new RecordedLogger();
  readonly health: [boolean, string][] = [];
  readonly metrics: WebhookMetrics[] = [];
  readonly asked: unknown[] = [];
  readonly thread: WebhookWorkerSupervisor;
  #worker: WebhookWorkerHandle | undefined;

  constructor(folder: WebhookFolder) {
    this.thread = new WebhookWorkerSupervisor({
      options: {
        ...SERVICE_OPTIONS,
        encryptionKeys: [],
        workflowDirectory: join(folder.path, "workflows"),
        store: { kind: "file", path: folder.store },
      },
      limit: (domain, descriptors) => {
        this.asked.push([domain, descriptors]);
        return Promise.resolve({ code: "OVER_LIMIT", resetMs: 3_000 });
      },
      clock: systemClock,
      random: () => 0,
      logger: this.log,
      onHealth: (healthy, reason) => void this.health.push([healthy, reason]),
      onMetrics: (metrics) => void this.metrics.push(metrics),
      createWorker: () => {
        const url = new URL("../../../src/webhooks/service/worker.ts", import.meta.url);
        return this.#worker = new Worker(url, { type: "module" });
      },
    });
    this.thread.start();
  }

  /** Waits until the worker answers: `ready` waits no longer than a start may be held up. */
  async working(): Promise<void> {
    await this.thread.ready;
    await until("the worker", () => this.health.at(-1)?.[0] === true);
  }

  /** Ends the worker in the midst of its work. */
  kill(): void {
    this.#worker?.terminate();
    this.#worker?.onerror?.(new ErrorEvent("error", { message: "it was killed" }));
  }

  async administer(
    method: string,
    path: string,
    body?: object,
  ): Promise<{ status: number; body: { key: string } }> {
    const call = { requestId: "r", administrator: ADMINISTRATOR, method, path, query: "" };
    return read(
      await this.thread.administer(body === undefined ? call : { ...call, body: JSON.stringify(body) }),
    );
  }

  async trigger(key: string, idempotencyKey: string) {
    const call = { requestId: "r", name: "echo", keyHash: sha256(key), idempotencyKey, body: "{}" };
    return read(await this.thread.acceptTrigger(call));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.thread.stop(60_000);
  }
}

function read({ status, body }: WebhookAnswer) {
  return { status, body: body === "" ? undefined : JSON.parse(body) };
}

Deno.test("webhook worker: it is killed, triggers are 503, then all goes on", async () => {
  await using folder = await WebhookFolder.make({ "echo.yaml": ECHO_WORKFLOW });
  await using bed = new ThreadBed(folder);
  await bed.working();
  const { body: { key } } = await bed.administer("POST", "/triggers", { name: "echo", workflow: "echo" });
  const first = await bed.trigger(key, "k");
  assertEquals(first.status, 202);
  bed.kill();
  assertEquals((await bed.trigger(key, "k")).status, 503);
  assertEquals(bed.health.at(-1), [false, "it was killed"]);
  const again = await until("the next worker", async () => {
    const answer = await bed.trigger(key, "k");
    return answer.status === 202 && answer;
  });
  assertEquals(again, first);
  // The lock of the one that was killed is free, so the work goes on as well.
  await until("the work", () => bed.metrics.at(-1)?.gauges["is_dispatcher"] === 1);
  await eventually([true, ""], () => bed.health.at(-1));
});

Deno.test("webhook worker: a limit is decided by the main thread", async () => {
  await using folder = await WebhookFolder.make();
  await using bed = new ThreadBed(folder);
  await bed.working();
  const limit = { domain: "edge", descriptors: [{ a: "b" }] };
  const { body: { key } } = await bed.administer("POST", "/triggers", {
    name: "echo",
    workflow: "echo",
    limit,
  });
  assertEquals((await bed.trigger(key, "k")).status, 429);
  assertEquals(bed.asked, [["edge", [[["a", "b"]]]]]);
});

Deno.test("webhook worker: a store that cannot be opened is reported, and tried again", async () => {
  await using folder = await WebhookFolder.make();
  await Deno.mkdir(folder.store);
  await using bed = new ThreadBed(folder);
  const told = () => bed.health.filter(([, reason]) => reason.includes(`"${folder.store}"`)).length;
  await until("two failures", () => told() >= 2);
  await Deno.remove(folder.store);
  // It was ready with its first failure: a store that is unavailable holds up no start.
  await bed.thread.ready;
  await until("the service", () => bed.health.at(-1)?.[0] === true);
  assertEquals(bed.health.at(-1), [true, ""]);
});
