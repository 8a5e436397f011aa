import { parseArgs } from "node:util";
import { seededRandom } from "../../src/base/seeded_random.ts";
import type { FailedTest } from "../../tests/harness/test_report.ts";
import { printLine } from "../install_tools.ts";
import type { TestRun } from "./join_runs.ts";
import { processTree } from "./process_tree.ts";

/** Options of a stress. */
interface StressOptions {
  /** Rounds over all files. */
  readonly rounds: number;
  /** No round begins after so many minutes. */
  readonly minutes: number;
  readonly seed: number;
}

/** A failure, and the seed of the round in which it was seen first. */
interface StressFailure extends FailedTest {
  readonly seed: number;
  /** Number of rounds that had it. */
  readonly rounds: number;
}

const MAX_SEED = 2 ** 31;
const BUSY_LOOPS = 2;
/** Time between two pauses of the tests, and the length of a pause, both at most. */
const MAX_GAP_MS = 2_000;
const MAX_PAUSE_MS = 400;

/** Reads `--rounds=N`, `--minutes=N` and `--seed=N`, and leaves the rest; throws `RangeError` for a wrong number. */
export function readStressOptions(
  args: readonly string[],
): StressOptions & { readonly rest: readonly string[] } {
  const known = /^--(?:rounds|minutes|seed)=/;
  const { values } = parseArgs({
    args: args.filter((arg) => known.test(arg)),
    options: { rounds: { type: "string" }, minutes: { type: "string" }, seed: { type: "string" } },
  });
  const numberOf = (name: "rounds" | "minutes" | "seed", absent: number) => {
    const text = values[name];
    const number = Number(text ?? absent);
    if (Number.isInteger(number) && number > 0 && number <= MAX_SEED) return number;
    throw new RangeError(`Invalid --${name} "${text}": expected an integer from 1 to ${MAX_SEED}`);
  };
  return {
    rounds: numberOf("rounds", 10),
    minutes: numberOf("minutes", 60),
    seed: numberOf("seed", 1 + Math.floor(Math.random() * (MAX_SEED - 1))),
    rest: args.filter((arg) => !known.test(arg)),
  };
}

/**
 * Repeats rounds of tests while busy loops take the processors and the tests' processes are stopped for moments. Prints each
 * failure once, with the seed of its round; returns all of them.
 */
export async function stress(
  { rounds, minutes, seed }: StressOptions,
  runRound: (seed: number) => Promise<readonly TestRun[]>,
): Promise<readonly StressFailure[]> {
  const failures = new Map<string, StressFailure>();
  const end = performance.now() + minutes * 60_000;
  let done = 0;
  for (; done < rounds && performance.now() < end; done++) {
    const roundSeed = (seed + done) % MAX_SEED;
    printLine(`stress: round ${done + 1} of at most ${rounds}, seed ${roundSeed}`);
    const found = await disturbed(roundSeed, () => runRound(roundSeed));
    for (const test of found.flatMap(failuresOf)) {
      const key = `${test.file} ${test.name}`;
      const known = failures.get(key);
      if (known === undefined) {
        printLine(`stress: seed ${roundSeed}: ${test.name} (${test.file}): ${test.reason}`);
      }
      failures.set(
        key,
        known === undefined
          ? { ...test, seed: roundSeed, rounds: 1 }
          : { ...known, rounds: known.rounds + 1 },
      );
    }
  }
  printLine(`stress: ${done} rounds from seed ${seed} on, ${failures.size} tests failed`);
  return [...failures.values()];
}

function failuresOf({ name, code, report }: TestRun): readonly FailedTest[] {
  if (code === 0 || report.failed.length > 0) return report.failed;
  return [{ name: `the runner of "${name}"`, file: "", reason: `ended with code ${code}` }];
}

/** Runs while loops at normal priority compete, and while every process that this one has started pauses now and then. */
async function disturbed<T>(seed: number, run: () => Promise<T>): Promise<T> {
  const random = seededRandom(seed);
  const loops = Array.from(
    { length: BUSY_LOOPS },
    () => new Deno.Command("sh", { args: ["-c", "while :; do :; done"], stdin: "null" }).spawn(),
  );
  const spared = new Set(processTree(Deno.pid));
  let timer: ReturnType<typeof setTimeout> | undefined;
  let paused: readonly number[] = [];
  const resume = () => {
    signal(paused, "SIGCONT");
    paused = [];
    timer = setTimeout(pause, random() * MAX_GAP_MS);
  };
  const pause = () => {
    paused = processTree(Deno.pid).filter((pid) => !spared.has(pid) && random() < 0.5 && !isStopped(pid));
    signal(paused, "SIGSTOP");
    timer = setTimeout(resume, random() * MAX_PAUSE_MS);
  };
  timer = setTimeout(pause, random() * MAX_GAP_MS);
  try {
    return await run();
  } finally {
    clearTimeout(timer);
    signal(paused, "SIGCONT");
    for (const loop of loops) loop.kill("SIGKILL");
    await Promise.all(loops.map(({ status }) => status));
  }
}

/** One that stopped itself, or that a test stopped, stays as it is. */
function isStopped(pid: number): boolean {
  try {
    return / [Tt] /.test(Deno.readTextFileSync(`/proc/${pid}/stat`).split(")").at(-1) ?? "");
  } catch {
    return false;
  }
}

function signal(pids: readonly number[], name: Deno.Signal): void {
  for (const pid of pids) {
    try {
      Deno.kill(pid, name);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}

/** The same items in an order that the seed decides. */
export function shuffled<T>(items: readonly T[], seed: number): T[] {
  const random = seededRandom(seed);
  return items.map((item) => ({ item, rank: random() })).sort((a, b) => a.rank - b.rank).map(({ item }) =>
    item
  );
}
