import { residentMb } from "../../tests/harness/process_metrics.ts";
import type { LoadsSetup } from "./bench_loads.ts";
import { runGenerator } from "./round.ts";
import { startBenchWeir, weirTarget } from "./target.ts";

/** The default of `MEMORY_MAX_KEYS`, and so many different values. */
const VALUES = 1_000_000;
/** Every so many of them are asked for again. */
const STRIDE = 10;
const QUICK_STRIDE = 100;
/** Time enough; the number of calls ends it. */
const SECONDS = 120;

/** Memory and throughput of the embedded cache with a million values. */
export interface MillionOutcome {
  readonly values: number;
  readonly residentMb: number;
  /** Values that were asked for a second time; each had the count 2. */
  readonly sampled: number;
  readonly callsPerSecond: number;
}

/**
 * Sends a million different values through the embedded cache as it is by default. Throws unless each has
 * the count 1 the first time, and each of a sample the count 2 the second time.
 */
export async function measureMillion({ options, signal, say }: LoadsSetup): Promise<MillionOutcome> {
  await using owned = new AsyncDisposableStack();
  const settings = { BACKEND_TYPE: "memory", GRPC_ENGINE: options.engine };
  const child = owned.use(await startBenchWeir(settings));
  const { port } = await weirTarget("memory", child);
  const flags = { port, keys: VALUES, seconds: SECONDS, warmUpSeconds: 0 };
  const first = { ...flags, calls: VALUES, count: 1 };
  const { callsPerSecond } = await runGenerator("load.ts", first, { what: "first pass of values", signal });
  const afterFirst = await residentMb(child.pid);
  const stride = options.isQuick ? QUICK_STRIDE : STRIDE;
  const sampled = VALUES / stride;
  const second = { ...flags, stride, calls: sampled, count: 2 };
  await runGenerator("load.ts", second, { what: "second pass of values", signal });
  const resident = Math.max(afterFirst, await residentMb(child.pid));
  say(`${VALUES} values in memory: ${resident.toFixed(0)} MB resident`);
  return { values: VALUES, residentMb: resident, sampled, callsPerSecond };
}
