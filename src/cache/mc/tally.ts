import type { Metrics } from "../../base/metrics.ts";

/** Counters of all nodes, by the names of their metrics. An increment is a step up or down. */
export type McTally = ReturnType<typeof createMcTally>;

/** A tally in which every counter is 0. */
export function createMcTally() {
  return {
    "multiget.success": 0,
    "multiget.error": 0,
    "increment.success": 0,
    "increment.miss": 0,
    "increment.error": 0,
    "add.success": 0,
    "add.not_stored": 0,
    "add.error": 0,
    keys_requested: 0,
    keys_found: 0,
    timeouts: 0,
    cx_total: 0,
  };
}

/** The counters of a tally, as metrics. */
export function tallyCounters(tally: Readonly<Record<string, number>>): Metrics["counters"] {
  return Object.fromEntries(Object.keys(tally).map((name) => [name, () => tally[name] ?? 0]));
}
