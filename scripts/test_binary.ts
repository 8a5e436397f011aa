/**
 * The task `test:binary`: compiles Weir on a base runtime of an older Deno, which is never released, runs the end-to-end
 * tests with that program in a folder with blanks in its name, and compares it with `deno run`. Named files run instead of
 * all. The last line says how many tests passed and failed.
 */
import { join } from "node:path";
import { PLACES } from "../tests/binary/places.ts";
import { type Skip, SKIPS } from "../tests/binary/skips.ts";
import { judge } from "../tests/harness/test_report.ts";
import { installTools, printLine } from "./install_tools.ts";
import { runAll, SLOWEST } from "./test.ts";
import { makeTestProgram } from "./test/binary_program.ts";
import { compareStarts } from "./test/compare_starts.ts";
import { joinRuns, type TestRun } from "./test/join_runs.ts";
import { filterOf } from "./test/repeat_failed.ts";
import { runGroup } from "./test/run_group.ts";
import { slowestLines, startedByImports } from "./test/slowest.ts";
import { filterExcept, needless, skipLines, skippedNames } from "./test/skips.ts";

const ROOT = new URL("../", import.meta.url).pathname;
/** A skipped test that waits for what never comes is not waited for. */
const SKIPPED_MS = 60_000;
const SKIPPED_JOBS = 8;

/** Makes the program and tests it; returns the exit code. */
async function testBinary(args: readonly string[]): Promise<number> {
  await installTools({ tasks: ["binary"] });
  const folder = await Deno.makeTempDir({ prefix: "weir_binary_" });
  try {
    const program = join(folder, "a folder with blanks", "weir");
    await Deno.mkdir(join(program, ".."));
    await makeTestProgram(program);
    await Deno.chmod(join(program, ".."), 0o555);
    Deno.env.set("WEIR_BIN", program);
    const places = args.filter((arg) => !arg.startsWith("-"));
    const skips = places.length === 0 ? SKIPS : SKIPS.map((skip) => only(skip, places));
    const names = skippedNames(skips);
    const options = args.filter((arg) => arg.startsWith("-") && arg !== SLOWEST);
    const runs = await runAll({
      named: places.length === 0 ? Object.values(PLACES).flat() : places,
      options: names.length === 0 ? options : [...options, filterExcept(names)],
      folder,
      isShared: true,
    });
    const tried = names.length === 0 ? [] : [await trySkipped(skips, folder)];
    const strict = ["true", "1"].includes(Deno.env.get("CI") ?? "");
    const verdict = judge(joinRuns([...runs, ...tried], { empty: args.length > 0 }), { code: 0, strict });
    const times = args.includes(SLOWEST) ? runs.flatMap((run) => run.times ?? []) : [];
    if (times.length > 0) { for (const line of slowestLines(times, startedByImports(ROOT))) printLine(line); }
    for (const line of skipLines(skips)) printLine(line);
    if (places.length === 0) { for (const line of await compareStarts(program)) printLine(line); }
    printLine(`tests on the base runtime: ${names.length} skipped`);
    for (const line of verdict.lines) printLine(line);
    return verdict.ok ? 0 : 1;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Runs the skipped tests; one that passes is a failure, and nothing else is. */
async function trySkipped(skips: readonly Skip[], folder: string): Promise<TestRun> {
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
    overdue: AbortSignal.timeout(SKIPPED_MS),
    graceMs: 10_000,
  });
  const failed = needless(skips, run);
  return {
    name: group.name,
    code: failed.length === 0 ? 0 : 1,
    report: { passed: 0, failed, unstable: [], skipped: [] },
  };
}

function only({ reason, tests }: Skip, places: readonly string[]): Skip {
  return {
    reason,
    tests: Object.fromEntries(Object.entries(tests).filter(([file]) => places.includes(file))),
  };
}

if (import.meta.main) Deno.exit(await testBinary(Deno.args));
