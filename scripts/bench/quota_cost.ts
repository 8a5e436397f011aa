import { GrpcClient } from "../../tests/harness/grpc_client.ts";
import { clockTicks, cpuSeconds } from "../../tests/harness/process_metrics.ts";
import { QuotaStreamClient } from "../../tests/harness/quota_stream_client.ts";
import type { LoadsSetup } from "./bench_loads.ts";
import { runGenerator } from "./round.ts";
import { startBenchWeir, weirTarget } from "./target.ts";

const CLIENTS = 3;
const BUCKETS = 1_000;
const PER_SECOND = 10_000;
const SECONDS = 5;
const QUICK_SECONDS = 3;
/** Time until clients have a quota after the start of the service. */
const SETTLING_MS = 7_000;
const REPORT_MS = 1_000;

/** CPU of the same traffic with calls and with quotas, as seconds for each second. */
export interface QuotaCost {
  readonly clients: number;
  readonly buckets: number;
  readonly perSecond: number;
  readonly calls: number;
  readonly quotas: number;
  /** The cost of quotas as a part of that of calls. */
  readonly ratio: number;
}

/** Measures what Weir needs for calls at a constant rate, and for clients that report the same requests each second. */
export async function measureQuotaCost({ options, signal, say }: LoadsSetup): Promise<QuotaCost> {
  await using owned = new AsyncDisposableStack();
  const weir = owned.use(await startBenchWeir({ BACKEND_TYPE: "memory", GRPC_ENGINE: options.engine }));
  const { port } = await weirTarget("memory", weir);
  const ticks = await clockTicks();
  const seconds = options.isQuick ? QUICK_SECONDS : SECONDS;
  const cpuOf = async (run: () => Promise<unknown>) => {
    const before = await cpuSeconds(weir.pid, ticks);
    await run();
    return (await cpuSeconds(weir.pid, ticks) - before) / seconds;
  };
  const load = { port, connections: CLIENTS, keys: BUCKETS, perSecond: PER_SECOND, warmUpSeconds: 0 };
  const call = (length: number) =>
    runGenerator("load.ts", { ...load, seconds: length }, { what: "calls at a constant rate", signal });
  await call(1);
  const calls = await cpuOf(() => call(seconds));
  const streams = Array.from({ length: CLIENTS }, () => {
    const client = owned.use(new GrpcClient(`127.0.0.1:${port}`));
    return new QuotaStreamClient(client);
  });
  const report = async (reports: number) => {
    for (let count = 0; count < reports; count++) {
      signal.throwIfAborted();
      for (const stream of streams) stream.report("bench", ...usages());
      await new Promise((resolve) => setTimeout(resolve, REPORT_MS));
    }
  };
  await report(Math.ceil(SETTLING_MS / REPORT_MS));
  const quotas = await cpuOf(() => report(seconds));
  for (const { quotas: received } of streams) {
    const count = Object.keys(received).length;
    if (count !== BUCKETS) throw new Error(`Cannot trust cost of quotas: ${count} buckets have one`);
  }
  say(
    `${PER_SECOND} requests/s: ${calls.toFixed(3)} s of CPU each second with calls, ${
      quotas.toFixed(3)
    } s with quotas`,
  );
  for (const stream of streams) stream.cancel();
  const ratio = quotas / calls;
  return { clients: CLIENTS, buckets: BUCKETS, perSecond: PER_SECOND, calls, quotas, ratio };
}

/** The requests of a client in a second. */
function usages(): Parameters<QuotaStreamClient["report"]>[1][] {
  return Array.from({ length: BUCKETS }, (_, index) => ({
    bucket: { load: "keys", key: `${index}` },
    allowed: Math.floor(PER_SECOND / CLIENTS / BUCKETS) + (index % CLIENTS === 0 ? 1 : 0),
    elapsedSeconds: REPORT_MS / 1_000,
  }));
}
