import { outputOf } from "./child.ts";
import { type LoadTimes, runH2load } from "./h2load.ts";
import type { LoadResult } from "./load_record.ts";
import { cpuSeconds } from "./process_figures.ts";
import { RULES_OF } from "./rate_limit_message.ts";
import type { Scenario, TargetName } from "./scenario.ts";
import type { RuleCounts, Target } from "./target.ts";

/** One load on one target, once. */
export interface Round extends LoadTimes {
  readonly scenario: string;
  readonly target: TargetName;
  /** CPU seconds of the server process for 100,000 calls; 0 where there is no server of ours. */
  readonly cpuSecondsPer100k: number;
  /** How much of one core the generator used; 0 for h2load, which does not tell. */
  readonly generatorBusy: number;
}

/** What every round needs. */
export interface RoundSetup {
  readonly folder: string;
  /** File with the body that h2load sends. */
  readonly bodyFile: string;
  readonly ticksPerSecond: number;
  readonly signal: AbortSignal;
}

/** How much load: our own generator takes times, h2load a number of calls. */
export interface Amount {
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly calls: number;
}

/** Runs one load on one target; throws if one answer was wrong or one hit was counted wrongly. */
export async function runRound(
  target: Target,
  scenario: Scenario,
  options: RoundSetup & Amount,
): Promise<Round> {
  const { name, isH2load } = scenario;
  const before = await readings(target, scenario, options);
  const times = isH2load ? await runH2(target, scenario, options) : await runOwn(target, scenario, options);
  const cpuSecondsPer100k = await checkedCpu(target, scenario, { ...options, before, calls: times.calls });
  return { scenario: name, target: target.name, ...times, cpuSecondsPer100k };
}

/**
 * Runs one load on several targets in many short turns, by one process whose connections stay open, each round of
 * turns in another order; throws if one answer was wrong or one hit was counted wrongly. The CPU of a target is that
 * of the whole time, also while it is the turn of others.
 */
export async function runTurns(
  targets: readonly Target[],
  scenario: Scenario,
  options: RoundSetup & { readonly turnSeconds: number; readonly turns: number },
): Promise<Round[]> {
  const { name, connections, inFlight, keys, load, batch } = scenario;
  const { turnSeconds, turns, signal } = options;
  const before: Readings[] = [];
  for (const target of targets) before.push(await readings(target, scenario, options));
  const flags = { connections, "in-flight": inFlight, keys, load, batch, turns, seconds: turnSeconds };
  const ports = targets.map(({ port }) => port).join(",");
  const results: LoadResult[][] = JSON.parse(await outputOfScript("turns.ts", { ...flags, ports }, signal));
  const rounds: Round[] = [];
  for (const [index, target] of targets.entries()) {
    const times = (results[index] ?? []).map((result) => checkedTimes(`${name} on ${target.name}`, result));
    if (times.length === 0) {
      throw new Error(`Cannot trust run of "${name} on ${target.name}": it had no turn`);
    }
    const calls = times.reduce((sum, turn) => sum + turn.calls, 0);
    const cpuSecondsPer100k = await checkedCpu(target, scenario, {
      ...options,
      before: before[index],
      calls,
    });
    rounds.push(
      ...times.map((turn) => ({ scenario: name, target: target.name, ...turn, cpuSecondsPer100k })),
    );
  }
  return rounds;
}

/** What a target has counted and used. */
interface Readings {
  readonly counts: RuleCounts | undefined;
  readonly cpu: number;
}

async function readings(
  target: Target,
  { load }: Scenario,
  { ticksPerSecond }: RoundSetup,
): Promise<Readings> {
  const counts = await target.counts?.(RULES_OF[load]);
  return { counts, cpu: await cpuOf(target, ticksPerSecond) };
}

async function cpuOf({ pid }: Target, ticksPerSecond: number): Promise<number> {
  return pid === undefined ? 0 : await cpuSeconds(pid, ticksPerSecond);
}

/** CPU seconds for 100,000 calls; throws unless the target counted all of them. */
async function checkedCpu(
  target: Target,
  scenario: Scenario,
  { before, calls, ...setup }: RoundSetup & { readonly before: Readings | undefined; readonly calls: number },
): Promise<number> {
  const { name, batch, load } = scenario;
  // Being asked for counts takes CPU as well.
  const cpu = await cpuOf(target, setup.ticksPerSecond);
  const after = await target.counts?.(RULES_OF[load]);
  if (before?.counts !== undefined && after !== undefined) {
    const counts = { before: before.counts, after };
    checkCounts(`${name} on ${target.name}`, calls * batch * RULES_OF[load].length, counts);
  }
  return (cpu - (before?.cpu ?? 0)) / calls * 100_000;
}

/** Throws unless every hit was counted and decided exactly once. */
export function checkCounts(
  what: string,
  hits: number,
  counts: { readonly before: RuleCounts; readonly after: RuleCounts },
): void {
  const totalHits = counts.after.totalHits - counts.before.totalHits;
  const decided = counts.after.decided - counts.before.decided;
  if (totalHits === hits && decided === hits) return;
  throw new Error(
    `Cannot trust run of "${what}": ${hits} hits were answered, /stats counted ${totalHits} and decided ${decided}`,
  );
}

type Times = LoadTimes & { readonly generatorBusy: number };

async function runH2(target: Target, scenario: Scenario, options: RoundSetup & Amount): Promise<Times> {
  const times = await runH2load({
    port: target.port,
    connections: scenario.connections,
    inFlight: scenario.inFlight,
    calls: options.calls,
    bodyFile: options.bodyFile,
    logFile: `${options.folder}/h2load.log`,
    signal: options.signal,
  });
  return { ...times, generatorBusy: 0 };
}

async function runOwn(target: Target, scenario: Scenario, options: RoundSetup & Amount): Promise<Times> {
  const script = target.name === "bare" ? "paced_kv.ts" : "load.ts";
  const { connections, inFlight, keys, load, batch, perSecond } = scenario;
  const flags: Record<string, string | number | undefined> = {
    port: target.port,
    seconds: options.seconds,
    "warm-up": options.warmUpSeconds,
    "per-second": perSecond,
    ...(target.name === "bare"
      ? {}
      : { connections, "in-flight": inFlight, keys, load, batch, expect: target.expect, ca: target.caFile }),
  };
  return await runGenerator(script, flags, {
    what: `${scenario.name} on ${target.name}`,
    signal: options.signal,
  });
}

/** Runs a generator in a process of its own; throws unless every call was answered, and rightly. */
export async function runGenerator(
  script: string,
  flags: Readonly<Record<string, string | number | undefined>>,
  { what, signal }: { readonly what: string; readonly signal: AbortSignal },
): Promise<Times> {
  const output = await outputOfScript(script, flags, signal);
  return checkedTimes(what, JSON.parse(output));
}

/** Runs a script of the bench with flags; answers what it prints. */
async function outputOfScript(
  script: string,
  flags: Readonly<Record<string, string | number | undefined>>,
  signal: AbortSignal,
): Promise<string> {
  const given = Object.entries(flags).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, `${value}`]
  );
  const path = new URL(script, import.meta.url).pathname;
  return await outputOf(Deno.execPath(), ["run", "-A", path, ...given], signal);
}

/** The times of a load; throws unless every call was answered, and rightly. */
function checkedTimes(what: string, result: LoadResult): Times {
  const { errors, statuses, ...times } = result;
  const answers = statuses["http 200, grpc 0"] ?? 0;
  if (Object.keys(errors).length > 0 || answers !== times.calls || answers === 0) {
    throw new Error(`Cannot trust run of "${what}": ${JSON.stringify(result)}`);
  }
  return times;
}
