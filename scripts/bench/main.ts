import { type Tool, toolAvailable } from "../../tests/support/tools.ts";
import { installTools } from "../install_tools.ts";
import { bench } from "./bench.ts";
import { machine, versions } from "./machine.ts";
import { type BenchOptions, readBenchOptions } from "./options.ts";
import { markdownTable, summarize } from "./report.ts";
import { CONNECTIONS, IN_FLIGHT, KEYS } from "./round.ts";

/** Runs the bench, writes its results to a file and prints them. */
export async function main(args: string[], signal: AbortSignal): Promise<void> {
  const options = readBenchOptions(args);
  await needTools(options);
  const { rounds, checks } = await bench(options, signal, (line) => write(Deno.stderr, line));
  const summaries = summarize(rounds);
  const results = {
    date: new Date().toISOString(),
    commandLine: ["deno", "task", "bench", ...args].join(" "),
    machine: machine(),
    versions: await versions(),
    setup: { ...publicOptions(options), connections: CONNECTIONS, inFlight: IN_FLIGHT, keys: KEYS },
    summaries,
    checks,
    rounds,
  };
  await Deno.writeTextFile(options.json, `${JSON.stringify(results, null, 2)}\n`);
  write(Deno.stdout, `${markdownTable(summaries)}\n\n${checks.map((check) => `- ${check}`).join("\n")}`);
}

/** Only what is used is asked for: the tests' other tools are large and of no use here. */
async function needTools(options: BenchOptions): Promise<void> {
  const needed: Tool[] = [];
  if (options.loads.includes("one")) needed.push("h2load");
  if (options.targets.includes("redis")) needed.push("redis-server");
  if (needed.every(toolAvailable)) return;
  await installTools();
  const missing = needed.filter((tool) => !toolAvailable(tool));
  if (missing.length > 0) throw new Error(`Cannot run bench: ${missing.join(" and ")} must be installed`);
}

function publicOptions({ rounds, seconds, targets, loads }: BenchOptions): Omit<BenchOptions, "json"> {
  return { rounds, seconds, targets, loads };
}

function write(output: { writeSync(bytes: Uint8Array): number }, line: string): void {
  output.writeSync(new TextEncoder().encode(`${line}\n`));
}

if (import.meta.main) {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => stop.abort(new Error(`Cannot finish bench: ${signal}`)));
  }
  try {
    await main(Deno.args, stop.signal);
    Deno.exit(0);
  } catch (error) {
    write(Deno.stderr, error instanceof Error ? error.message : String(error));
    Deno.exit(1);
  }
}
