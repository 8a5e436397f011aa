import { clockTicks } from "./cpu_seconds.ts";
import type { BenchOptions, TargetName } from "./options.ts";
import { encodeRequest, frameMessage, type LoadName, readOverallCode } from "./rate_limit_message.ts";
import { sumOfCounters } from "./redis_sum.ts";
import { type Round, type RoundSetup, runRound } from "./round.ts";
import { singleCall } from "./single_call.ts";
import { startTarget, type Target } from "./target.ts";

/** How long a target may take from listening to its first good answer. */
const READY_MS = 15_000;
/** Calls and time of the round before the first, which warms the server and is not reported. */
const WARM_UP = { calls: 5_000, seconds: 1 } as const;

/** What was checked beside each answer; every line is a check that held. */
export interface BenchOutcome {
  readonly rounds: readonly Round[];
  readonly checks: readonly string[];
}

/** Measures every load on every target, the targets in turn; throws at the first thing that is not right. */
export async function bench(
  options: BenchOptions,
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<BenchOutcome> {
  await using owned = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "weir-bench-" });
  owned.defer(() => Deno.remove(folder, { recursive: true }));
  const bodyFile = `${folder}/body`;
  await Deno.writeFile(bodyFile, frameMessage(encodeRequest("one", "k0")));
  const setup = { folder, bodyFile, ticksPerSecond: await clockTicks(), signal };
  const targets: Target[] = [];
  const answered = new Map<TargetName, number>();
  for (const name of options.targets) {
    say(`start ${name}`);
    const target = await startTarget(name, owned, folder);
    await firstAnswer(target, signal);
    targets.push(target);
    answered.set(name, 1);
  }
  const rounds: Round[] = [];
  for (const load of options.loads) {
    rounds.push(...await measureLoad(load, { targets, options, setup, say, answered }));
  }
  const checks = [];
  for (const target of targets) checks.push(...await lastChecks(target, answered.get(target.name) ?? 0));
  return { rounds, checks };
}

async function measureLoad(load: LoadName, bench: {
  readonly targets: readonly Target[];
  readonly options: BenchOptions;
  readonly setup: RoundSetup;
  readonly say: (line: string) => void;
  readonly answered: Map<TargetName, number>;
}): Promise<Round[]> {
  const { options, setup, answered } = bench;
  const rounds: Round[] = [];
  const rates = new Map<TargetName, number>();
  for (let number = 0; number <= options.rounds; number++) {
    for (const target of bench.targets) {
      const rate = rates.get(target.name);
      const amount = rate === undefined ? WARM_UP : {
        calls: Math.max(1_000, Math.round(rate * options.seconds)),
        seconds: options.seconds,
      };
      const round = await runRound(target, load, { ...setup, ...amount });
      setup.signal.throwIfAborted();
      rates.set(target.name, round.callsPerSecond);
      answered.set(target.name, (answered.get(target.name) ?? 0) + round.calls);
      if (number > 0) rounds.push(round);
      const title = number === 0 ? "warm-up" : `round ${number}`;
      bench.say(`${title}: ${load} on ${target.name}: ${Math.round(round.callsPerSecond)} requests/s`);
    }
  }
  return rounds;
}

/** Waits for the first good answer: a cache may still be connecting when the port is open. */
async function firstAnswer(target: Target, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + READY_MS;
  for (;;) {
    signal.throwIfAborted();
    try {
      return await checkedCall(target);
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function checkedCall(target: Target): Promise<void> {
  const request = encodeRequest("one", "k0");
  const answer = await singleCall(target.port, request);
  const isRight = target.expect === "echo"
    ? answer.join() === request.join()
    : readOverallCode(answer) === target.expect;
  if (!isRight) throw new Error(`Cannot trust "${target.name}": a grpc-js client got a wrong answer`);
}

async function lastChecks(target: Target, answeredBefore: number): Promise<string[]> {
  await checkedCall(target);
  const answered = answeredBefore + 1;
  const checks = [`${target.name}: a call by grpc-js has status OK and the right answer`];
  if (target.counts !== undefined) {
    const counts = await Promise.all([target.counts("one"), target.counts("keys")]);
    const decided = counts.reduce((sum, one) => sum + one.decided, 0);
    checks.push(equal(`${target.name}: hits that /stats says were decided`, decided, answered));
  }
  if (target.redisPort !== undefined) {
    checks.push(
      equal(`${target.name}: sum of all counters in redis`, await sumOfCounters(target.redisPort), answered),
    );
  }
  return checks;
}

function equal(what: string, found: number, answered: number): string {
  if (found === answered) return `${what} = ${found} = calls answered`;
  throw new Error(`Cannot trust run: ${what} is ${found}, calls answered are ${answered}`);
}
