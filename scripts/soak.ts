/**
 * Takes the key-value cache away from Weir under steady load, and looks whether memory stays flat, every
 * call ends in its time, and all goes on when the cache is back. Exit code 1 when something was not so.
 */
import { type RedisServer, startRedis } from "../tests/harness/redis_server.ts";
import { toolAvailable } from "../tests/harness/tools.ts";
import { startWeir } from "../tests/harness/weir_process.ts";
import { RULES } from "./bench/rate_limit_message.ts";
import { installTools } from "./install_tools.ts";
import { type OutageMode, readSoakOptions, type SoakOptions } from "./soak/options.ts";
import { runOutage } from "./soak/outage.ts";
import type { OutageFacts } from "./soak/outage_record.ts";
import { outageTable, problemsOf } from "./soak/verdict.ts";

const TIMEOUT_MS = 250;
const RECOVERY_MS = 5_000;
/** What every outage has to keep; the rate is that of the run. */
const LIMITS = { callMs: TIMEOUT_MS + 100, growthMb: 20, recoveryMs: RECOVERY_MS } as const;
/**
 * Memory needs a while under load until it is level, and rises and falls with the collector, so that its
 * highest point shows only after a minute or so. Short runs make do with less.
 */
const LONGEST_WARM_UP = 30;
const LONGEST_BEFORE = 60;

/** Runs the outages, prints what happened, and answers whether all was as it has to be. */
export async function soak(options: SoakOptions, signal: AbortSignal): Promise<boolean> {
  if (!toolAvailable("redis-server")) await installTools();
  await using redis = await startRedis();
  await using weir = await startWeir({
    rules: { "bench.yaml": RULES },
    env: {
      ...{ BACKEND_TYPE: "kv", KV_URL: redis.url, KV_TIMEOUT: `${TIMEOUT_MS}ms` },
      ...{ LOG_LEVEL: "warning", DISABLE_STATS: "true" },
    },
  });
  const port = Number(weir.grpcAddress.split(":").at(-1));
  const outages: Record<string, OutageFacts> = {};
  const problems: string[] = [];
  for (const mode of options.modes) {
    write(Deno.stderr, `redis-server, ${mode}: ${options.rate} calls a second`);
    const facts = await runOutage({
      weir: { pid: weir.pid, port },
      ...serverOutage(redis, mode),
      rate: options.rate,
      seconds: secondsOf(options),
      signal,
      say: (line) => write(Deno.stderr, line),
    });
    outages[mode] = facts;
    problems.push(...problemsOf(facts, { ...LIMITS, rate: options.rate }).map((text) => `${mode}, ${text}`));
  }
  write(Deno.stdout, outageTable(outages));
  for (const [mode, { firstOkMs, lastRefusedMs }] of Object.entries(outages)) {
    const times = [firstOkMs, lastRefusedMs].map((ms) => ms === undefined ? "never" : `${ms.toFixed(0)} ms`);
    write(
      Deno.stdout,
      `${mode}: after the return the first OK came at ${times[0]}, the last refusal at ${times[1]}`,
    );
  }
  for (const problem of problems) write(Deno.stdout, `not good: ${problem}`);
  return problems.length === 0;
}

function serverOutage(redis: RedisServer, mode: OutageMode) {
  return mode === "stop"
    ? { takeAway: () => redis.pause(), bringBack: () => redis.resume() }
    : { takeAway: () => redis.kill(), bringBack: () => redis.restartOnSamePort() };
}

function secondsOf({ seconds }: SoakOptions) {
  return {
    warmUp: Math.min(LONGEST_WARM_UP, seconds),
    before: Math.min(LONGEST_BEFORE, seconds),
    away: seconds,
    back: RECOVERY_MS / 1_000 + 2,
  };
}

function write(output: { writeSync(bytes: Uint8Array): number }, line: string): void {
  output.writeSync(new TextEncoder().encode(`${line}\n`));
}

if (import.meta.main) {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    Deno.addSignalListener(signal, () => stop.abort(new Error(`Cannot finish soak: ${signal}`)));
  }
  try {
    Deno.exit(await soak(readSoakOptions(Deno.args), stop.signal) ? 0 : 1);
  } catch (error) {
    write(Deno.stderr, error instanceof Error ? error.message : String(error));
    Deno.exit(1);
  }
}
