import { outputOf } from "./child.ts";
import { cpuSeconds } from "./cpu_seconds.ts";
import { type LoadTimes, runH2load } from "./h2load.ts";
import type { LoadResult } from "./load_record.ts";
import type { TargetName } from "./options.ts";
import type { LoadName } from "./rate_limit_message.ts";
import type { RuleCounts, Target } from "./target.ts";

/** Connections of every load, and calls in flight on each. */
export const CONNECTIONS = 8;
/** See `CONNECTIONS`. */
export const IN_FLIGHT = 32;
/** Different keys of the load `keys`. */
export const KEYS = 10_000;

/** One load on one target, once. */
export interface Round extends LoadTimes {
  readonly load: LoadName;
  readonly target: TargetName;
  /** CPU seconds of the server process for 100,000 calls. */
  readonly cpuSecondsPer100k: number;
}

/** What every round needs. */
export interface RoundSetup {
  readonly folder: string;
  readonly bodyFile: string;
  readonly ticksPerSecond: number;
  readonly signal: AbortSignal;
}

/** How much load: h2load wants a number of calls, our own generator a time. */
export interface Amount {
  readonly seconds: number;
  readonly calls: number;
}

/** Runs one load on one target; throws if one answer was wrong or one call was counted wrongly. */
export async function runRound(target: Target, load: LoadName, options: RoundSetup & Amount): Promise<Round> {
  const countsBefore = await target.counts?.(load);
  const cpuBefore = await cpuSeconds(target.pid, options.ticksPerSecond);
  const times = load === "one" ? await runOne(target, options) : await runKeys(target, options);
  const cpu = await cpuSeconds(target.pid, options.ticksPerSecond) - cpuBefore;
  const countsAfter = await target.counts?.(load);
  if (countsBefore !== undefined && countsAfter !== undefined) {
    checkCounts(`${load} on ${target.name}`, times.calls, { before: countsBefore, after: countsAfter });
  }
  return { load, target: target.name, ...times, cpuSecondsPer100k: cpu / times.calls * 100_000 };
}

/** Throws unless every call was counted and decided exactly once. */
export function checkCounts(
  what: string,
  calls: number,
  counts: { readonly before: RuleCounts; readonly after: RuleCounts },
): void {
  const totalHits = counts.after.totalHits - counts.before.totalHits;
  const decided = counts.after.decided - counts.before.decided;
  if (totalHits === calls && decided === calls) return;
  throw new Error(
    `Cannot trust run of "${what}": ${calls} calls were answered, /stats counted ${totalHits} and decided ${decided}`,
  );
}

function runOne(target: Target, options: RoundSetup & Amount): Promise<LoadTimes> {
  return runH2load({
    port: target.port,
    connections: CONNECTIONS,
    inFlight: IN_FLIGHT,
    calls: options.calls,
    bodyFile: options.bodyFile,
    logFile: `${options.folder}/h2load.log`,
    signal: options.signal,
  });
}

async function runKeys(target: Target, options: RoundSetup & Amount): Promise<LoadTimes> {
  const output = await outputOf(Deno.execPath(), [
    ...["run", "-A", new URL("load.ts", import.meta.url).pathname],
    ...["--port", `${target.port}`, "--connections", `${CONNECTIONS}`, "--in-flight", `${IN_FLIGHT}`],
    ...["--keys", `${KEYS}`, "--load", "keys", "--expect", target.expect, "--seconds", `${options.seconds}`],
  ], options.signal);
  const { errors, statuses, ...times }: LoadResult = JSON.parse(output);
  const answers = statuses["http 200, grpc 0"] ?? 0;
  if (Object.keys(errors).length > 0 || answers !== times.calls || answers === 0) {
    throw new Error(`Cannot trust run of "keys on ${target.name}": ${output.trim()}`);
  }
  return times;
}
