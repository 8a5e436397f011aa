/**
 * Floods the gRPC port with frames of every type and random mixes, and looks whether calls on another
 * connection notice: their p99 stays within three times that without a flood, or the flooding connection is
 * closed. Prints the seed, so that a run can be repeated. Exit code 1 when something was not so.
 */
import { parseArgs } from "node:util";
import { startWeir } from "../tests/harness/weir_process.ts";
import { positive, positiveInteger } from "./bench/flag_values.ts";
import { RULES } from "./bench/rate_limit_message.ts";
import { type FloodFacts, floodProblems, FloodRun } from "./soak/floods.ts";

const WARM_UP_SECONDS = 3;

/** What the soak is to do. */
export interface FloodSoakOptions {
  readonly floods: number;
  /** How long a flood lasts at most. */
  readonly seconds: number;
  readonly seed: number;
}

/** Reads the flags; throws `RangeError` or `TypeError` with the expected values. */
export function readFloodSoakOptions(args: string[]): FloodSoakOptions {
  const { values } = parseArgs({
    args,
    options: {
      floods: { type: "string", default: "100" },
      seconds: { type: "string", default: "3" },
      seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    },
  });
  return {
    floods: positiveInteger("floods", values.floods),
    seconds: positive("seconds", values.seconds),
    seed: positiveInteger("seed", values.seed),
  };
}

/** Runs the floods, prints what happened, and answers whether all was as it has to be. */
export async function soakFloods({ floods, seconds, seed }: FloodSoakOptions): Promise<boolean> {
  write(Deno.stdout, `seed ${seed}`);
  await using weir = await startWeir({
    rules: { "bench.yaml": RULES },
    env: { BACKEND_TYPE: "memory", LOG_LEVEL: "warning", DISABLE_STATS: "true" },
  });
  const run = new FloodRun(Number(weir.grpcAddress.split(":").at(-1)));
  await run.quiet(WARM_UP_SECONDS);
  const quietMs = await run.quiet(seconds);
  write(Deno.stdout, `without a flood: p99 ${quietMs.toFixed(1)} ms`);
  const facts: FloodFacts[] = [];
  for (let count = 0; count < floods; count++) {
    const one = await run.flood(seed + count, seconds);
    facts.push(one);
    const end = one.wasClosed ? `closed after ${one.frames} frames` : `not closed, ${one.frames} frames`;
    write(Deno.stdout, `${one.kinds.join(", ")}: ${end}, p99 ${one.p99Ms.toFixed(1)} ms`);
  }
  const problems = [...await run.end(), ...floodProblems(quietMs, facts)];
  for (const problem of problems) write(Deno.stdout, `not good: ${problem}`);
  return problems.length === 0;
}

function write(output: { writeSync(bytes: Uint8Array): number }, line: string): void {
  output.writeSync(new TextEncoder().encode(`${line}\n`));
}

if (import.meta.main) {
  try {
    Deno.exit(await soakFloods(readFloodSoakOptions(Deno.args)) ? 0 : 1);
  } catch (error) {
    write(Deno.stderr, error instanceof Error ? error.message : String(error));
    Deno.exit(1);
  }
}
