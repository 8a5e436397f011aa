import { markdownTable, wholeNumber } from "../../tests/harness/markdown_table.ts";
import type { AlgorithmSpeed } from "./algorithms.ts";
import type { TargetRow } from "./measurements.ts";

/** At least so many times the calls of a fixed window. */
const BOUNDS = { memory: 0.6, redis: 0.35 } as const;
/** The same, for two fixed windows of one rule. */
const TWO_WINDOWS_BOUNDS = { memory: 0.35, redis: 0.7 } as const;

/** The targets of all algorithms but the fixed window. */
export function algorithmRows(speeds: readonly AlgorithmSpeed[]): TargetRow[] {
  return speeds.flatMap(({ cache, algorithm, callsPerSecond, toFixed, redisCpuUs }) => {
    if (algorithm === "fixed_window") return [];
    const bound = (algorithm === "two fixed windows" ? TWO_WINDOWS_BOUNDS : BOUNDS)[cache];
    const server = cache === "redis" ? `; ${redisCpuUs.toFixed(1)} µs of redis-server a call` : "";
    return [{
      what: `${algorithm}, ${cache}, 8 connections of 32, 10,000 keys`,
      target: `at least ${bound} times the fixed window`,
      measured: `${toFixed.toFixed(2)} times (${wholeNumber(callsPerSecond)} calls/s)${server}`,
      isHit: toFixed >= bound,
    }];
  });
}

/** All algorithms as Markdown. */
export function algorithmsText(speeds: readonly AlgorithmSpeed[]): string {
  const rows = speeds.map(({ cache, algorithm, callsPerSecond, toFixed, redisCpuUs }) => [
    ...[cache, algorithm, wholeNumber(callsPerSecond), toFixed.toFixed(2)],
    cache === "redis" ? redisCpuUs.toFixed(1) : "",
  ]);
  return markdownTable(["cache", "algorithm", "calls/s", "to fixed_window", "redis-server µs a call"], rows);
}
