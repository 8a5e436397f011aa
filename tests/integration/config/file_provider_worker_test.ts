import { assertEquals } from "#assert";
import { systemClock } from "../../../src/base/clock.ts";
import type { WorkerNotice } from "../../../src/threads/supervised_worker.ts";
import { createWorkerFileProvider } from "../../../src/config/file_provider_supervisor.ts";
import { createRuleWorker } from "../../../src/config/rule_worker.ts";
import {
  type FromRuleWorker,
  serveFileProvider,
  type ToRuleWorker,
} from "../../../src/config/file_provider_worker.ts";
import type { RulesLoad } from "../../../src/config/provider.ts";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import { compileRules } from "../../../src/ratelimit/rules/compile_rules.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { eventually, until } from "../../harness/until.ts";

type Listener = (event: MessageEvent<ToRuleWorker>) => void;

const OPTIONS = { subdirectory: "", ignoreDotFiles: false, watchRoot: false };

/** Runs with a folder that is alone in its folder, since that is watched too. */
async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const top = await Deno.realPath(await Deno.makeTempDir());
  try {
    await Deno.mkdir(`${top}/root`);
    await run(`${top}/root`);
  } finally {
    await Deno.remove(top, { recursive: true });
  }
}

Deno.test("rule file worker: loads come over as rules, those that bring nothing new without them, and its log", () =>
  inFolder(async (root) => {
    const logger = new RecordedLogger();
    const loads: RulesLoad[] = [];
    // Events may come in pairs, of which the second finds nothing new.
    const news = () => loads.findLast(({ isUnchanged }) => isUnchanged !== true);
    const options = { ...OPTIONS, root, appDirectory: "", watchRoot: true };
    const provider = createWorkerFileProvider({
      ...options,
      clock: systemClock,
      logger,
      createWorker: createRuleWorker,
    });
    const path = `${root}/a.yaml`;
    await Deno.writeTextFile(path, "domain: d\ndescriptors:\n- key: k\n  shadow_mode: 1\n- key: k\n");
    provider.start((load) => {
      loads.push(load);
      return Promise.resolve(load.problems);
    });
    try {
      await until("the first load", () => loads.length === 1);
      assertEquals([loads[0]?.rules, loads[0]?.problems.map(({ at }) => at)], [
        undefined,
        [`${path}:4:16`, `${path}:5:3`],
      ]);
      const nested =
        "  metadata: {__proto__: {a: ~}, b: [1.5]}\n  descriptors:\n  - key: n\n    value: v*\n" +
        "    rate_limit: {unit: day, unit_multiplier: 2, requests_per_unit: 7, replaces: [{name: x}]}\n";
      const rules = Array.from({ length: 300 }, (_, index) => `- key: k${index}\n${nested}`).join("");
      const good = `domain: e\ndescriptors:\n${rules}`;
      await Deno.writeTextFile(`${root}/next`, good);
      await Deno.rename(`${root}/next`, path);
      provider.reload();
      await until("the change", () => news()?.rules !== undefined);
      const { source } = readRuleFile(path, good);
      const expected = compileRules(source === undefined ? [] : [source]);
      assertEquals([news()?.rules, news()?.rules?.limits.length], [expected.rules, 300]);
      const before = loads.length;
      provider.reload();
      await until("a load that brings nothing new", () => loads.length > before);
      assertEquals([loads.at(-1)?.rules, loads.at(-1)?.isUnchanged], [undefined, true]);
      await eventually(["RUNTIME_ROOT"], () => logger.lines.map(({ message }) => message.slice(0, 12)));
    } finally {
      await provider.close();
    }
  }));

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
      queueMicrotask(() => this.send({ type: "taken" }));
    }
  }

  send(data: ToRuleWorker): void {
    this.#listener(new MessageEvent("message", { data }));
  }

  /** For each load that was not as the previous one, whether the worker had a low priority. */
  get loads(): boolean[] {
    return this.sent.flatMap((message) => {
      if (message.type !== "load" || message.part.kind !== "end") return [];
      return message.part.rest.isUnchanged === true ? [] : message.part.isLower;
    });
  }
}

Deno.test("rule file worker: a reload of large files runs at a low priority; the first load and small ones do not", () =>
  inFolder(async (root) => {
    const port = new Port();
    let asked = 0;
    serveFileProvider(port, () => ++asked > 0);
    const options = { ...OPTIONS, root, appDirectory: "config" };
    const large = (comment: string) => `domain: d\ndescriptors: [] #${comment.padEnd(600_000)}\n`;
    await Deno.mkdir(`${root}/config`);
    try {
      for (const text of [large("one"), "domain: d\n", large("two"), large("three")]) {
        const { length } = port.loads;
        // Renamed into place: an event during the write would cause a load of a part of it.
        await Deno.writeTextFile(`${root}/next`, text);
        await Deno.rename(`${root}/next`, `${root}/config/a.yaml`);
        port.send(length === 0 ? { type: "start", options, known: undefined } : { type: "reload" });
        await until("the load", () => port.loads.length > length);
      }
    } finally {
      port.send({ type: "stop" });
      await eventually("stopped", () => port.sent.at(-1)?.type);
    }
    assertEquals([port.loads, asked], [[false, false, true, true], 1]);
  }));
