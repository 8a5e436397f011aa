import { assertEquals, assertMatch } from "#assert";
import { join } from "node:path";
import type { TestRun } from "../../../scripts/test/join_runs.ts";
import { stress } from "../../../scripts/test/stress.ts";
import { processTree } from "../../../scripts/test/process_tree.ts";
import type { ReportedTest } from "../../harness/test_report.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { until } from "../../harness/until.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;
const FAKE_CLOCK = new URL("../../harness/fake_clock.ts", import.meta.url).href;
const RUN_GROUP = new URL("../../../scripts/test/run_group.ts", import.meta.url).href;

const PASSES = `Deno.test("passes", () => console.log("said by the test"));\n`;
const FAILS = `Deno.test("fails", () => { throw new Error("no"); });\n`;
const LEFT = `new Deno.Command("sleep", { args: ["600"] }).spawn().pid`;
const HANGS = `Deno.test("hangs", async () => {
  Deno.writeTextFileSync(new URL("pid", import.meta.url), String(${LEFT}));
  Deno.renameSync(new URL("pid", import.meta.url), new URL("hangs", import.meta.url));
  await new Promise((resolve) => setTimeout(resolve, 600_000));
});
`;
/** The runner does not even hear that it is to end. */
const STANDS_STILL = HANGS.replace("await ", 'Deno.kill(Deno.pid, "SIGSTOP");\n  await ');

/** The run of a group with a test that hangs, and those behind it. */
function hung(...skipped: readonly ReportedTest[]) {
  const failed = [{ name: "hangs", file: "./b_test.ts", reason: "Cancelled" }];
  return {
    ran: { code: 130, report: { passed: 1, failed, unstable: [], skipped }, isInterrupted: true },
    said: /SIGINT[^]*hangs/,
  };
}

const RUNS: Readonly<Record<string, { files: Record<string, string>; ran: Partial<TestRun>; said: RegExp }>> =
  {
    "passes": {
      files: { "a_test.ts": PASSES, "b_test.ts": PASSES },
      ran: { code: 0, report: { passed: 2, failed: [], unstable: [], skipped: [] } },
      said: /^tests of "mine": ended with code 0 after \d+ s\n$/,
    },
    "fails": {
      files: { "a_test.ts": PASSES, "b_test.ts": FAILS },
      ran: {
        code: 1,
        report: {
          passed: 1,
          failed: [{ name: "fails", file: "./b_test.ts", reason: "Uncaught Error: no" }],
          unstable: [],
          skipped: [],
        },
      },
      said:
        /^\ntests of "mine":\n ERRORS \n\n[^]*Error: no[^]*\ntests of "mine": ended with code 1 after \d+ s\n$/,
    },
    "cannot be loaded": {
      files: { "a_test.ts": "import './nowhere.ts';\n" },
      ran: { code: 1, report: { passed: 0, failed: [], unstable: [], skipped: [] } },
      said: /nowhere\.ts/,
    },
    "hangs": { files: { "a_test.ts": PASSES, "b_test.ts": HANGS }, ...hung() },
    "hangs without a word": {
      files: { "a_test.ts": PASSES, "b_test.ts": `${HANGS}${PASSES}` },
      ...hung({ name: "passes", file: "./b_test.ts" }),
    },
    "hangs and does not listen": {
      files: { "a_test.ts": STANDS_STILL },
      ran: { code: 137, report: { passed: 0, failed: [], unstable: [], skipped: [] }, isInterrupted: true },
      said: /ended with code 137/,
    },
  };

for (const [what, { files, ran, said }] of Object.entries(RUNS)) {
  Deno.test(`a group of tests that ${what}`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "weir_group_" });
    try {
      for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(join(folder, name), text);
      const graceMs = ran.code === 137 ? 1_000 : 60_000;
      const { run, output } = await runElsewhere(folder, {
        names: Object.keys(files),
        graceMs,
        end: what.endsWith("without a word") ? "clock.advance(60_000)" : "overdue.abort()",
      });
      const { times = [], ...rest } = run;
      assertEquals<Partial<TestRun>>(rest, { name: "mine", ...ran });
      const { passed, failed, skipped } = run.report;
      assertEquals(times.length, passed + failed.length + skipped.length);
      assertMatch(output, said);
      if (what.startsWith("hangs")) {
        const left = Number(await Deno.readTextFile(join(folder, "hangs")));
        await until("what it left to end", () => !isRunning(left));
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

Deno.test("stress: a failure is kept once, with the seed of its first round", async () => {
  const seeds: number[] = [];
  const failures = await stress({ rounds: 3, minutes: 1, seed: 5 }, (seed) => {
    seeds.push(seed);
    const failed = seed === 5 ? [] : [{ name: "a", file: "./a_test.ts", reason: `in ${seed}` }];
    const report = { passed: 1, failed, unstable: [], skipped: [] };
    return Promise.resolve([{ name: "unit", code: failed.length, report }]);
  });
  assertEquals(seeds, [5, 6, 7]);
  assertEquals(failures, [{ name: "a", file: "./a_test.ts", reason: "in 6", seed: 6, rounds: 2 }]);
  await until("the loops to end", () => processTree(Deno.pid).every((pid) => !isBusyLoop(pid)));
});

function isBusyLoop(pid: number): boolean {
  try {
    return Deno.readTextFileSync(`/proc/${pid}/cmdline`).includes("while :; do :; done");
  } catch {
    return false;
  }
}

const SERVED = { ignored: [], flags: ["--allow-all"], isServed: false, jobs: 1, filesPerModule: 2 };

/** Runs a group in its own process, whose output it is that the group is shown in. */
async function runElsewhere(
  folder: string,
  { names, graceMs, end }: {
    readonly names: readonly string[];
    readonly graceMs: number;
    /** Called again and again as soon as a test hangs. */
    readonly end: string;
  },
) {
  const group = { name: "mine", places: names.map((name) => join(folder, name)), ...SERVED };
  const options = { root: folder, folder, args: [], env: {}, isShown: false, stallMs: 60_000, graceMs };
  const program = `import { runGroup } from "${RUN_GROUP}";
import { FakeClock } from "${FAKE_CLOCK}";
const overdue = new AbortController();
const clock = new FakeClock();
const look = () => Deno.stat("${join(folder, "hangs")}").then(() => ${end}, () => {});
setInterval(look, 100);
const options = { ...${JSON.stringify(options)}, overdue: overdue.signal, clock };
const run = await runGroup(${JSON.stringify(group)}, options);
await Deno.writeTextFile("${join(folder, "run.json")}", JSON.stringify(run));
Deno.exit(0);`;
  await Deno.writeTextFile(join(folder, "main.ts"), program);
  await using child = new ChildProcess(Deno.execPath(), {
    args: [
      "run",
      "--allow-all",
      "--no-check",
      `--config=${join(ROOT, "deno.json")}`,
      join(folder, "main.ts"),
    ],
  });
  await child.exited;
  const run: TestRun = JSON.parse(await Deno.readTextFile(join(folder, "run.json")));
  return { run, output: `${child.stdoutLines.join("\n")}\n` };
}

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(Deno.readTextFileSync(`/proc/${pid}/status`));
  } catch {
    return false;
  }
}
