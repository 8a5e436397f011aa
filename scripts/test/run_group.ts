import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { heldUntilAborted } from "../../src/base/wait.ts";
import { EMPTY_REPORT, readTestReport, readTestTimes } from "../../tests/harness/test_report.ts";
import { printLine } from "../install_tools.ts";
import type { TestRun } from "./join_runs.ts";
import { endProcesses, processTree } from "./process_tree.ts";
import type { TestGroup } from "./test_groups.ts";
import { testModules } from "./test_modules.ts";

/** Options of a group. */
export interface GroupOptions {
  readonly root: string;
  /** For reports and for output that is kept back. */
  readonly folder: string;
  /** Further arguments of the runner. */
  readonly args: readonly string[];
  /** Variables of the runner's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Its output is shown as it comes; else what it says of failures is, after its end, so that no two mix. */
  readonly isShown: boolean;
  /** Nothing of its output is shown. */
  readonly isQuiet?: boolean;
  /** Aborted when its time is over. */
  readonly overdue: AbortSignal;
  /** Its time is also over when none of its tests ends for so long, unless it is shown. */
  readonly stallMs: number;
  readonly clock?: Clock;
  /** Time that a runner that was interrupted has to say what it was waiting for. */
  readonly graceMs: number;
}

/** Time that the last of its output is waited for: a process that it left behind may hold the pipe. */
const OUTPUT_MS = 10_000;
const LAST_LINES = 200;

/** Runs a group of tests in its own process, and ends it with all that it started when it takes too long or hangs. */
export async function runGroup(group: TestGroup, options: GroupOptions): Promise<TestRun> {
  const { root, folder, args, env, isShown, overdue, stallMs, clock = systemClock } = options;
  const reportPath = join(folder, `${group.name.replaceAll(/[ /]/g, "_")}.xml`);
  const reporter = args.some((arg) => arg.startsWith("--reporter")) ? [] : ["--reporter=dot"];
  const flags = ["--parallel", "--no-check", "--doc", ...group.flags, `--junit-path=${reportPath}`];
  const begin = performance.now();
  const output = isShown ? "inherit" : "piped";
  const child = new Deno.Command(Deno.execPath(), {
    args: ["test", ...flags, ...reporter, ...args, ...await testModules(group, options)],
    cwd: root,
    // Tests call loopback servers, which no proxy of the machine can reach.
    env: {
      ...env,
      DENO_JOBS: String(group.jobs),
      NO_PROXY: "127.0.0.1,localhost,::1",
      no_proxy: "127.0.0.1,localhost,::1",
    },
    stdin: "null",
    stdout: output,
    stderr: output,
  }).spawn();
  const kept = isShown ? undefined : new KeptOutput(child, (run) => clock.after(stallMs, run));
  const over = heldUntilAborted(overdue, ...kept === undefined ? [] : [kept.stalled]);
  const { code } = await endedInTime(child, over, options);
  if (code !== 0 && options.isQuiet !== true) await kept?.print(group.name);
  const seconds = Math.round((performance.now() - begin) / 1_000);
  printLine(`tests of "${group.name}": ended with code ${code} after ${seconds} s`);
  return {
    name: group.name,
    code,
    ...await readReport(reportPath),
    ...over.aborted ? { isInterrupted: true } : {},
  };
}

async function endedInTime(
  child: Deno.ChildProcess,
  over: AbortSignal,
  { graceMs }: Pick<GroupOptions, "graceMs">,
): Promise<Deno.CommandStatus> {
  let started: readonly number[] = [];
  let kill: ReturnType<typeof setTimeout> | undefined;
  const interrupt = () => {
    started = processTree(child.pid).slice(1);
    // The runner answers with the names of the tests that it was waiting for.
    child.kill("SIGINT");
    kill = setTimeout(() => child.kill("SIGKILL"), graceMs);
  };
  over.addEventListener("abort", interrupt, { once: true });
  try {
    return await child.status;
  } finally {
    over.removeEventListener("abort", interrupt);
    clearTimeout(kill);
    // After this process nothing would end them.
    endProcesses(started);
  }
}

class KeptOutput {
  readonly #parts: Uint8Array[] = [];
  readonly #read: Promise<unknown>;
  readonly #stalling = new AbortController();
  readonly #onStall: (run: () => void) => () => void;
  #cancel = () => {};

  constructor({ stdout, stderr }: Deno.ChildProcess, onStall: (run: () => void) => () => void) {
    this.#onStall = onStall;
    this.#awaitMore();
    this.#read = Promise.all([stdout, stderr].map((stream) => this.#collect(stream)))
      .finally(() => this.#cancel());
  }

  /** Aborted when nothing more is said for so long: the runner says something about each test that ends. */
  get stalled(): AbortSignal {
    return this.#stalling.signal;
  }

  async print(name: string): Promise<void> {
    await Promise.race([this.#read, sleep(OUTPUT_MS, undefined, { ref: false })]);
    const decoder = new TextDecoder();
    const text = this.#parts.map((part) => decoder.decode(part, { stream: true })).join("");
    printLine(`\ntests of "${name}":`);
    printLine(failuresIn(text));
  }

  async #collect(stream: ReadableStream<Uint8Array>): Promise<void> {
    for await (const part of stream) {
      this.#parts.push(part);
      this.#awaitMore();
    }
  }

  #awaitMore(): void {
    this.#cancel();
    this.#cancel = this.#onStall(() => this.#stalling.abort());
  }
}

/** The failures in the output of a runner; without any, its last lines. */
function failuresIn(output: string): string {
  const lines = stripVTControlCharacters(output).trimEnd().split("\n");
  const begin = lines.findIndex((line) => line.trim() === "ERRORS");
  return lines.slice(begin === -1 ? -LAST_LINES : begin).join("\n");
}

async function readReport(path: string): Promise<Pick<TestRun, "report" | "times">> {
  try {
    const xml = await Deno.readTextFile(path);
    return { report: readTestReport(xml), times: readTestTimes(xml) };
  } catch (error) {
    // A runner that could not check or load the tests writes no report; its exit code says so too.
    if (error instanceof Deno.errors.NotFound) return { report: EMPTY_REPORT };
    throw error;
  }
}
