import { assertEquals } from "#assert";
import type { FromDecidingWorker, WorkerCommand } from "../../../src/serve/workers/message.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { until } from "../../harness/until.ts";

Deno.test("deciding thread: reports from its opening on, while the service waits for its first rules", async () => {
  const module = import.meta.resolve("../../../src/serve/workers/deciding_thread.ts");
  const worker = new Worker(module, { type: "module" });
  const reports: FromDecidingWorker[] = [];
  worker.onmessage = ({ data }: MessageEvent<FromDecidingWorker>) => {
    if (data.type === "report") reports.push(data);
  };
  const { settings } = readSettings({ BACKEND_TYPE: "mc", MC_HOST_PORT: "127.0.0.1:1", WORKERS: "2" });
  const start: WorkerCommand = {
    type: "start",
    settings,
    version: "1",
    secretFiles: undefined,
    spanProtocol: undefined,
  };
  worker.postMessage({ ...start, id: 1 });
  await until("two reports", () => reports.length >= 2);
  worker.terminate();
  assertEquals(reports.map(({ type }) => type).slice(0, 2), ["report", "report"]);
});
