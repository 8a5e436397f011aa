/**
 * The soak task: runs the tests of `tests/soak`, or those that are named, once per seed, and prints how long each file took.
 * `--seed N[,N…]` repeats the faults of other runs, `--short` repeats less often. Exit code 1 when a test failed.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { PORTS_VARIABLE } from "../tests/harness/free_port.ts";
import { judge, readTestReport, readTestTimes, type ReportedTest } from "../tests/harness/test_report.ts";
import { installTools, printLine } from "./install_tools.ts";

const ROOT = new URL("../", import.meta.url).pathname;
const FOLDER = "tests/soak";
const SUFFIX = "_test.ts";
const MAX_SEED = 2 ** 31;
const LOOPBACK = "127.0.0.1,localhost,::1";

/** Options of a soak. */
interface SoakOptions {
  readonly seeds: readonly number[];
  readonly size: "full" | "short";
  /** Files below the root, sorted. */
  readonly files: readonly string[];
}

/** Reads the arguments of the task; throws `RangeError` or `TypeError` with what is expected. */
export function readSoakOptions(args: readonly string[], known: readonly string[]): SoakOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { seed: { type: "string" }, short: { type: "boolean", default: false } },
  });
  const unknown = positionals.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new RangeError(`Invalid NAME "${unknown}": expected ${known.join(", ")}`);
  }
  return {
    seeds: (values.seed ?? String(1 + Math.floor(Math.random() * MAX_SEED))).split(",").map(seedOf),
    size: values.short ? "short" : "full",
    files: known.filter((name) => positionals.length === 0 || positionals.includes(name))
      .map((name) => `${FOLDER}/${name}${SUFFIX}`),
  };
}

function seedOf(text: string): number {
  const seed = Number(text);
  if (/^\d+$/.test(text) && seed > 0 && seed <= MAX_SEED) return seed;
  throw new RangeError(`Invalid --seed "${text}": expected integers from 1 to ${MAX_SEED}`);
}

/** The names of the soak tests, sorted. */
function soakNames(): string[] {
  const files = [...Deno.readDirSync(join(ROOT, FOLDER))].map(({ name }) => name);
  return files.filter((name) => name.endsWith(SUFFIX)).map((name) => name.slice(0, -SUFFIX.length)).sort();
}

/** Runs the files in one process per seed, prints what happened, and returns whether every test passed. */
export async function soak({ seeds, size, files }: SoakOptions): Promise<boolean> {
  let isGood = true;
  // Short ones wait more than they compute, and have wide bounds for what they measure.
  const parallel = size === "short" ? ["--parallel"] : [];
  for (const seed of seeds) {
    printLine(`seed ${seed}, ${size}`);
    const folder = await Deno.makeTempDir({ prefix: "weir_soak_" });
    const reportPath = join(folder, "report.xml");
    const ports = join(folder, "ports");
    await Deno.mkdir(ports);
    try {
      const { code } = await new Deno.Command(Deno.execPath(), {
        args: ["test", "--no-check", "--allow-all", ...parallel, `--junit-path=${reportPath}`, ...files],
        cwd: ROOT,
        // Tests call loopback servers, which no proxy of the machine can reach.
        env: {
          SOAK_SEED: String(seed),
          SOAK_SIZE: size,
          [PORTS_VARIABLE]: ports,
          NO_PROXY: LOOPBACK,
          no_proxy: LOOPBACK,
        },
        stdin: "null",
      }).spawn().status;
      const xml = await Deno.readTextFile(reportPath);
      const verdict = judge(readTestReport(xml), { code, strict: false });
      for (const line of [...fileLines(xml), ...verdict.lines]) printLine(line);
      isGood &&= verdict.ok;
      if (!verdict.ok) {
        printLine(`repeat with: deno task soak --seed ${seed}${size === "short" ? " --short" : ""}`);
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  }
  return isGood;
}

/** Passed and failed tests of each file, and their time, by a report in JUnit's XML format. */
export function fileLines(xml: string): string[] {
  const { failed, skipped } = readTestReport(xml);
  return [...Map.groupBy(readTestTimes(xml), ({ file }) => file)].map(([file, times]) => {
    const count = (tests: readonly ReportedTest[]) =>
      times.filter(({ name }) => tests.some((test) => test.name === name && test.file === file)).length;
    const [bad, left] = [count(failed), count(skipped)];
    const seconds = times.reduce((sum, time) => sum + time.seconds, 0);
    const notRun = left === 0 ? "" : `, ${left} skipped`;
    return `${file}: ${times.length - bad - left} passed, ${bad} failed${notRun}, ${seconds.toFixed(1)} s`;
  });
}

if (import.meta.main) {
  try {
    const options = readSoakOptions(Deno.args, soakNames());
    await installTools();
    Deno.exit(await soak(options) ? 0 : 1);
  } catch (error) {
    printLine(error instanceof Error ? error.message : String(error));
    Deno.exit(1);
  }
}
