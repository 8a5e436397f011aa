/**
 * The task `test:binary`: runs the end-to-end tests with a program, and compares it with `deno run`. `WEIR_BIN` names the
 * program; without it, Weir is compiled on a base runtime of an older Deno, which is never released. Named files run instead
 * of all. The last line says how many tests passed and failed.
 */
import { join } from "node:path";
import { errorText } from "../src/base/error_text.ts";
import { PLACES } from "./binary/places.ts";
import { type Skip, SKIPS } from "./binary/skips.ts";
import { type FailedTest, judge } from "../tests/harness/test_report.ts";
import { installTools, printLine } from "./install_tools.ts";
import { runAll, SLOWEST } from "./test.ts";
import { makeTestProgram } from "./binary/program.ts";
import { compareStarts } from "./binary/compare_starts.ts";
import { joinRuns, type TestRun } from "./test/join_runs.ts";
import { filterOf } from "./test/repeat_failed.ts";
import { runGroup } from "./test/run_group.ts";
import { slowestLines, startedByImports } from "./test/slowest.ts";
import { filterExcept, needless, skipLines, skippedNames, unlisted } from "./binary/skip_filter.ts";

const ROOT = new URL("../", import.meta.url).pathname;
/** A skipped test that waits for what never comes is not waited for. */
const SKIPPED_MS = 40_000;
const SKIPPED_JOBS = 8;

/** Tests the program that `WEIR_BIN` names, or makes one; returns the exit code. */
async function testBinary(args: readonly string[]): Promise<number> {
  const folder = await Deno.makeTempDir({ prefix: "weir_binary_" });
  try {
    const given = Deno.env.get("WEIR_BIN") ?? "";
    if (given !== "") return await testProgram(args, { program: given, folder, isOnBase: false });
    await installTools({ tasks: ["binary"] });
    const program = await makeProgramIn(folder);
    Deno.env.set("WEIR_BIN", program);
    return await testProgram(args, { program, folder, isOnBase: true });
  } catch (error) {
    for (const line of [`failed: ${errorText(error)}`, "0 passed, 1 failed"]) printLine(line);
    return 1;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function testProgram(args: readonly string[], { program, folder, isOnBase }: {
  readonly program: string;
  readonly folder: string;
  readonly isOnBase: boolean;
}): Promise<number> {
  const named = args.filter((arg) => !arg.startsWith("-"));
  const skips = isOnBase ? SKIPS.map((skip) => skipIn(skip, named)) : [];
  const steady = skips.filter(({ isUnsteady }) => isUnsteady !== true);
  const runs = await runPrograms(named, { args, skips, folder });
  const tried = skippedNames(steady).length === 0 ? [] : await trySkipped(steady, folder);
  const joined = joinRuns(runs, { empty: args.length > 0 });
  const skipped = unlisted(joined.skipped, skips);
  const strict = ["true", "1"].includes(Deno.env.get("CI") ?? "");
  const verdict = judge({ ...joined, skipped, failed: [...joined.failed, ...tried] }, { code: 0, strict });
  const times = args.includes(SLOWEST) ? runs.flatMap((run) => run.times ?? []) : [];
  const slowest = times.length === 0 ? [] : slowestLines(times, startedByImports(ROOT));
  const starts = named.length === 0 ? await compareStarts(program, { isOnBase }) : [];
  for (const line of [...slowest, ...starts, ...skipLines(skips), ...verdict.lines]) printLine(line);
  return verdict.ok ? 0 : 1;
}

/** Makes the program in a folder with blanks in its name. */
async function makeProgramIn(folder: string): Promise<string> {
  const place = join(folder, "a folder with blanks");
  await Deno.mkdir(place);
  await makeTestProgram(join(place, "weir"));
  return join(place, "weir");
}

async function runPrograms(named: readonly string[], { args, skips, folder }: {
  readonly args: readonly string[];
  readonly skips: readonly Skip[];
  readonly folder: string;
}): Promise<readonly TestRun[]> {
  const names = skippedNames(skips);
  const options = args.filter((arg) => arg.startsWith("-") && arg !== SLOWEST);
  return await runAll({
    named: named.length === 0 ? Object.values(PLACES).flat() : named,
    options: names.length === 0 ? options : [...options, filterExcept(names)],
    folder,
    isShared: true,
  });
}

/** Runs the skipped tests; one that passes is a failure, and nothing else is. */
async function trySkipped(skips: readonly Skip[], folder: string): Promise<readonly FailedTest[]> {
  const files = new Set(skips.flatMap(({ tests }) => Object.keys(tests)));
  const group = {
    name: "skipped",
    places: [...files],
    flags: ["--allow-all"],
    isServed: true,
    jobs: SKIPPED_JOBS,
    filesPerModule: 1,
  };
  const run = await runGroup(group, {
    root: ROOT,
    folder,
    args: [filterOf(skippedNames(skips))],
    env: {},
    isShown: false,
    isQuiet: true,
    overdue: AbortSignal.timeout(SKIPPED_MS),
    stallMs: SKIPPED_MS,
    graceMs: 10_000,
  });
  return needless(skips, run);
}

/** The skipped tests of these files; of all when none is named. */
function skipIn(skip: Skip, named: readonly string[]): Skip {
  const chosen = Object.entries(skip.tests).filter(([file]) => named.length === 0 || named.includes(file));
  return { ...skip, tests: Object.fromEntries(chosen) };
}

if (import.meta.main) Deno.exit(await testBinary(Deno.args));
