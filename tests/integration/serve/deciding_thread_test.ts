import { assertEquals } from "#assert";
import { createCells } from "../../../src/cache/shared_cells.ts";
import type { DecidingWorkerPort, ToDecidingWorker } from "../../../src/serve/workers/message.ts";
import { serveDecisions } from "../../../src/serve/workers/worker.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { until } from "../../harness/until.ts";

/** The thread's side of a connection whose other side is the test's. */
class Port implements DecidingWorkerPort {
  readonly sent: string[] = [];
  #listener: (event: MessageEvent<ToDecidingWorker>) => void = () => {};

  postMessage({ type }: { readonly type: string }): void {
    this.sent.push(type);
  }
  addEventListener(_type: "message", listener: (event: MessageEvent<ToDecidingWorker>) => void): void {
    this.#listener = listener;
  }
  /** Sends a message and waits for one of this kind. */
  async tell(message: ToDecidingWorker, answer: string): Promise<void> {
    this.#listener(new MessageEvent("message", { data: message }));
    await until(`"${answer}"`, () => this.sent.includes(answer));
  }
}

Deno.test("deciding thread: reports from its opening on, while the service waits for its first rules", async () => {
  const port = new Port();
  serveDecisions(port);
  const { settings } = readSettings({ BACKEND_TYPE: "memory", WORKERS: "2" });
  await port.tell({ type: "start", settings, version: "1", cells: createCells() }, "opened");
  assertEquals(port.sent.slice(port.sent.indexOf("opened")).slice(0, 2), ["opened", "report"]);
  await port.tell({ type: "stop", graceMs: 0 }, "stopped");
});
