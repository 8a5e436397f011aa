import { type MetricName, metricNames, metricReaders, type Metrics } from "../../base/metrics.ts";
import { MC_TALLY_METRICS } from "../metrics.ts";

/** Counters of all nodes, by the names of their metrics. An increment is a step up or down. */
export type McTally = Record<MetricName<typeof MC_TALLY_METRICS>, number>;

/** A tally in which every counter is 0. */
export function createMcTally(): McTally {
  const names = metricNames(MC_TALLY_METRICS, "counter");
  return Object.fromEntries(names.map((name) => [name, 0])) as McTally;
}

/** The counters of a tally, as metrics. */
export function tallyCounters(tally: McTally): Metrics<typeof MC_TALLY_METRICS>["counters"] {
  return metricReaders(MC_TALLY_METRICS, "counter", (name) => tally[name]);
}
