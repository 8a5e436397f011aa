import { assertEquals } from "@std/assert";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import type { Logger } from "../../../src/base/log.ts";
import type { FromRuleWorker } from "../../../src/config/file_provider_message.ts";
import type { RulesLoad, RulesProvider } from "../../../src/config/provider.ts";
import {
  createWorkerFileProvider,
  type RuleWorkerHandle,
} from "../../../src/config/file_provider_supervisor.ts";
import { partsOfLoad } from "../../../src/config/load_parts.ts";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import { compileRules } from "../../../src/ratelimit/compile_rules.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { until } from "../../harness/until.ts";
import { RuleWorkerDouble } from "./rule_worker_double.ts";

const FOLDER = {
  ...{ subdirectory: "", appDirectory: "", ignoreDotFiles: false, watchRoot: false },
  mergeDomains: false,
};
const LOAD = endOfLoad({});

/** The last part of a load. */
function endOfLoad(
  { heapBytes = 1_000, isLower = false, ...rest }: {
    heapBytes?: number;
    isLower?: boolean;
    isUnchanged?: boolean;
    digest?: string;
  },
): FromRuleWorker {
  const part = {
    kind: "end",
    hasRules: true,
    rest: { problems: [], version: "", ...rest },
    ...{ heapBytes, isLower },
  } as const;
  return { type: "load", part };
}

/** A provider, and everything that came of it. */
class Scene {
  readonly clock: FakeClock;
  readonly workers: RuleWorkerDouble[] = [];
  readonly loads: RulesLoad[] = [];
  readonly log: string[] = [];
  readonly provider: RulesProvider;

  constructor(
    options: { root?: string; clock?: Clock; watchRoot?: boolean; start?: () => RuleWorkerHandle } = {},
  ) {
    this.clock = new FakeClock();
    const line = (level: string) => (message: string, fields = {}) => {
      const texts = Object.values(fields).map((field) =>
        field instanceof Error ? field.message : String(field)
      );
      this.log.push([`${level}: ${message}`, ...texts].join(": "));
    };
    const logger: Logger = {
      debug: line("debug"),
      info: line("info"),
      warning: line("warning"),
      error: line("error"),
    };
    const { root = "/none", clock = this.clock, watchRoot = false, start } = options;
    const createWorker = start ?? (options.root === undefined ? () => this.#double() : undefined);
    const real = createWorker === undefined ? {} : { createWorker };
    this.provider = createWorkerFileProvider({ ...FOLDER, root, watchRoot, clock, logger, ...real });
  }

  /** The newest worker. */
  get worker(): RuleWorkerDouble {
    const worker = this.workers.at(-1);
    if (worker === undefined) throw new Error("Cannot use the worker: none was started");
    return worker;
  }

  /** The last load that was not as the one before: events may come in pairs, of which the second finds nothing new. */
  get news(): RulesLoad | undefined {
    return this.loads.findLast(({ isUnchanged }) => isUnchanged !== true);
  }

  start(): void {
    this.provider.start((load) => {
      this.loads.push(load);
      return load.problems;
    });
  }

  /** What was logged since the last look. */
  takeLog(): string[] {
    return this.log.splice(0);
  }

  #double(): RuleWorkerDouble {
    const worker = new RuleWorkerDouble();
    this.workers.push(worker);
    return worker;
  }
}

/** The load of a worker that failed. */
const failure = (reason: string): RulesLoad => ({
  sources: undefined,
  problems: [{ severity: "error", at: "/none", path: "", text: `Cannot load the rule files: ${reason}` }],
  version: "",
});

/** The log line for a worker that is replaced after this many seconds. */
const failed = (error: string, seconds: number) =>
  `error: Rule file worker failed; restarting it and keeping the current rules: ${error}: ${seconds * 1_000}`;

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

Deno.test("worker file provider: a load comes over as rules, and so does every later one", async () => {
  await inFolder(async (root) => {
    const scene = new Scene({ root, clock: systemClock });
    const path = `${root}/a.yaml`;
    const wrong = "domain: d\ndescriptors:\n- key: k\n  shadow_mode: 1\n- key: k\n";
    await Deno.writeTextFile(path, wrong);
    scene.start();
    try {
      await until("the first load", () => scene.loads.length === 1);
      assertEquals(scene.loads.map(({ rules, problems }) => [rules, problems.map(({ at }) => at)]), [
        [undefined, [`${path}:4:16`, `${path}:5:3`]],
      ]);
      const nested =
        "  metadata: {__proto__: {a: ~}, b: [1.5]}\n  descriptors:\n  - key: n\n    value: v*\n" +
        "    rate_limit: {unit: day, unit_multiplier: 2, requests_per_unit: 7, replaces: [{name: x}]}\n";
      const rules = Array.from({ length: 300 }, (_, index) => `- key: k${index}\n${nested}`).join("");
      const good = `domain: e\ndescriptors:\n${rules}`;
      await Deno.writeTextFile(path, good);
      await until("the change", () => scene.news?.rules !== undefined);
      const { source } = readRuleFile(path, good);
      const expected = compileRules(source === undefined ? [] : [source], { mergeDomains: false });
      assertEquals([scene.news?.rules, scene.news?.rules?.limits.length], [
        expected.rules,
        300,
      ]);
      await Deno.remove(root, { recursive: true });
      await until("the missing folder", () => scene.news?.rules === undefined);
    } finally {
      await scene.provider.close();
    }
    assertEquals(scene.log, []);
  });
});

Deno.test("worker file provider: a load that brings nothing new comes without its rules", async () => {
  await inFolder(async (root) => {
    const scene = new Scene({ root, clock: systemClock });
    await Deno.writeTextFile(`${root}/a.yaml`, "domain: d\n");
    scene.start();
    try {
      await until("the first load", () => scene.loads.length === 1);
      scene.provider.reload();
      await until("the second load", () => scene.loads.length > 1);
      const seen = scene.loads.slice(0, 2).map(({ rules, isUnchanged, problems }) => {
        return [rules?.domainCount, isUnchanged, problems.length];
      });
      assertEquals(seen, [[1, undefined, 1], [undefined, true, 0]]);
      await Deno.writeTextFile(`${root}/a.yaml`, "domain: d\n\n");
      await until("the change", () => scene.news !== scene.loads[0] && scene.news?.rules?.domainCount === 1);
    } finally {
      await scene.provider.close();
    }
    assertEquals(scene.log, []);
  });
});

for (const [state, spent] of [["large", { heapBytes: 1e9 }], ["slow", { isLower: true }]] as const) {
  Deno.test(`worker file provider: a worker that has become ${state} is replaced, and its successor loads nothing twice`, () => {
    const scene = new Scene();
    scene.start();
    scene.worker.tell(endOfLoad({ digest: "one" }));
    assertEquals([scene.loads.length, scene.workers.length], [1, 1]);
    scene.worker.tell(endOfLoad({ digest: "two", ...spent }));
    assertEquals([scene.loads.length, scene.workers.map(({ isTerminated }) => isTerminated)], [2, [
      true,
      false,
    ]]);
    assertEquals(scene.worker.known, "two");
    // What it finds at its first look is what is loaded already: another one would find, and take, as much.
    scene.worker.tell(endOfLoad({ digest: "two", isUnchanged: true, ...spent }));
    assertEquals(scene.loads.length, 2);
    scene.worker.tell(endOfLoad({ digest: "two", isUnchanged: true }));
    scene.worker.tell(endOfLoad({ digest: "three" }));
    assertEquals([scene.loads.length, scene.workers.length, scene.takeLog()], [4, 2, []]);
  });
}

Deno.test("worker file provider: a load whose worker fails or hangs fails with a problem, and the next worker loads again", () => {
  const scene = new Scene();
  scene.start();
  scene.worker.fail("no memory");
  assertEquals(scene.loads, [failure("no memory")]);
  scene.clock.advance(1_000);
  scene.worker.tell(endOfLoad({ digest: "one" }));
  assertEquals(scene.loads.length, 2);
  scene.provider.reload();
  // A part of the load came before it hung.
  scene.worker.tell({ type: "load", part: { kind: "domain", domain: "d", file: "d.yaml" } });
  scene.clock.advance(60_000);
  assertEquals(scene.loads.slice(2), [failure("no load of the rules for 60 s")]);
  scene.clock.advance(1_000);
  assertEquals([scene.workers.length, scene.worker.known], [3, undefined]);
  scene.worker.tell(endOfLoad({ digest: "two" }));
  assertEquals([scene.loads.length, scene.loads.at(-1)?.digest], [4, "two"]);
  // No load was awaited.
  scene.worker.fail("broken");
  assertEquals(scene.loads.length, 4);
});

Deno.test("worker file provider: a load that was asked for during a large one is reported by the next worker", () => {
  const scene = new Scene();
  scene.start();
  scene.worker.tell({ type: "load", part: { kind: "domain", domain: "d", file: "d.yaml" } });
  scene.provider.reload();
  scene.worker.tell(endOfLoad({ digest: "one", heapBytes: 1e9 }));
  scene.worker.tell(endOfLoad({ digest: "one", isUnchanged: true }));
  assertEquals([scene.loads.length, scene.workers.length], [2, 2]);
});

Deno.test("worker file provider: parts are small however rules are nested, and a rejected load has none", () => {
  const nested = Array.from({ length: 600 }, (_, index) => `  - key: n${index}\n`).join("");
  const partsOf = (text: string) => {
    const { source, problems } = readRuleFile("a", text);
    const load = { sources: source === undefined ? [] : [source], problems, version: "" };
    return [...partsOfLoad(load, { mergeDomains: false })].map((part) => {
      return part.kind === "descriptors" ? part.descriptors.length : part.kind;
    });
  };
  const text = `domain: d\ndescriptors:\n- key: k\n  descriptors:\n${nested}`;
  assertEquals(partsOf(text), ["domain", 250, 250, 101, "end"]);
  assertEquals(partsOf(`${text}- key: k\n`), ["end"]);
});

Deno.test("worker file provider: what the worker logs is logged here", async () => {
  await inFolder(async (root) => {
    const scene = new Scene({ root, clock: systemClock, watchRoot: true });
    scene.start();
    await until("the first load", () => scene.loads.length === 1);
    await scene.provider.close();
    assertEquals(scene.log, [
      `warning: RUNTIME_ROOT "${root}" is not a symbolic link: only the re-scan every 30 s finds ` +
      "changes inside it; set RUNTIME_WATCH_ROOT=false to watch its files",
    ]);
  });
});

Deno.test("worker file provider: a real worker that throws ends nothing and is started again", async () => {
  const clock = new FakeClock();
  let started = 0;
  const start = () => {
    const text = `data:text/javascript,throw new Error("start ${++started}")`;
    return new Worker(text, { type: "module" });
  };
  const scene = new Scene({ clock, start });
  scene.start();
  for (const number of [1, 2]) {
    await until(`failure ${number}`, () => scene.log.length === number);
    clock.advance(number * 1_000 - 1);
    assertEquals(started, number);
    clock.advance(1);
  }
  await until("the third failure", () => scene.log.length === 3);
  await scene.provider.close();
  assertEquals(
    scene.log,
    [1, 2, 4].map((seconds, index) => failed(`Uncaught (in promise) Error: start ${index + 1}`, seconds)),
  );
  assertEquals(clock.waiting, 0);
});

Deno.test("worker file provider: a real worker that hangs ends nothing, and its load fails with a problem", async () => {
  const scene = new Scene({ start: () => new Worker("data:text/javascript,for (;;);", { type: "module" }) });
  scene.start();
  scene.clock.advance(60_000);
  const reason = "no load of the rules for 60 s";
  assertEquals([scene.loads, scene.log], [[failure(reason)], [failed(reason, 1)]]);
  await scene.provider.close();
  assertEquals(scene.clock.waiting, 0);
});

Deno.test("worker file provider: the wait for another worker doubles up to a minute, and a steady one ends that", () => {
  const scene = new Scene();
  scene.start();
  for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
    const { worker } = scene;
    assertEquals(worker.fail("broken"), false);
    assertEquals([worker.isTerminated, scene.takeLog()], [true, [failed("broken", seconds)]]);
    scene.clock.advance(seconds * 1_000 - 1);
    assertEquals(scene.worker, worker);
    scene.clock.advance(1);
    assertEquals([scene.worker === worker, scene.worker.told], [false, ["start"]]);
  }
  scene.worker.tell(LOAD);
  scene.clock.advance(60_000);
  scene.worker.fail("broken");
  assertEquals(scene.takeLog(), [failed("broken", 1)]);
});

Deno.test("worker file provider: a worker that cannot be started is logged and tried again", () => {
  const scene = new Scene({
    start: () => {
      throw new Error("no permission");
    },
  });
  scene.start();
  scene.clock.advance(1_000);
  assertEquals(scene.log, [1, 2].map((seconds) => failed("no permission", seconds)));
});

Deno.test("worker file provider: a worker that answers neither pings nor a wish for a load is replaced, with more patience each time", () => {
  const scene = new Scene();
  scene.start();
  const silences: readonly (readonly [reply: string, seconds: number, silence: () => void])[] = [
    ["load of the rules", 60, () => {}],
    ["answer to a ping", 120, () => {
      scene.worker.tell(LOAD);
      scene.clock.advance(10_000);
      scene.worker.isAlive = false;
      scene.clock.advance(10_000);
    }],
    ["load of the rules", 240, () => {
      scene.worker.tell(LOAD);
      scene.clock.advance(300_000);
      scene.provider.reload();
    }],
  ];
  for (const [reply, seconds, silence] of silences) {
    const { worker } = scene;
    silence();
    scene.clock.advance(seconds * 1_000 - 1);
    assertEquals([reply, scene.log, worker.isTerminated], [reply, [], false]);
    scene.clock.advance(1);
    const line = failed(`no ${reply} for ${seconds} s`, 1);
    assertEquals([reply, scene.takeLog(), worker.isTerminated], [reply, [line], true]);
    scene.clock.advance(1_000);
    assertEquals([reply, scene.worker === worker, scene.worker.told], [reply, false, ["start"]]);
    // Whatever the one before still says is of no interest.
    const loads = scene.loads.length;
    worker.tell(LOAD);
    worker.fail("late");
    assertEquals([reply, scene.loads.length, scene.log], [reply, loads, []]);
  }
});

Deno.test("worker file provider: a load that cannot be taken over is logged", async () => {
  const refuse = () => {
    throw new Error("no room");
  };
  for (const takeOver of [refuse, () => Promise.reject(new Error("no room"))]) {
    const scene = new Scene();
    scene.provider.start(takeOver);
    scene.worker.tell(LOAD);
    await until("the log line", () => scene.log.length > 0);
    assertEquals(scene.log, ["error: Cannot apply the rule files; keeping the current rules: no room"]);
  }
});

Deno.test("worker file provider: closing waits for the worker, but no longer than a second", async () => {
  for (const isAlive of [true, false]) {
    const scene = new Scene();
    scene.start();
    const { worker } = scene;
    worker.isAlive = isAlive;
    const closed = scene.provider.close();
    worker.tell(LOAD);
    if (!isAlive) {
      scene.clock.advance(999);
      await Promise.resolve();
      assertEquals(worker.isTerminated, false);
      scene.clock.advance(1);
    }
    await closed;
    scene.provider.reload();
    assertEquals([worker.told, worker.isTerminated], [["start", "stop"], true]);
    assertEquals([scene.loads, scene.log, scene.clock.waiting], [[], [], 0]);
  }
});

Deno.test("worker file provider: closing while another worker is due starts none", async () => {
  const scene = new Scene();
  scene.start();
  scene.worker.fail("broken");
  scene.provider.reload();
  await scene.provider.close();
  assertEquals([scene.workers.length, scene.clock.waiting], [1, 0]);
});
