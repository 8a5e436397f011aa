/**
 * Measures the costs from which `docs/scale.md` computes larger installations, and two runs that check it, about two
 * minutes: `deno run -A scripts/bench/scale.ts`. Writes `results/scale.json`.
 */
import { type Machine, machine } from "./machine.ts";
import { type CacheRun, runOnCluster } from "./scale_cache.ts";
import { measureProcess, type ProcessRun } from "./scale_process.ts";
import { runOnPostgres, type StoreRun } from "./scale_store.ts";

const RESULTS = new URL("./results/scale.json", import.meta.url);
const CLUSTER = { instances: 1, nodes: 1, load: "keys", keys: 100_000, calls: 200_000, pool: 10 } as const;
const CHECKED_CLUSTER = {
  ...CLUSTER,
  instances: 2,
  nodes: 3,
  keys: 60_000,
  calls: 120_000,
  pool: 4,
} as const;

/** The results of a run. */
export interface ScaleResults {
  readonly machine: Machine;
  readonly cache: {
    /** Many calls in flight on each connection, and one. */
    readonly groups: CacheRun;
    readonly alone: CacheRun;
    readonly hotKey: CacheRun;
    readonly check: CacheRun;
  };
  readonly store: { readonly events: StoreRun; readonly deliveries: StoreRun; readonly check: StoreRun };
  readonly process: ProcessRun;
}

/** Reads the results of the last run. */
export async function scaleResults(): Promise<ScaleResults> {
  return JSON.parse(await Deno.readTextFile(RESULTS));
}

if (import.meta.main) {
  const results: ScaleResults = {
    machine: machine(),
    cache: {
      groups: await runOnCluster({ ...CLUSTER, connections: 8, inFlight: 32 }),
      alone: await runOnCluster({ ...CLUSTER, connections: 8, inFlight: 1 }),
      hotKey: await runOnCluster({ ...CLUSTER, load: "one", keys: 1, connections: 8, inFlight: 32 }),
      check: await runOnCluster({ ...CHECKED_CLUSTER, connections: 4, inFlight: 12 }),
    },
    store: {
      events: await runOnPostgres({ instances: 1, events: 2_000, endpoints: 0 }),
      deliveries: await runOnPostgres({ instances: 1, events: 400, endpoints: 10 }),
      check: await runOnPostgres({ instances: 2, events: 700, endpoints: 4 }),
    },
    process: await measureProcess(),
  };
  await Deno.writeTextFile(RESULTS, `${JSON.stringify(results)}\n`);
  Deno.exit(0);
}
