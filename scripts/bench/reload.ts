import { join } from "node:path";
import type { LoadsSetup } from "./bench_loads.ts";
import { median } from "../../tests/harness/percentile.ts";
import { until } from "../../tests/harness/until.ts";
import type { WeirProcess } from "../../tests/harness/weir_process.ts";
import { runGenerator } from "./round.ts";
import { startBenchWeir, weirTarget } from "./target.ts";

const RULES = 100_000;
const QUICK_RULES = 5_000;
const CALLS_PER_SECOND = 20_000;
const QUICK_CALLS_PER_SECOND = 2_000;
/** One run of the generator; they follow one another until the rules are loaded. */
const LOAD = { inFlight: 256, warmUpSeconds: 0.3, seconds: 1 } as const;
/** More would take longer than a minute. */
const MOST_ROUNDS = 2;
const LOAD_TIMEOUT_MS = 120_000;
const WATCH = new URL("./slice_watch.ts", import.meta.url).pathname;
const SLICE_LINE = /^longest slice: (\d+\.\d+) ms$/;
const LOADED = "Rules loaded";

/** Effect of a reload of many rules on the deciding thread; medians of the rounds. */
export interface ReloadOutcome {
  readonly rules: number;
  readonly callsPerSecond: number;
  /** The longest slice of the deciding thread before the reload, and during it. */
  readonly longestBeforeMs: number;
  readonly longestMs: number;
  /** From the change of the file to the end of the load. */
  readonly loadSeconds: number;
  readonly rounds: readonly Omit<ReloadOutcome, "rules" | "callsPerSecond" | "rounds">[];
}

type Round = ReloadOutcome["rounds"][number];

/** Reloads many rules under an even load, and checks every answer. */
export async function measureReload(setup: LoadsSetup): Promise<ReloadOutcome> {
  const { isQuick } = setup.options;
  const [rules, callsPerSecond] = isQuick ? [QUICK_RULES, QUICK_CALLS_PER_SECOND] : [RULES, CALLS_PER_SECOND];
  const rounds: Round[] = [];
  for (let number = 1; number <= Math.min(setup.options.rounds, MOST_ROUNDS); number++) {
    const round = await reloadOnce(setup, rules, callsPerSecond);
    rounds.push(round);
    const slice = `longest slice ${round.longestMs.toFixed(1)} ms, ${
      round.longestBeforeMs.toFixed(1)
    } ms before`;
    setup.say(`reload ${number} of ${rules} rules: ${slice}; loaded in ${round.loadSeconds.toFixed(1)} s`);
  }
  const of = (name: keyof Round) => median(rounds.map((round) => round[name]));
  return {
    rules,
    callsPerSecond,
    longestBeforeMs: of("longestBeforeMs"),
    longestMs: of("longestMs"),
    loadSeconds: of("loadSeconds"),
    rounds,
  };
}

async function reloadOnce(
  { options, signal }: LoadsSetup,
  count: number,
  callsPerSecond: number,
): Promise<Round> {
  await using weir = await startBenchWeir({
    BACKEND_TYPE: "memory",
    GRPC_ENGINE: options.engine,
    LOG_LEVEL: "info",
    RUNTIME_WATCH_ROOT: "false",
  }, { flags: [`--preload=${WATCH}`], rules: { "many.yaml": manyRules(count, 1) } });
  const { port } = await weirTarget("memory", weir);
  const flags = { port, ...LOAD, perSecond: callsPerSecond };
  const run = () => runGenerator("load.ts", flags, { what: "calls during a reload", signal });
  await run();
  const before = weir.stdoutLines.length;
  await run();
  const during = weir.stdoutLines.length;
  const loads = loadsOf(weir);
  const next = join(weir.rulesFolder, "..", "next");
  await Deno.writeTextFile(next, manyRules(count, 2));
  const begin = performance.now();
  await Deno.rename(next, join(weir.rulesFolder, "many.yaml"));
  let loadSeconds = 0;
  const loaded = until("the rules to be loaded", () => loadsOf(weir) > loads, { deadlineMs: LOAD_TIMEOUT_MS })
    .then(() => void (loadSeconds = (performance.now() - begin) / 1_000));
  const calls = async () => {
    while (loadSeconds === 0) await run();
    // Once more: not everything is done when the load is reported.
    await run();
  };
  await Promise.all([loaded, calls()]);
  return {
    longestBeforeMs: longestSlice(weir.stdoutLines.slice(before, during)),
    longestMs: longestSlice(weir.stdoutLines.slice(during)),
    loadSeconds,
  };
}

function loadsOf({ stderrLines }: WeirProcess): number {
  return stderrLines.filter((line) => line.includes(LOADED)).length;
}

function longestSlice(lines: readonly string[]): number {
  return Math.max(0, ...lines.map((line) => Number(SLICE_LINE.exec(line)?.[1] ?? 0)));
}

/** Rules of a separate domain, with limits that begin at `least`. */
function manyRules(count: number, least: number): string {
  const rules = Array.from(
    { length: count },
    (_, index) =>
      `  - key: account\n    value: customer_${index.toString().padStart(6, "0")}\n` +
      `    rate_limit: { unit: minute, requests_per_unit: ${index % 1_000 + least} }\n`,
  );
  return `domain: many\ndescriptors:\n${rules.join("")}`;
}
