import type { CacheRun } from "../bench/scale_cache.ts";
import type { StoreRun } from "../bench/scale_store.ts";
import { type Costs, storeCost, type StoreCosts } from "./scale_formulas.ts";

/** A prediction, and the result of a run. */
export interface Check {
  readonly run: string;
  readonly what: string;
  readonly unit: "number" | "bytes" | "seconds";
  readonly predicted: number;
  readonly measured: number;
}

/** Compares a run with several instances and nodes with the costs. */
export function cacheChecks(costs: Costs, run: CacheRun): Check[] {
  const { instances, nodes, keys, pool } = run.load;
  const name = `${instances} instances, ${nodes} nodes of redis`;
  const perBatch = run.increments / run.batches;
  const check = (what: string, unit: Check["unit"], predicted: number, measured: number) => {
    return { run: name, what, unit, predicted, measured };
  };
  return [
    check("Increments", "number", run.calls, run.increments),
    check("EXPIRE commands", "number", instances * keys, run.expires),
    check("Connections", "number", instances * nodes * pool, run.connections),
    check("Memory of counters", "bytes", keys * costs.counterBytes, run.counterBytes),
    check(
      "CPU of redis",
      "seconds",
      run.calls * (costs.command + costs.commandBatch / perBatch),
      run.redisCpuSeconds,
    ),
    check(
      "CPU of Weir",
      "seconds",
      run.calls * (costs.call + costs.callBatch / perBatch),
      run.weirCpuSeconds,
    ),
  ];
}

/** Compares a run of events with the costs. */
export function storeChecks(costs: Costs, run: StoreRun): Check[] {
  const { instances, events, endpoints } = run;
  const name = `${instances} instances, ${events} events to ${endpoints} endpoints`;
  const check = (what: string, unit: Check["unit"], cost: keyof StoreCosts, measured: number) => {
    return { run: name, what, unit, predicted: events * storeCost(run, costs, cost), measured };
  };
  return [
    check("Size of PostgreSQL", "bytes", "bytes", run.bytes),
    check("WAL", "bytes", "wal", run.walBytes),
    check("WAL of the removal", "bytes", "removalWal", run.removalWalBytes),
    check("Updates of rows", "number", "deadRows", run.deadRows),
  ];
}
