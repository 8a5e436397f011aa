import type { LoadsSetup } from "./bench_loads.ts";
import { freePort } from "../../tests/harness/free_port.ts";
import { featureSettings } from "./feature_settings.ts";
import { runBenchLoad } from "./load.ts";
import { median } from "../../tests/harness/percentile.ts";
import { residentMb } from "../../tests/harness/process_metrics.ts";
import { startBenchWeir } from "./target.ts";

/** Time that Weir may take to answer. */
const START_MS = 30_000;
/** Pause between two attempts. */
const RETRY_MS = 2;
/** Time that Weir is left alone before its memory is read. */
const IDLE_MS = 1_500;
const QUICK_IDLE_MS = 200;

/** Time of a start, and memory of an idle process; medians. */
export interface StartOutcome {
  /** From spawning the process to the first OK over gRPC. */
  readonly firstOkMs: number;
  readonly idleMb: number;
  readonly rounds: readonly { readonly firstOkMs: number; readonly idleMb: number }[];
}

/** The settings of a measured start. */
type StartKind = "plain" | "features";

/**
 * Starts Weir with the embedded cache several times, plain or with every feature on; a first time, which fills Deno's
 * cache, is left out.
 */
export async function measureStart(
  { options, signal, say }: LoadsSetup,
  kind: StartKind = "plain",
): Promise<StartOutcome> {
  await using owned = new AsyncDisposableStack();
  const parent = await Deno.makeTempDir({ prefix: "weir-bench-" });
  owned.defer(() => Deno.remove(parent, { recursive: true }));
  const idleMs = options.isQuick ? QUICK_IDLE_MS : IDLE_MS;
  const rounds = [];
  for (let number = 0; number <= options.rounds; number++) {
    signal.throwIfAborted();
    await using used = new AsyncDisposableStack();
    const folder = `${parent}/start-${number}`;
    const settings = kind === "plain"
      ? { BACKEND_TYPE: "memory" }
      : (await featureSettings(folder, used)).settings;
    const round = await startOnce(
      { ...settings, GRPC_ENGINE: options.engine },
      number === 0 ? 0 : idleMs,
    );
    const what = `${round.firstOkMs.toFixed(0)} ms, ${round.idleMb.toFixed(0)} MB idle`;
    say(`start ${number}, ${kind}: first OK after ${what}`);
    if (number > 0) rounds.push(round);
  }
  return {
    firstOkMs: median(rounds.map(({ firstOkMs }) => firstOkMs)),
    idleMb: median(rounds.map(({ idleMb }) => idleMb)),
    rounds,
  };
}

async function startOnce(
  settings: Record<string, string>,
  idleMs: number,
): Promise<{ firstOkMs: number; idleMb: number }> {
  const port = freePort();
  const call = { port, connections: 1, inFlight: 1, keys: 1, calls: 1, warmUpSeconds: 0, seconds: 5 };
  const begin = performance.now();
  await using child = await startBenchWeir({ ...settings, GRPC_PORT: `${port}` });
  for (;;) {
    const { errors } = await runBenchLoad(call);
    if (Object.keys(errors).length === 0) break;
    if (performance.now() - begin > START_MS) {
      throw new Error(`Cannot measure start of Weir "${child.pid}": ${JSON.stringify(errors)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  const firstOkMs = performance.now() - begin;
  await new Promise((resolve) => setTimeout(resolve, idleMs));
  return { firstOkMs, idleMb: await residentMb(child.pid) };
}
