import { assertEquals } from "#assert";
import type { WorkerNotice } from "../../../src/threads/supervised_worker.ts";
import type { FromRuleWorker, ToRuleWorker } from "../../../src/config/file_provider_worker.ts";
import type { LoadReceiver, RulesLoad } from "../../../src/config/provider.ts";
import { createWorkerFileProvider } from "../../../src/config/file_provider_supervisor.ts";
import type { RuleWorkerHandle } from "../../../src/config/rule_worker.ts";
import { type LoadPart, partsOfLoad } from "../../../src/config/load_parts.ts";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { eventually } from "../../harness/until.ts";

/** A worker that loads no module: a test says what it sends, and sees what it received. */
class RuleWorkerDouble implements RuleWorkerHandle {
  readonly received: ToRuleWorker["type"][] = [];
  isTerminated = false;
  /** The digest of what was loaded when it was started. */
  known: string | undefined;
  onmessage: RuleWorkerHandle["onmessage"] = null;
  onmessageerror: RuleWorkerHandle["onmessageerror"] = null;
  onerror: RuleWorkerHandle["onerror"] = null;

  postMessage(message: ToRuleWorker): void {
    this.received.push(message.type);
    if (message.type === "start") this.known = message.known;
    if (message.type === "ping") this.send({ type: "alive" });
    if (message.type === "stop") this.send({ type: "stopped" });
  }

  terminate(): void {
    this.isTerminated = true;
  }

  send(data: FromRuleWorker | WorkerNotice): void {
    this.onmessage?.(new MessageEvent("message", { data }));
  }

  fail(message: string): void {
    this.onerror?.(new ErrorEvent("error", { message, error: new Error(message), cancelable: true }));
  }
}

/** A provider, and everything that came of it. */
class Scene {
  readonly clock = new FakeClock();
  readonly log = new RecordedLogger();
  readonly workers: RuleWorkerDouble[] = [];
  readonly loads: RulesLoad[] = [];
  readonly provider = createWorkerFileProvider({
    root: "/none",
    subdirectory: "",
    appDirectory: "",
    ignoreDotFiles: false,
    watchRoot: false,
    clock: this.clock,
    logger: this.log,
    createWorker: () => {
      const worker = new RuleWorkerDouble();
      this.workers.push(worker);
      return worker;
    },
  });

  constructor(onLoad: LoadReceiver = (load) => {
    this.loads.push(load);
    return Promise.resolve(load.problems);
  }) {
    this.provider.start(onLoad);
  }

  /** The newest worker. */
  get worker(): RuleWorkerDouble {
    return this.workers.at(-1) ?? new RuleWorkerDouble();
  }

  /** The newest worker sends the end of a load. */
  end(
    { heapBytes = 1_000, isLower = false, ...rest }: Partial<Extract<LoadPart, { kind: "end" }>> & {
      isUnchanged?: boolean;
      digest?: string;
    } = {},
  ): void {
    const part = { kind: "end", hasRules: true, rest: { problems: [], version: "", ...rest } } as const;
    this.worker.send({ type: "load", part: { ...part, heapBytes, isLower } });
  }

  /** The newest worker sends the first part of a load. */
  begin(): void {
    this.worker.send({ type: "load", part: { kind: "domain", domain: "d", file: "d.yaml" } });
  }
}

/** The load of a worker that failed. */
const failure = (reason: string): RulesLoad => ({
  sources: undefined,
  problems: [{ severity: "error", at: "/none", path: "", text: `Cannot load the rule files: ${reason}` }],
  version: "",
});

for (const [state, spent] of [["large", { heapBytes: 1e9 }], ["slow", { isLower: true }]] as const) {
  Deno.test(`worker file provider: a worker that has become ${state} is replaced, and its successor loads nothing twice`, () => {
    const scene = new Scene();
    scene.end({ digest: "one" });
    assertEquals([scene.loads.length, scene.workers.length], [1, 1]);
    scene.end({ digest: "two", ...spent });
    assertEquals(scene.workers.map(({ isTerminated }) => isTerminated), [true, false]);
    assertEquals([scene.loads.length, scene.worker.known], [2, "two"]);
    // What it finds at its first look is what is loaded already: another one would find, and take, as much.
    scene.end({ digest: "two", isUnchanged: true, ...spent });
    assertEquals(scene.loads.length, 2);
    scene.end({ digest: "two", isUnchanged: true });
    scene.end({ digest: "three" });
    assertEquals([scene.loads.length, scene.workers.length, scene.log.lines], [4, 2, []]);
  });
}

Deno.test("worker file provider: a load whose worker fails or hangs fails with a problem, and the next worker loads again", () => {
  const scene = new Scene();
  scene.worker.fail("no memory");
  assertEquals(scene.loads, [failure("no memory")]);
  scene.clock.advance(1_000);
  scene.end({ digest: "one" });
  assertEquals(scene.loads.length, 2);
  scene.provider.reload();
  // A part of the load came before it hung.
  scene.begin();
  scene.clock.advance(60_000);
  assertEquals(scene.loads.slice(2), [failure("no load of the rules for 60 s")]);
  scene.clock.advance(1_000);
  assertEquals([scene.workers.length, scene.worker.known], [3, undefined]);
  scene.end({ digest: "two" });
  assertEquals([scene.loads.length, scene.loads.at(-1)?.digest], [4, "two"]);
  // It answers pings, and no load is awaited.
  scene.clock.advance(300_000);
  scene.worker.fail("broken");
  assertEquals([scene.loads.length, scene.log.lines.length], [4, 3]);
});

Deno.test("worker file provider: a load that was asked for during a large one is reported by the next worker", () => {
  const scene = new Scene();
  scene.begin();
  scene.provider.reload();
  scene.end({ digest: "one", heapBytes: 1e9 });
  scene.end({ digest: "one", isUnchanged: true });
  assertEquals([scene.loads.length, scene.workers.length], [2, 2]);
});

Deno.test("worker file provider: parts are small however rules are nested, and a rejected load has none", () => {
  const nested = Array.from({ length: 600 }, (_, index) => `  - key: n${index}\n`).join("");
  const partsOf = (text: string) => {
    const { source, problems } = readRuleFile("a", text);
    const load = { sources: source === undefined ? [] : [source], problems, version: "" };
    return [...partsOfLoad(load, {})].map((part) => {
      return part.kind === "descriptors" ? part.descriptors.length : part.kind;
    });
  };
  const text = `domain: d\ndescriptors:\n- key: k\n  descriptors:\n${nested}`;
  assertEquals(partsOf(text), ["domain", 250, 250, 101, "end"]);
  assertEquals(partsOf(`${text}- key: k\n`), ["end"]);
});

Deno.test("worker file provider: a load that cannot be applied is logged", async () => {
  const refuse = () => {
    throw new Error("no room");
  };
  for (const onLoad of [refuse, () => Promise.reject(new Error("no room"))]) {
    const scene = new Scene(onLoad);
    scene.end();
    const message = "Cannot apply the rule files; keeping the current rules";
    await eventually([message], () => scene.log.lines.map((line) => line.message));
  }
});

Deno.test("worker file provider: after closing nothing is loaded and no worker is started", async () => {
  for (const isFailed of [false, true]) {
    const scene = new Scene();
    if (isFailed) scene.worker.fail("broken");
    const { length } = scene.loads;
    const closed = scene.provider.close();
    scene.end();
    await closed;
    scene.provider.reload();
    assertEquals(scene.worker.received, isFailed ? ["start"] : ["start", "stop"]);
    assertEquals([scene.loads.length, scene.workers.length, scene.clock.waiting], [length, 1, 0]);
  }
});
