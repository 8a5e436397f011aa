import { type Tool, toolAvailable } from "../../tests/harness/tools.ts";
import { installTools } from "../install_tools.ts";
import { measureAlgorithms } from "./algorithms.ts";
import { benchLoads, type LoadsSetup } from "./bench_loads.ts";
import { runScript } from "./measuring_script.ts";
import type { ClientTime } from "./client_time.ts";
import type { DecisionTime } from "./decision_time.ts";
import { machine, versions } from "./machine.ts";
import type { BenchResults, Measurements } from "./measurements.ts";
import { measureMillion } from "./million.ts";
import { type BenchOptions, type PartName, readBenchOptions } from "./options.ts";
import { measurePostgres } from "./postgres.ts";
import { measureQuotaCost } from "./quota_cost.ts";
import { measureReload } from "./reload.ts";
import { summarize } from "./report.ts";
import { reportText } from "./speed_text.ts";
import { measureStart } from "./start_time.ts";
import { targetRows } from "./target_rows.ts";
import { throughputSvg } from "./throughput_svg.ts";
import { measureWebhooks } from "./webhooks.ts";

/** Repetitions of the measurements that take no load. */
const REPETITIONS = 51;
const QUICK_REPETITIONS = 11;
/** The tools that a part needs next to Deno. */
const TOOLS: Readonly<Partial<Record<PartName, readonly Tool[]>>> = {
  keys: ["redis-server"],
  hot: ["redis-server"],
  h2load: ["h2load", "redis-server"],
  shapes: ["redis-server"],
  workers: ["redis-server"],
  paced: ["redis-server"],
  caches: ["redis-server", "memcached"],
  tls: ["openssl"],
  algorithms: ["redis-server"],
  postgres: ["postgres"],
};

/** Runs the bench, prints its results, and writes them where the options say. */
async function main(args: string[], options: BenchOptions, signal: AbortSignal): Promise<void> {
  await needTools(options);
  const begin = performance.now();
  const setup = { options, signal, say: (line: string) => write(Deno.stderr, line) };
  const { rounds, checks } = await benchLoads(setup);
  const measurements = { summaries: summarize(rounds), ...await measureRest(setup) };
  const { engine, rounds: roundCount, seconds, warmUpSeconds } = options;
  const results: BenchResults = {
    date: new Date().toISOString(),
    commandLine: ["deno", "task", "bench", ...args].join(" "),
    machine: machine(),
    versions: await versions(),
    setup: { engine, rounds: roundCount, seconds, warmUpSeconds },
    targets: targetRows(measurements),
    ...measurements,
    checks,
    rounds,
  };
  setup.say(`measured in ${((performance.now() - begin) / 60_000).toFixed(1)} minutes`);
  write(Deno.stdout, reportText(results));
  await writeResults(results, options);
}

/** Measures everything but loads of calls; each part starts its own processes, one after the other. */
async function measureRest(setup: LoadsSetup): Promise<Omit<Measurements, "summaries">> {
  const isAsked = (part: PartName) => setup.options.parts.includes(part);
  const algorithms = isAsked("algorithms") ? await measureAlgorithms(setup) : undefined;
  const decisions = isAsked("decisions") ? await measureDecisions(setup) : undefined;
  const million = isAsked("million") ? await measureMillion(setup) : undefined;
  const reload = isAsked("reload") ? await measureReload(setup) : undefined;
  const quotas = isAsked("quotas") ? await measureQuotaCost(setup) : undefined;
  const start = isAsked("start") ? await measureStart(setup) : undefined;
  const featureStart = isAsked("features") ? await measureStart(setup, "features") : undefined;
  const client = isAsked("client") ? await measureClient(setup) : undefined;
  const webhooks = isAsked("webhooks") ? await measureWebhooks(setup) : undefined;
  const postgres = isAsked("postgres") ? await measurePostgres(setup) : undefined;
  return { algorithms, decisions, million, reload, quotas, start, featureStart, client, webhooks, postgres };
}

async function measureDecisions({ options, signal, say }: LoadsSetup): Promise<DecisionTime[]> {
  say("times of decisions");
  return await runScript("decision_time.ts", repeated(options), signal);
}

async function measureClient({ options, signal, say }: LoadsSetup): Promise<ClientTime[]> {
  say("times of the HTTP client");
  return await runScript("client_time.ts", repeated(options), signal);
}

function repeated({ isQuick }: BenchOptions): { readonly repetitions: number } {
  return { repetitions: isQuick ? QUICK_REPETITIONS : REPETITIONS };
}

async function writeResults(
  results: BenchResults,
  { results: folder, peers }: BenchOptions,
): Promise<void> {
  if (folder === undefined) return;
  await Deno.mkdir(folder, { recursive: true });
  const name = peers === undefined ? "latest.json" : "peers.json";
  await Deno.writeTextFile(`${folder}/${name}`, `${JSON.stringify(results, null, 2)}\n`);
  // The documents show the picture and `latest.json`, which are of Weir alone.
  if (peers !== undefined) return;
  const picture = throughputSvg(results.summaries);
  if (picture !== undefined) await Deno.writeTextFile(`${folder}/throughput.svg`, picture);
}

/** Only what is used is asked for: the tests' other tools are large and of no use here. */
async function needTools({ parts }: BenchOptions): Promise<void> {
  const needed = [...new Set(parts.flatMap((part) => TOOLS[part] ?? []))];
  if (needed.every(toolAvailable)) return;
  await installTools();
  const missing = needed.filter((tool) => !toolAvailable(tool));
  if (missing.length > 0) throw new Error(`Cannot run bench: ${missing.join(" and ")} must be installed`);
}

function write(output: { writeSync(bytes: Uint8Array): number }, line: string): void {
  output.writeSync(new TextEncoder().encode(`${line}\n`));
}

if (import.meta.main) {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => stop.abort(new Error(`Cannot finish bench: ${signal}`)));
  }
  let code = 2;
  try {
    const options = readBenchOptions(Deno.args);
    code = 1;
    await main(Deno.args, options, stop.signal);
    code = 0;
  } catch (error) {
    write(Deno.stderr, error instanceof Error ? error.message : String(error));
  }
  Deno.exit(code);
}
