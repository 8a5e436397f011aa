import { runScript } from "./measuring_script.ts";
import { type LoadTimes, runH2load } from "./h2load.ts";
import type { LoadResult } from "../../src/load/load_record.ts";
import { cpuSeconds } from "../../tests/harness/process_metrics.ts";
import { RULES_OF } from "../../tests/harness/bench_rules.ts";
import type { Scenario, TargetName } from "./scenario.ts";
import type { RuleCounts, Target } from "./target.ts";

/** One load on one target, once. */
export interface Round extends LoadTimes {
  readonly scenario: string;
  readonly target: TargetName;
  /** CPU seconds of the server process for 100,000 calls; 0 where the process is not known. */
  readonly cpuSecondsPer100k: number;
  /** Share of one core that the generator used; 0 for h2load, which does not report it. */
  readonly generatorBusy: number;
  /** The share of the less busy one of two workers; absent for one thread. */
  readonly workerShare?: number;
}

/** The context of every round. */
export interface RoundSetup {
  readonly folder: string;
  /** File with the body that h2load sends. */
  readonly bodyFile: string;
  readonly ticksPerSecond: number;
  readonly signal: AbortSignal;
}

/** The amount of load: our own generator takes times, h2load a number of calls. */
interface Amount {
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
  const cpuFor = await watchTarget(target, scenario, options);
  const shareOf = target.name.endsWith("-workers") ? await watchWorkerShare(target.pid ?? 0) : undefined;
  const times = isH2load ? await runH2(target, scenario, options) : await runOwn(target, scenario, options);
  const share = shareOf === undefined ? {} : { workerShare: await shareOf() };
  const cpuSecondsPer100k = await cpuFor(times.calls);
  return { scenario: name, target: target.name, ...times, cpuSecondsPer100k, ...share };
}

/**
 * Runs one load on several targets in many short turns, by one process whose connections stay open, each round of
 * turns in another order; throws if one answer was wrong or one hit was counted wrongly. The CPU of a target is that
 * of the whole time, also while it is the turn of others.
 */
export async function runTurns(
  targets: readonly Target[],
  scenario: Scenario,
  options: RoundSetup & { readonly turnSeconds: number; readonly turns: number; readonly firstKey: number },
): Promise<Round[]> {
  const { name, connections, inFlight, keys, load, batch } = scenario;
  const { turnSeconds, turns, firstKey, signal } = options;
  const watched: { readonly target: TargetName; readonly cpuFor: (calls: number) => Promise<number> }[] = [];
  for (const target of targets) {
    watched.push({ target: target.name, cpuFor: await watchTarget(target, scenario, options) });
  }
  const ports = targets.map(({ port }) => port);
  const calls = { connections, inFlight, keys, firstKey, load, batch };
  const script = { ...calls, ports, turns, seconds: turnSeconds };
  const results = await runScript<LoadResult[][]>("turns.ts", script, signal);
  const rounds: Round[] = [];
  for (const [index, { target, cpuFor }] of watched.entries()) {
    const times = (results[index] ?? []).map((result) => checkedTimes(`${name} on ${target}`, result));
    if (times.length === 0) throw new Error(`Cannot trust run of "${name} on ${target}": it had no turn`);
    const cpuSecondsPer100k = await cpuFor(times.reduce((sum, { calls }) => sum + calls, 0));
    rounds.push(...times.map((turn) => ({ scenario: name, target, ...turn, cpuSecondsPer100k })));
  }
  return rounds;
}

/**
 * Reads what a target has counted and used. What is answered is to be asked after so many calls: it gives the CPU
 * seconds for 100,000 of them, and throws unless the target counted all.
 */
async function watchTarget(
  target: Target,
  { name, batch, load }: Scenario,
  { ticksPerSecond }: RoundSetup,
): Promise<(calls: number) => Promise<number>> {
  const before = await target.counts?.(RULES_OF[load]);
  const cpuBefore = await cpuOf(target, ticksPerSecond);
  return async (calls) => {
    // Being asked for counts takes CPU as well.
    const cpu = await cpuOf(target, ticksPerSecond) - cpuBefore;
    const after = await target.counts?.(RULES_OF[load]);
    if (before !== undefined && after !== undefined) {
      checkCounts(`${name} on ${target.name}`, calls * batch * RULES_OF[load].length, { before, after });
    }
    return cpu / calls * 100_000;
  };
}

async function cpuOf({ name, pid }: Target, ticksPerSecond: number): Promise<number> {
  if (pid === undefined) return 0;
  return await cpuSeconds(pid, ticksPerSecond).catch(() => {
    throw new Error(`Cannot measure the CPU of "${name}": no process has the PID ${pid}`);
  });
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
  const { host, port, expect, caFile, areStatusesOptional } = target;
  const { seconds, warmUpSeconds, signal } = options;
  const calls = { connections, inFlight, keys, load, batch, perSecond };
  const what = `${scenario.name} on ${target.name}`;
  const peer = { host, port, caFile };
  const check = { expect, hasLimit: true, areStatusesOptional };
  return await runGenerator(script, { ...calls, ...peer, ...check, seconds, warmUpSeconds }, {
    what,
    signal,
  });
}

/** Runs a generator in its own process; throws unless every call was answered, and rightly. */
export async function runGenerator(
  script: string,
  options: object,
  { what, signal }: { readonly what: string; readonly signal: AbortSignal },
): Promise<Times> {
  return checkedTimes(what, await runScript(script, options, signal));
}

/** The times of a load; throws unless every call was answered, and rightly. */
function checkedTimes(what: string, result: LoadResult): Times {
  const { errors, statuses, ...times } = result;
  const answers = statuses["OK"] ?? 0;
  if (Object.keys(errors).length > 0 || answers !== times.calls || answers === 0) {
    throw new Error(`Cannot trust run of "${what}": ${JSON.stringify(result)}`);
  }
  return times;
}

/** CPU ticks of the main thread and of each worker of a process. */
async function threadTicks(pid: number): Promise<Map<string, number>> {
  const ticks = new Map<string, number>();
  for await (const { name } of Deno.readDir(`/proc/${pid}/task`)) {
    // A thread may end at any time.
    const stat = await Deno.readTextFile(`/proc/${pid}/task/${name}/stat`).catch(() => "");
    const end = stat.lastIndexOf(")");
    const isWorker = stat.slice(stat.indexOf("(") + 1, end).startsWith("worker-");
    if (!isWorker && name !== String(pid)) continue;
    const fields = stat.slice(end + 2).split(" ");
    ticks.set(name, Number(fields[11]) + Number(fields[12]));
  }
  return ticks;
}

/** The result returns the share of the less busy one of the two busiest threads, from 0 to 0.5, since this call. */
async function watchWorkerShare(pid: number): Promise<() => Promise<number>> {
  const before = await threadTicks(pid);
  return async () => {
    const used = [...await threadTicks(pid)].map(([thread, ticks]) => ticks - (before.get(thread) ?? 0));
    const [first = 0, second = 0] = used.sort((a, b) => b - a);
    return second / (first + second);
  };
}
