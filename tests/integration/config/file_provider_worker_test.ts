import { assertEquals } from "@std/assert";
import type { WorkerNotice } from "../../../src/base/supervised_worker.ts";
import type { FromRuleWorker, ToRuleWorker } from "../../../src/config/file_provider_message.ts";
import { serveFileProvider } from "../../../src/config/file_provider_worker.ts";
import { until } from "../../harness/until.ts";

type Listener = (event: MessageEvent<ToRuleWorker>) => void;

/** The port of a worker that runs in this thread. */
class Port {
  readonly sent: (FromRuleWorker | WorkerNotice)[] = [];
  #listener: Listener = () => {};

  addEventListener(_type: "message", listener: Listener): void {
    this.#listener = listener;
  }

  postMessage(message: FromRuleWorker | WorkerNotice): void {
    this.sent.push(message);
    if (message.type === "load" && message.part.kind !== "end") {
      queueMicrotask(() => this.tell({ type: "taken" }));
    }
  }

  tell(data: ToRuleWorker): void {
    this.#listener(new MessageEvent("message", { data }));
  }

  /** For each load that was not as the one before, whether the worker had a low priority. */
  get loads(): boolean[] {
    return this.sent.flatMap((message) => {
      if (message.type !== "load" || message.part.kind !== "end") return [];
      return message.part.rest.isUnchanged === true ? [] : message.part.isLower;
    });
  }
}

Deno.test("rule file worker: a reload of large files runs at a low priority; the first load and small ones do not", async () => {
  const folder = await Deno.makeTempDir();
  const port = new Port();
  let asked = 0;
  serveFileProvider(port, () => ++asked > 0);
  const options = {
    ...{ root: folder, subdirectory: "", appDirectory: "config" },
    ...{ ignoreDotFiles: false, watchRoot: false, mergeDomains: false },
  };
  const large = (comment: string) => `domain: d\ndescriptors: [] #${comment.padEnd(600_000)}\n`;
  try {
    await Deno.mkdir(`${folder}/config`);
    for (const text of [large("one"), "domain: d\n", large("two"), large("three")]) {
      const { length } = port.loads;
      // Renamed into place: an event during the write would cause a load of a part of it.
      await Deno.writeTextFile(`${folder}/next`, text);
      await Deno.rename(`${folder}/next`, `${folder}/config/a.yaml`);
      port.tell(length === 0 ? { type: "start", options, known: undefined } : { type: "reload" });
      await until("the load", () => port.loads.length > length);
    }
  } finally {
    port.tell({ type: "stop" });
    await until("the end", () => port.sent.some(({ type }) => type === "stopped"));
    await Deno.remove(folder, { recursive: true });
  }
  assertEquals([port.loads, asked], [[false, false, true, true], 1]);
});
