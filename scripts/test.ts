/**
 * The test task: installs the tools that are missing, checks types, runs the tests, and prints in its last line how
 * many passed, failed and were skipped. Arguments are passed to the test runner; named files or folders run alone, without
 * the type check. `--slowest` prints the slowest files and tests. A failed test is repeated once, alone; if it passes then,
 * it is listed as unstable. With `CI=true` a skipped test is a failure, and so are two unstable ones. `--stress` repeats
 * tests in random order on a machine that is disturbed, see `test/stress.ts`.
 */
import { basename, join, relative, resolve } from "node:path";
import { PORTS_VARIABLE } from "../tests/harness/free_port.ts";
import { SHARED_KINDS, startSharedServers } from "../tests/harness/shared_places.ts";
import { EMPTY_REPORT, judge, type ReportedTest, topName } from "../tests/harness/test_report.ts";
import { installTools, printLine } from "./install_tools.ts";
import { joinRuns, type TestRun } from "./test/join_runs.ts";
import { repeatFailed } from "./test/repeat_failed.ts";
import { type GroupOptions, runGroup } from "./test/run_group.ts";
import { slowestLines, startedByImports } from "./test/slowest.ts";
import { readStressOptions, shuffled, stress } from "./test/stress.ts";
import { isUnit, ownTasks, planTests, type TestGroup, testPlaces } from "./test/test_groups.ts";

const ROOT = new URL("../", import.meta.url).pathname;
const GROUP_TIMEOUT_MS = 40 * 60_000;
const REPEAT_TIMEOUT_MS = 5 * 60_000;
const CHECK_TIMEOUT_MS = 10 * 60_000;
/** Longer than any test takes on a slow machine. */
const STALL_MS = 5 * 60_000;
const GRACE_MS = 10_000;
/** The option for a list of the slowest files and tests. */
export const SLOWEST = "--slowest";
const STRESS = "--stress";
/** The types of everything, as the task `check` does it, and of the examples in the documentation. */
const CHECKS = [["task", "check"], ["check", "--quiet", "--doc-only", "src/rest"]] as const;

/** Installs the tools and runs the tests; returns the exit code. */
async function runTests(args: readonly string[]): Promise<number> {
  if (args.includes(STRESS)) return await runStress(args.filter((arg) => arg !== STRESS));
  const named = args.filter(isPlace).map((place) => relative(ROOT, resolve(ROOT, place)));
  const options = args.filter((arg) => !isPlace(arg) && arg !== SLOWEST);
  const folder = await Deno.makeTempDir({ prefix: "weir_tests_" });
  try {
    const runs = await runAll({ named, options, folder });
    const report = joinRuns(runs, { empty: args.length > 0 });
    const strict = ["true", "1"].includes(Deno.env.get("CI") ?? "");
    const verdict = judge(report, { code: 0, strict });
    const times = args.includes(SLOWEST) ? runs.flatMap((run) => run.times ?? []) : [];
    const slowest = times.length === 0 ? [] : slowestLines(times, startedByImports(ROOT));
    for (const line of [...slowest, ...verdict.lines]) printLine(line);
    return verdict.ok ? 0 : 1;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Repeats tests under stress; returns the exit code. */
async function runStress(args: readonly string[]): Promise<number> {
  const { rest, ...options } = readStressOptions(args);
  const places = testPlaces(ROOT, rest.filter(isPlace).map((place) => relative(ROOT, resolve(ROOT, place))));
  await installTools({ tasks: ownTasks(places) });
  const folder = await Deno.makeTempDir({ prefix: "weir_tests_" });
  try {
    await using servers = await startSharedServers(places.every(isUnit) ? [] : SHARED_KINDS);
    const failures = await stress(options, async (seed) => {
      const ports = await Deno.makeTempDir({ dir: folder });
      const runs: TestRun[] = [];
      for (const group of planTests(navigator.hardwareConcurrency, shuffled(places, seed))) {
        const overdue = AbortSignal.timeout(GROUP_TIMEOUT_MS);
        const env = { ...servers.env, [PORTS_VARIABLE]: ports };
        const args = [...rest.filter((arg) => !isPlace(arg)), `--shuffle=${seed}`];
        runs.push(
          await runGroup(group, {
            root: ROOT,
            folder,
            args,
            env,
            isShown: false,
            overdue,
            stallMs: STALL_MS,
            graceMs: GRACE_MS,
          }),
        );
      }
      return runs;
    });
    const lines = failures.map(({ name, file, seed, rounds }) =>
      `${name} (${file}): ${rounds} rounds, seed ${seed}`
    );
    for (const line of lines) printLine(line);
    return failures.length === 0 ? 0 : 1;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/**
 * Unit tests run next to the type check and the installation of tools, then the groups with servers side by side. Failed
 * tests are repeated once, alone, while the servers still run.
 */
export async function runAll({ named, options, folder, isShared }: {
  readonly named: readonly string[];
  readonly options: readonly string[];
  readonly folder: string;
  /** True if the servers that tests share are started; by default not for files that are named alone. */
  readonly isShared?: boolean;
}): Promise<readonly TestRun[]> {
  const groups = planTests(navigator.hardwareConcurrency, testPlaces(ROOT, named));
  const tasks = ownTasks(groups.flatMap(({ places }) => places));
  const ports = join(folder, "ports");
  await Deno.mkdir(ports);
  const runOne = (group: TestGroup, run: Pick<GroupOptions, "args" | "env" | "isShown" | "overdue">) =>
    runGroup(group, {
      root: ROOT,
      folder,
      stallMs: STALL_MS,
      graceMs: GRACE_MS,
      ...run,
      env: { ...run.env, [PORTS_VARIABLE]: ports },
    });
  const runGroups = async (isServed: boolean, env: Readonly<Record<string, string>>) => {
    const chosen = groups.filter((group) => group.isServed === isServed);
    const runs = await Promise.all(chosen.map(async (group, index) => {
      // A terminal shows the progress of one; a log should not hide failures among thousands of lines.
      const isShown = index === 0 && Deno.stdout.isTerminal();
      const overdue = AbortSignal.timeout(GROUP_TIMEOUT_MS);
      return { group, run: await runOne(group, { args: options, env, isShown, overdue }) };
    }));
    const overdue = AbortSignal.timeout(REPEAT_TIMEOUT_MS);
    const unfiltered = options.filter((option) => !option.startsWith("--filter"));
    const judged: TestRun[] = [];
    for (const { group, run } of runs) {
      const again = (alone: TestGroup, args: readonly string[]) =>
        runOne(alone, { args: [...unfiltered, ...args], env, isShown: false, overdue });
      const placesOf = (test: ReportedTest) => group.places.filter((place) => mayHave(place, test));
      judged.push(await repeatFailed(run, group, { runGroup: again, placesOf }));
    }
    return judged;
  };
  const first = await Promise.all([
    named.length === 0 ? checkTypes() : [],
    runGroups(false, {}),
    groups.some(({ isServed }) => isServed) ? installTools({ tasks }).then(() => []) : [],
  ]);
  // A file that is named alone starts what it asks for, and so do tiers with their own task.
  const isDefault = groups.some(({ isServed }) => isServed) &&
    (named.length === 0 || named.some((place) => isFolder(place) && ownTasks([place]).length === 0));
  await using servers = await startSharedServers(isShared ?? isDefault ? SHARED_KINDS : []);
  return [...first.flat(), ...await runGroups(true, servers.env)];
}

/** Returns whether a test file imports the file that registers a test, or has the begin of its name. */
function mayHave(place: string, { file, name }: ReportedTest): boolean {
  const text = Deno.readTextFileSync(join(ROOT, place));
  return (file !== "" && !file.endsWith("_test.ts") && text.includes(`/${basename(file)}"`)) ||
    text.includes(topName(name).replace(/ \((?:sqlite|postgres)\)$|\[needs .*$/, "").trim());
}

/** The checks that failed. */
async function checkTypes(): Promise<readonly TestRun[]> {
  const runs: TestRun[] = [];
  for (const args of CHECKS) {
    const signal = AbortSignal.timeout(CHECK_TIMEOUT_MS);
    const { code } = await new Deno.Command(Deno.execPath(), { args: [...args], cwd: ROOT, signal }).spawn()
      .status;
    if (code !== 0) runs.push({ name: args.join(" "), code, report: EMPTY_REPORT });
  }
  return runs;
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

function isFolder(place: string): boolean {
  return Deno.statSync(resolve(ROOT, place)).isDirectory;
}

// An installation step that was given up may still hold a pipe, which must not delay the end.
if (import.meta.main) Deno.exit(await runTests(Deno.args));
