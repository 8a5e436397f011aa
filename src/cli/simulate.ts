import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { MemoryCache } from "../cache/memory_cache.ts";
import { policyOf } from "../serve/decisions.ts";
import type { Rules } from "../ratelimit/rules/rules.ts";
import { type ChangeKind, type SimulatedDecision, Simulation } from "../ratelimit/forecast/simulation.ts";
import { SimulationTally } from "../ratelimit/forecast/simulation_tally.ts";
import { integer } from "../settings/parsers.ts";
import type { Settings } from "../settings/read_settings.ts";
import {
  CommandError,
  type CommandOptions,
  type GivenCommand,
  type Output,
  type RunnableCommand,
} from "./command.ts";
import { requestLines, type TimedRequest } from "./request_lines.ts";
import { plainText } from "./plain_text.ts";
import { OUTPUT_FLAGS, printerOf, type ValuePrinter } from "./output_format.ts";
import { Progress } from "./progress.ts";
import { MERGE_FLAG, readRuleFolder, type RuleFolder, ruleFolder, settingsFor } from "./rule_folder.ts";
import {
  decisionJson,
  decisionLines,
  type FoundDecision,
  type SimulationSummary,
  summaryJson,
  summaryLines,
} from "./simulate_report.ts";

/** Counters stay so long after their window, for lines that are a little late. */
const LATE_MS = 60_000;
/** The settings that decide in addition to the rules. */
const COUNTING_SETTINGS = [
  "SHADOW_MODE",
  "QUOTA_MODE",
  "USE_CALENDAR_MONTH_RATE_LIMIT",
  "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT",
  "MEMORY_MAX_KEYS",
];
const STANDARD_INPUT = "-";
const WHOLE = integer({ min: 0 });

/** `weir simulate`: what other rules would decide. */
export const SIMULATE_COMMAND: RunnableCommand = {
  command: {
    words: "simulate",
    args: [],
    doc:
      "replay recorded requests against the rules in a folder, and compare the decisions with another folder",
    flags: {
      config: { value: "DIR", doc: "folder of the rules to test (required)" },
      against: { value: "DIR", doc: "folder of the rules to compare with (default: no comparison)" },
      requests: {
        value: "FILE",
        doc:
          'requests in the format of POST /json, one per line, each with a "time"; - for standard input (required)',
      },
      merge: MERGE_FLAG,
      "max-changes": { value: "N", doc: "print at most N requests for each kind of change (default 100)" },
      "max-wrong": { value: "N", doc: "stop after more than N invalid lines (default 10)" },
      ...OUTPUT_FLAGS,
    },
    notes: "With --output json, it prints one object per line: the changes, then the summary.\n\n" +
      "Times are in RFC 3339 or seconds since the epoch. The simulation counts in memory, uses the times of the\n" +
      "requests as its clock, and does not connect to any service. Like the service, it reads SHADOW_MODE,\n" +
      "QUOTA_MODE, USE_CALENDAR_MONTH_RATE_LIMIT, STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT, MERGE_DOMAIN_CONFIG,\n" +
      "RUNTIME_IGNOREDOTFILES and MEMORY_MAX_KEYS from the environment.",
    exitCodes: { 0: "no decision changes", 1: "decisions change", 2: "invalid usage, rules or requests" },
  },
  run: simulateCommand,
};

async function simulateCommand({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const config = ruleFolder(flags.required("config", "simulate"), flags, options.environment);
  const against = flags.text("against");
  const task: SimulateOptions = {
    config,
    against: against === undefined ? undefined : { ...config, folder: against },
    requests: flags.required("requests", "simulate"),
    maxChanges: flags.value("max-changes", WHOLE) ?? 100,
    maxWrong: flags.value("max-wrong", WHOLE) ?? 10,
    printer: printerOf(flags, options.output),
  };
  try {
    return await simulate(task, options);
  } catch (error) {
    // Exit code 1 would mean that a decision changes.
    options.output.stderr(errorText(error));
    return 2;
  }
}

interface SimulateOptions {
  readonly config: RuleFolder;
  /** Absent where there is nothing to compare with. */
  readonly against: RuleFolder | undefined;
  readonly requests: string;
  readonly maxChanges: number;
  readonly maxWrong: number;
  /** Prints for programs; absent where people read the output. */
  readonly printer: ValuePrinter | undefined;
}

/** Decides every request by both configurations and prints what changes. Answers the exit code. */
async function simulate(task: SimulateOptions, options: CommandOptions): Promise<number> {
  const { output } = options;
  const settings = settingsFor(options.environment, COUNTING_SETTINGS);
  const rules = await rulesOf(task.config, output);
  const old = task.against === undefined ? undefined : await rulesOf(task.against, output);
  const stream = await streamOf(task.requests, options);
  using progress = new Progress("simulating", options);
  const run = new SimulationRun({ rules, old, settings, task, output, progress });
  try {
    await run.decideAll(stream);
  } finally {
    await run.close();
  }
  return run.finish();
}

async function rulesOf(files: RuleFolder, output: Output): Promise<Rules> {
  const rules = await readRuleFolder(files, output);
  if (rules === undefined) {
    throw new CommandError(`Cannot use the rules of "${files.folder}": they have mistakes`);
  }
  return rules;
}

async function streamOf(
  path: string,
  { stdin }: Pick<CommandOptions, "stdin">,
): Promise<ReadableStream<Uint8Array>> {
  if (path === STANDARD_INPUT) return stdin();
  try {
    return (await Deno.open(path)).readable;
  } catch (error) {
    throw new CommandError(`Cannot read "${path}": ${errorText(error)}`, { cause: error });
  }
}

/** Names the stream in errors of reading it. */
async function* readFrom(stream: ReadableStream<Uint8Array>, name: string): AsyncGenerator<Uint8Array> {
  try {
    yield* stream;
  } catch (error) {
    throw new CommandError(`Cannot read "${name}": ${errorText(error)}`, { cause: error });
  }
}

function nameOf(requests: string): string {
  return requests === STANDARD_INPUT ? "standard input" : requests;
}

interface RunOptions {
  readonly output: Output;
  readonly progress: Progress;
  readonly rules: Rules;
  /** Absent where there is nothing to compare with. */
  readonly old: Rules | undefined;
  readonly settings: Settings;
  readonly task: SimulateOptions;
}

class SimulationRun {
  readonly #options: RunOptions;
  readonly #clock = new SimulatedClock();
  readonly #caches: MemoryCache[] = [];
  readonly #new: Simulation;
  readonly #old: Simulation | undefined;
  readonly #tally = new SimulationTally();
  readonly #found: Record<ChangeKind, number> = { toOverLimit: 0, toOk: 0, otherLimit: 0 };
  readonly #back = { requests: 0, mostMs: 0, tooLate: 0 };
  #wrong = 0;
  #first = Infinity;
  #newest = -Infinity;
  #evicted = 0;

  constructor(options: RunOptions) {
    this.#options = options;
    this.#new = this.#simulation(options.rules);
    this.#old = options.old === undefined ? undefined : this.#simulation(options.old);
  }

  /** Throws when more lines are wrong than may be, and when the stream cannot be read. */
  async decideAll(stream: ReadableStream<Uint8Array>): Promise<void> {
    const { task: { requests, maxWrong }, output, progress } = this.#options;
    const name = nameOf(requests);
    for await (const line of requestLines(readFrom(stream, name))) {
      progress.update(`simulating: ${line.number} lines`);
      if ("request" in line) {
        await this.#decide(line.number, line.request);
        continue;
      }
      this.#wrong++;
      output.stderr(plainText(`${name}:${line.number}: ${line.problem}`));
      if (this.#wrong <= maxWrong) continue;
      throw new CommandError(`Cannot go on with "${name}": more than ${maxWrong} invalid lines`);
    }
  }

  async close(): Promise<void> {
    this.#evicted = this.#caches.reduce((sum, { evicted }) => sum + evicted, 0);
    for (const cache of this.#caches) await cache.close();
  }

  finish(): number {
    const { task, output } = this.#options;
    if (this.#tally.requests === 0) {
      throw new CommandError(`Cannot simulate: "${nameOf(task.requests)}" holds no request`);
    }
    const summary: SimulationSummary = {
      tally: this.#tally,
      compares: this.#old !== undefined,
      wrong: this.#wrong,
      first: this.#first,
      last: this.#newest,
      back: this.#back,
      evicted: this.#evicted,
      hidden: {
        toOverLimit: Math.max(0, this.#found.toOverLimit - task.maxChanges),
        toOk: Math.max(0, this.#found.toOk - task.maxChanges),
        otherLimit: Math.max(0, this.#found.otherLimit - task.maxChanges),
      },
    };
    if (task.printer !== undefined) task.printer.printText(summaryJson(summary));
    else for (const line of summaryLines(summary)) output.stdout(line);
    if (this.#wrong > 0) return 2;
    return this.#tally.changes > 0 ? 1 : 0;
  }

  #simulation(rules: Rules): Simulation {
    const { settings } = this.#options;
    const cache = new MemoryCache({ maxKeys: settings.MEMORY_MAX_KEYS, clock: this.#clock });
    this.#caches.push(cache);
    return new Simulation({ rules, cache, policy: policyOf(settings) });
  }

  async #decide(line: number, request: TimedRequest): Promise<void> {
    this.#pass(request.time);
    const seconds = Math.floor(request.time / 1_000);
    const after = await this.#new.decide(request, seconds);
    const before = await this.#old?.decide(request, seconds);
    const change = this.#tally.add(before, after);
    const kind = before === undefined ? overLimitKind(after) : change?.kind;
    if (kind === undefined) return;
    this.#found[kind]++;
    if (this.#found[kind] <= this.#options.task.maxChanges) {
      this.#show({ line, request, before, after, change });
    }
  }

  #show(found: FoundDecision): void {
    const { task, output } = this.#options;
    if (task.printer !== undefined) task.printer.printText(decisionJson(found));
    else for (const line of decisionLines(found)) output.stdout(line);
  }

  /**
   * Counters are dropped by the newest time, a little late; a request is decided at its own. So lines of
   * several instances, which are seldom in perfect order, find the counters of their windows.
   */
  #pass(time: number): void {
    this.#first = Math.min(this.#first, time);
    const backMs = this.#newest - time;
    this.#newest = Math.max(this.#newest, time);
    this.#clock.moveTo(this.#newest - LATE_MS);
    if (backMs <= 0) return;
    this.#back.requests++;
    this.#back.mostMs = Math.max(this.#back.mostMs, backMs);
    if (backMs > LATE_MS) this.#back.tooLate++;
  }
}

function overLimitKind({ overallCode, statuses }: SimulatedDecision): ChangeKind | undefined {
  const isOver = overallCode === "OVER_LIMIT" || statuses.some(({ code }) => code === "OVER_LIMIT");
  return isOver ? "toOverLimit" : undefined;
}

/** A clock that is where it was moved to last. A timer that is late runs once, when the clock has moved. */
export class SimulatedClock implements Clock {
  #now = 0;
  readonly #timers = new Set<{ readonly due: number; readonly run: () => void }>();

  now(): number {
    return this.#now;
  }

  elapsed(): number {
    return this.#now;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { due: this.#now + delayMs, run };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Moves on to a time in milliseconds since the epoch; one that is past is not gone back to. */
  moveTo(time: number): void {
    if (time <= this.#now) return;
    this.#now = time;
    for (const timer of [...this.#timers]) {
      if (timer.due > time || !this.#timers.delete(timer)) continue;
      timer.run();
    }
  }
}
