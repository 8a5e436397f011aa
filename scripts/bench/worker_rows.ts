import type { TargetRow } from "./measurements.ts";
import type { Summary } from "./report.ts";
import type { TargetName } from "./scenario.ts";
import { atLeast } from "./target_row.ts";

const SCENARIO = "256x1 workers";
const PAIRS = [["memory", "memory-workers"], ["redis", "redis-workers"]] as const;
const BOUNDS = { callsPerCpu: 0.85, share: 0.4 } as const;

/** CPU per call of two workers compared with one thread, and how evenly they share calls. */
export function workerRows(
  find: (scenario: string, target: TargetName) => Summary | undefined,
): TargetRow[] {
  return PAIRS.flatMap(([one, several]) => {
    const [single, workers] = [find(SCENARIO, one), find(SCENARIO, several)];
    if (single === undefined || workers?.workerShare === undefined) return [];
    const ratio = single.median.cpuSecondsPer100k / workers.median.cpuSecondsPer100k;
    const share = workers.workerShare;
    return [
      atLeast(ratio, BOUNDS.callsPerCpu, {
        what: `two workers, ${one}, 256 connections of 1: calls per CPU second`,
        target: `at least ${BOUNDS.callsPerCpu} times one thread`,
        measured: `${ratio.toFixed(2)} times`,
      }),
      atLeast(share, BOUNDS.share, {
        what: `two workers, ${one}, 256 connections of 1: CPU of the less busy one`,
        target: `at least ${BOUNDS.share} of both`,
        measured: share.toFixed(2),
      }),
    ];
  });
}
