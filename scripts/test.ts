/**
 * The test task: installs what the tests need, runs them, and says in its last line how many passed,
 * failed and were skipped. Arguments go to the test runner. With `CI=true` a skipped test is a failure.
 */
import { join, resolve } from "node:path";
import { EMPTY_REPORT, judge, readTestReport, type TestReport } from "../tests/support/test_report.ts";
import { installTools, printLine } from "./install_tools.ts";

const ROOT = new URL("../", import.meta.url).pathname;
const RUN_LIMIT_MS = 60 * 60_000;
/** What runs unless the arguments say otherwise: the tests, and the examples of the HTTP client library. */
const PLACES = ["tests", "src/rest"];

/** Installs the tools and runs the tests; answers the exit code. */
export async function runTests(args: readonly string[]): Promise<number> {
  await installTools();
  const folder = await Deno.makeTempDir({ prefix: "weir_tests_" });
  try {
    const reportPath = join(folder, "report.xml");
    const code = await runRunner(args, reportPath);
    const strict = ["true", "1"].includes(Deno.env.get("CI") ?? "");
    const verdict = judge(await readReport(reportPath), { code, strict });
    for (const line of verdict.lines) printLine(line);
    return verdict.ok ? 0 : 1;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function runRunner(args: readonly string[], reportPath: string): Promise<number> {
  const reporter = args.some((arg) => arg.startsWith("--reporter")) ? [] : ["--reporter=dot"];
  const places = args.some(isPlace) ? [] : PLACES;
  const examples = args.includes("--doc") ? [] : ["--doc"];
  const child = new Deno.Command(Deno.execPath(), {
    args: ["test", "--allow-all", `--junit-path=${reportPath}`, ...reporter, ...examples, ...args, ...places],
    cwd: ROOT,
    // Tests talk to loopback servers, which no proxy of the machine can reach.
    env: { NO_PROXY: "127.0.0.1,localhost,::1", no_proxy: "127.0.0.1,localhost,::1" },
    stdin: "null",
  }).spawn();
  // The runner answers SIGINT with the names of the tests that it was waiting for.
  const interrupt = setTimeout(() => child.kill("SIGINT"), RUN_LIMIT_MS);
  const kill = setTimeout(() => child.kill("SIGKILL"), RUN_LIMIT_MS + 10_000);
  const { code } = await child.status;
  clearTimeout(interrupt);
  clearTimeout(kill);
  return code;
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

async function readReport(path: string): Promise<TestReport> {
  try {
    return readTestReport(await Deno.readTextFile(path));
  } catch (error) {
    // A runner that could not check or load the tests writes no report; its exit code says so too.
    if (error instanceof Deno.errors.NotFound) return EMPTY_REPORT;
    throw error;
  }
}

// An installation step that was given up may still hold a pipe, which must not hold up the end.
if (import.meta.main) Deno.exit(await runTests(Deno.args));
