/**
 * The test task: installs what the tests need, checks types, runs the tests in a few processes, and says in its last line
 * how many passed, failed and were skipped. Arguments go to the test runner; where they name files or folders, these run
 * in one process. `--slowest` adds the slowest files and tests. With `CI=true` a skipped test is a failure, and no two processes run at once: on a machine that others use
 * too, tests with deadlines have enough to bear with one.
 */
import { resolve } from "node:path";
import { judge } from "../tests/harness/test_report.ts";
import { installTools, printLine } from "./install_tools.ts";
import { joinRuns, type TestRun } from "./test/join_runs.ts";
import { runGroup } from "./test/run_group.ts";
import { slowestLines, startedByImports } from "./test/slowest.ts";
import { planTests, testFiles, type TestGroup, type TestPlan } from "./test/test_groups.ts";

const ROOT = new URL("../", import.meta.url).pathname;
const GROUP_LIMIT_MS = 40 * 60_000;
const SLOWEST = "--slowest";
const GRACE_MS = 10_000;
const CHECK_LIMIT_MS = 10 * 60_000;
/** The types of everything, as the task `check` looks at them, and of the examples in the documentation. */
const CHECKS = [["task", "check"], ["check", "--quiet", "--doc-only", "src/rest"]] as const;

/** Installs the tools and runs the tests; answers the exit code. */
export async function runTests(args: readonly string[]): Promise<number> {
  await installTools();
  const named = args.filter(isPlace);
  const plan: TestPlan = named.length === 0
    ? planTests(testFiles(ROOT))
    : { beside: [{ name: "named", places: named, ignored: [] }], after: [] };
  const options = args.filter((arg) => !named.includes(arg) && arg !== SLOWEST);
  const folder = await Deno.makeTempDir({ prefix: "weir_tests_" });
  try {
    // What runs in several processes is checked before, and once.
    const isChecked = named.length === 0 && !options.includes("--no-check");
    const checked = isChecked ? await checkTypes() : [];
    const strict = ["true", "1"].includes(Deno.env.get("CI") ?? "");
    const runs = checked.some(({ code }) => code !== 0)
      ? checked
      : await runPlan(plan, { folder, args: runnerArgs(options, isChecked), oneByOne: strict });
    const report = joinRuns(runs, { empty: args.length > 0 });
    const verdict = judge(report, { code: 0, strict });
    const times = args.includes(SLOWEST) ? runs.flatMap((run) => run.times ?? []) : [];
    const slowest = times.length === 0 ? [] : slowestLines(times, startedByImports(ROOT));
    for (const line of [...slowest, ...verdict.lines]) printLine(line);
    return verdict.ok ? 0 : 1;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function runPlan(
  { beside, after }: TestPlan,
  { folder, args, oneByOne }: {
    readonly folder: string;
    readonly args: readonly string[];
    readonly oneByOne: boolean;
  },
): Promise<TestRun[]> {
  const run = (group: TestGroup, isShown: boolean) => {
    const overdue = AbortSignal.timeout(GROUP_LIMIT_MS);
    return runGroup(group, { root: ROOT, folder, args, isShown, overdue, graceMs: GRACE_MS });
  };
  // A terminal shows how far it is; a record of a run should not hide failures among thousands of lines.
  const isWatched = Deno.stdout.isTerminal();
  const together = oneByOne ? [] : beside;
  const runs = await Promise.all(together.map((group, index) => run(group, isWatched && index === 0)));
  for (const group of oneByOne ? [...beside, ...after] : after) runs.push(await run(group, isWatched));
  return runs;
}

async function checkTypes(): Promise<TestRun[]> {
  const runs: TestRun[] = [];
  for (const args of CHECKS) {
    const signal = AbortSignal.timeout(CHECK_LIMIT_MS);
    const { code } = await new Deno.Command(Deno.execPath(), { args: [...args], cwd: ROOT, signal }).spawn()
      .status;
    runs.push({ name: args.join(" "), code, report: { passed: 0, failed: [], skipped: [] } });
  }
  return runs;
}

function runnerArgs(args: readonly string[], isChecked: boolean): string[] {
  const reporter = args.some((arg) => arg.startsWith("--reporter")) ? [] : ["--reporter=dot"];
  const examples = args.includes("--doc") ? [] : ["--doc"];
  return [...reporter, ...examples, ...(isChecked ? ["--no-check"] : []), ...args];
}

function isPlace(arg: string): boolean {
  if (arg.startsWith("-")) return false;
  try {
    Deno.statSync(resolve(ROOT, arg));
    return true;
  } catch {
    return false;
  }
}

// An installation step that was given up may still hold a pipe, which must not hold up the end.
if (import.meta.main) Deno.exit(await runTests(Deno.args));
