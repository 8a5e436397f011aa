import type { BenchOptions } from "./options.ts";
import { clockTicks } from "../../tests/harness/process_metrics.ts";
import { messageProblem } from "../../tests/harness/bench_answer.ts";
import {
  encodeRequest,
  isLasting,
  type LoadName,
  RULE_NAMES,
  RULES_OF,
} from "../../tests/harness/bench_rules.ts";
import { hostPort } from "../../src/base/host_port.ts";
import { framed } from "../../src/grpc/native/message_reader.ts";
import { RATE_LIMIT_PATH } from "../../src/wire/rls.ts";
import { summarize } from "./report.ts";
import { type Round, type RoundSetup, runRound, runTurns } from "./round.ts";
import { type Scenario, scenariosOf, type TargetName } from "./scenario.ts";
import { type CounterStore, type Target, Targets } from "./target.ts";
import { Client, credentials } from "@grpc/grpc-js";
import { Buffer } from "node:buffer";

/** Time that a target may take from listening to its first good answer. */
const READY_MS = 15_000;
/** The first load on a target, which warms the server and is not reported. */
const SERVER_WARM_UP = { calls: 5_000, seconds: 0.7, warmUpSeconds: 0.1 } as const;
/** The same with `--quick`, unless its runs are longer. A generator that has just started may make no call in less. */
const QUICK_WARM_UP_SECONDS = 0.5;

/** The rounds of a run, and its checks. */
interface LoadsOutcome {
  readonly rounds: readonly Round[];
  /** Checks in addition to those of each response; every line is a check that held. */
  readonly checks: readonly string[];
}

/** The context of a run. */
export interface LoadsSetup {
  readonly options: BenchOptions;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

/**
 * So many turns, each with such a part of the time, on each set of processes that is compared by pairs; before them
 * those that are not reported, in which what one call in a hundred needs is compiled as well.
 */
const PAIRED_WARM_UP_TURNS = 4;
const PAIRED_TURNS = 10;
const PAIRED_SHARE = 5;

/** Measures every load on its targets, the targets in turn; throws at the first thing that is not right. */
export async function benchLoads(setup: LoadsSetup): Promise<LoadsOutcome> {
  const { options } = setup;
  const scenarios = scenariosOf(options);
  const plain = scenarios.filter(({ isPaired }) => isPaired !== true);
  const outcomes = [await benchOnSameProcesses(setup, plain)];
  for (const scenario of scenarios.filter(({ isPaired }) => isPaired === true)) {
    outcomes.push(await benchPairs(setup, scenario));
  }
  return {
    rounds: outcomes.flatMap(({ rounds }) => rounds),
    checks: outcomes.flatMap(({ checks }) => checks),
  };
}

/** Two processes of one program differ by more than what is compared here, so each round begins new ones. */
async function benchPairs(setup: LoadsSetup, scenario: Scenario): Promise<LoadsOutcome> {
  const rounds: Round[] = [];
  let checks: readonly string[] = [];
  for (let number = 1; number <= setup.options.rounds; number++) {
    const outcome = await benchOnSameProcesses(setup, [scenario]);
    rounds.push(...outcome.rounds);
    checks = outcome.checks;
  }
  return { rounds, checks };
}

async function benchOnSameProcesses(
  { options, signal, say }: LoadsSetup,
  scenarios: readonly Scenario[],
): Promise<LoadsOutcome> {
  await using owned = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "weir-bench-" });
  owned.defer(() => Deno.remove(folder, { recursive: true }));
  const bodyFile = `${folder}/body`;
  await Deno.writeFile(bodyFile, framed(encodeRequest("one", ["k0"])));
  const setup = { folder, bodyFile, ticksPerSecond: await clockTicks(), signal };
  const targets = new Targets({ ...options, owned, folder });
  const bench = new LoadBench({ options, signal, say }, targets, setup);
  const rounds: Round[] = [];
  for (const scenario of scenarios) {
    rounds.push(...await (scenario.isPaired ? bench.measureInTurns(scenario) : bench.measure(scenario)));
  }
  return { rounds, checks: await bench.lastChecks() };
}

class LoadBench {
  readonly #setup: LoadsSetup;
  readonly #targets: Targets;
  readonly #roundSetup: RoundSetup;
  readonly #ready = new Map<TargetName, Target>();
  /** Hits that were answered, by target. */
  readonly #answered = new Map<TargetName, number>();
  /** Hits that were answered and whose counters last, by where these are. */
  readonly #stored = new Map<CounterStore, number>();

  constructor(setup: LoadsSetup, targets: Targets, roundSetup: RoundSetup) {
    this.#setup = setup;
    this.#targets = targets;
    this.#roundSetup = roundSetup;
  }

  async measure(scenario: Scenario): Promise<Round[]> {
    const { options } = this.#setup;
    // The last first: a peer that answers wrongly is known before any other server is started.
    for (const name of scenario.targets.toReversed()) await this.#readyTarget(name, scenario);
    const rates = new Map<TargetName, number>();
    const rounds: Round[] = [];
    const { seconds, warmUpSeconds } = options;
    for (let number = scenario.isH2load ? 0 : 1; number <= options.rounds; number++) {
      for (const name of scenario.targets) {
        const rate = rates.get(name);
        // h2load takes a number of calls, so a first short run finds out how many are right.
        const calls = rate === undefined ? SERVER_WARM_UP.calls : Math.max(1_000, Math.round(rate * seconds));
        const round = await this.#run(scenario, name, { calls, seconds, warmUpSeconds });
        rates.set(name, round.callsPerSecond);
        if (number > 0) rounds.push(round);
        this.#say(number === 0 ? "trial" : `round ${number}`, round);
      }
    }
    return rounds;
  }

  /** Measures targets in so many short turns that a ratio of a few percent can be seen. */
  async measureInTurns(scenario: Scenario): Promise<Round[]> {
    const { options, signal } = this.#setup;
    const targets: Target[] = [];
    for (const name of scenario.targets) {
      await this.#readyTarget(name, scenario);
      targets.push(await this.#targets.get(name));
    }
    const turnSeconds = options.seconds / PAIRED_SHARE;
    let rounds: Round[] = [];
    for (const [number, turns] of [PAIRED_WARM_UP_TURNS, PAIRED_TURNS].entries()) {
      const firstKey = scenario.areKeysNew === true ? number * scenario.keys : 0;
      rounds = await runTurns(targets, scenario, { ...this.#roundSetup, turnSeconds, turns, firstKey });
      signal.throwIfAborted();
      for (const target of targets) {
        const own = rounds.filter((round) => round.target === target.name);
        const calls = own.reduce((sum, round) => sum + round.calls, 0);
        this.#count(target, scenario.load, calls * scenario.batch);
      }
    }
    for (const { median, toFirst, ...summary } of summarize(rounds)) {
      const ratio = toFirst === undefined ? "" : `, ${toFirst.toFixed(3)} of the first`;
      this.#say(`${PAIRED_TURNS} turns${ratio}`, { ...summary, ...median });
    }
    return rounds;
  }

  /** Throws unless every target still answers, and holds as many hits as were answered. */
  async lastChecks(): Promise<string[]> {
    const checks: string[] = [];
    for (const target of this.#ready.values()) {
      if (target.name !== "bare" && target.caFile === undefined) {
        await this.#checkedCall(target);
        checks.push(`${target.name}: a call by grpc-js has status OK and the right answer`);
      }
      const answered = this.#answered.get(target.name) ?? 0;
      if (target.counts === undefined) continue;
      const { decided } = await target.counts(RULE_NAMES);
      checks.push(equal(`${target.name}: hits that /stats says were decided`, decided, answered));
    }
    for (const [{ name, sum }, stored] of this.#stored) {
      checks.push(equal(`${name}: sum of all counters`, await sum(), stored));
    }
    return checks;
  }

  async #readyTarget(name: TargetName, scenario: Scenario): Promise<void> {
    if (this.#ready.has(name)) return;
    const target = await this.#targets.get(name);
    this.#ready.set(name, target);
    if (name === "bare") return;
    if (target.caFile === undefined) await this.#firstAnswer(target);
    // Turns have their own warm-up.
    if (scenario.isPaired === true) return;
    const { isH2load: _, perSecond: _rate, ...plain } = scenario;
    const { isQuick, seconds: measured } = this.#setup.options;
    const seconds = isQuick ? Math.max(measured, QUICK_WARM_UP_SECONDS) : SERVER_WARM_UP.seconds;
    await this.#run({ ...plain, name: `warm-up of ${name}` }, name, { ...SERVER_WARM_UP, seconds });
  }

  async #run(scenario: Scenario, name: TargetName, amount: {
    readonly calls: number;
    readonly seconds: number;
    readonly warmUpSeconds: number;
  }): Promise<Round> {
    const target = await this.#targets.get(name);
    const round = await runRound(target, scenario, { ...this.#roundSetup, ...amount });
    this.#setup.signal.throwIfAborted();
    this.#count(target, scenario.load, round.calls * scenario.batch);
    return round;
  }

  /** Waits for the first good answer: a cache may still be connecting when the port of a new server is open. */
  async #firstAnswer(target: Target): Promise<void> {
    const deadline = performance.now() + (target.host === undefined ? READY_MS : 0);
    for (;;) {
      this.#setup.signal.throwIfAborted();
      try {
        return await this.#checkedCall(target);
      } catch (error) {
        if (performance.now() > deadline) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async #checkedCall(target: Target): Promise<void> {
    const { name, host = "127.0.0.1", port, expect, areStatusesOptional } = target;
    const request = encodeRequest("one", ["k0"]);
    const address = hostPort({ host, port });
    const bytes = await singleCall(address, request).catch((error: Error) => {
      throw new Error(`Cannot call "${name}" at ${address}: ${error.message}`);
    });
    const expected = { code: expect, descriptors: 1, hasLimit: true, areStatusesOptional };
    const problem = messageProblem({ bytes, start: 0, end: bytes.length }, request, expected);
    if (problem !== undefined) throw new Error(`Cannot trust "${name}" at ${address}: ${problem}`);
    this.#count(target, "one", 1);
  }

  #count({ name, store }: Target, load: LoadName, keys: number): void {
    const rules = RULES_OF[load];
    this.#answered.set(name, (this.#answered.get(name) ?? 0) + keys * rules.length);
    if (store === undefined) return;
    const lasting = keys * rules.filter(isLasting).length;
    this.#stored.set(store, (this.#stored.get(store) ?? 0) + lasting);
  }

  #say(title: string, round: Omit<Round, "calls" | "seconds">): void {
    const { scenario, target, callsPerSecond, p99Ms, generatorBusy } = round;
    const metrics = `${Math.round(callsPerSecond)} calls/s, p99 ${p99Ms.toFixed(2)} ms`;
    this.#setup.say(`${title}: ${scenario} on ${target}: ${metrics}, generator ${generatorBusy.toFixed(2)}`);
  }
}

function equal(what: string, found: number, answered: number): string {
  if (found === answered) return `${what} = ${found} = hits answered`;
  throw new Error(`Cannot trust run: ${what} is ${found}, hits answered are ${answered}`);
}

/** One call by a real grpc-js client: the bytes of the answer, or an error for every status but OK. */
function singleCall(address: string, message: Uint8Array): Promise<Uint8Array> {
  const client = new Client(address, credentials.createInsecure());
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  client.makeUnaryRequest(
    RATE_LIMIT_PATH,
    (bytes: Uint8Array) => Buffer.from(bytes),
    (bytes: Uint8Array) => new Uint8Array(bytes),
    message,
    { deadline: Date.now() + 5_000 },
    (error, answer) =>
      answer === undefined ? reject(error ?? new Error("Cannot call: no answer")) : resolve(answer),
  );
  return promise.finally(() => client.close());
}
