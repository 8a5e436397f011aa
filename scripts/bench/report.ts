import { markdownTable, wholeNumber } from "../../tests/harness/markdown_table.ts";
import { median } from "../../tests/harness/percentile.ts";
import type { Round } from "./round.ts";
import type { TargetName } from "./scenario.ts";

/** Metrics of a load on a target. */
export interface Metrics {
  readonly callsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuSecondsPer100k: number;
}

/** The medians of one load on one target. */
export interface Summary {
  readonly scenario: string;
  readonly target: TargetName;
  readonly median: Metrics;
  /** Calls a second of the slowest and of the fastest round: far apart when something else used the machine. */
  readonly slowest: number;
  readonly fastest: number;
  /** Share of one core that the generator used, at most. */
  readonly generatorBusy: number;
  /** The median share of the less busy one of two workers; absent for one thread. */
  readonly workerShare?: number;
  /** The medians as multiples of the echo's in the same load; absent when no echo had it. */
  readonly toEcho?: Metrics;
  /**
   * Calls a second as a multiple of those of the first target of the same round, the median of all rounds;
   * absent where there is an echo.
   */
  readonly toFirst?: number;
}

/** The medians of all rounds, in the order in which loads and targets first come. */
export function summarize(rounds: readonly Round[]): Summary[] {
  const groups = Map.groupBy(rounds, ({ scenario, target }) => `${scenario} ${target}`);
  const summaries = [...groups.values()].flatMap((group): Summary[] => {
    const [first] = group;
    if (first === undefined) return [];
    const rates = group.map((round) => round.callsPerSecond);
    const shares = group.flatMap(({ workerShare }) => workerShare ?? []);
    return [{
      scenario: first.scenario,
      target: first.target,
      median: metrics((name) => median(group.map((round) => round[name]))),
      slowest: Math.min(...rates),
      fastest: Math.max(...rates),
      generatorBusy: Math.max(...group.map((round) => round.generatorBusy)),
      ...(shares.length === 0 ? {} : { workerShare: median(shares) }),
    }];
  });
  return summaries.map((summary) => {
    const echo = summaries.find(({ scenario, target }) =>
      scenario === summary.scenario && target.startsWith("echo")
    );
    if (echo === undefined) return { ...summary, toFirst: medianOfPairs(rounds, summary) };
    return { ...summary, toEcho: metrics((name) => summary.median[name] / echo.median[name]) };
  });
}

function medianOfPairs(rounds: readonly Round[], { scenario, target }: Summary): number {
  const own = rounds.filter((round) => round.scenario === scenario);
  const rates = (name: TargetName | undefined) =>
    own.filter((round) => round.target === name).map((round) => round.callsPerSecond);
  const first = rates(own[0]?.target);
  return median(rates(target).map((rate, index) => rate / (first[index] ?? NaN)));
}

const SUMMARY_HEAD = [
  "load",
  "target",
  "calls/s",
  "slowest to fastest",
  "p50 ms",
  "p99 ms",
  "CPU s per 100,000",
  "calls/s to echo",
  "CPU to echo",
];

/** The medians as a Markdown table. */
export function summaryTable(summaries: readonly Summary[]): string {
  return markdownTable(
    SUMMARY_HEAD,
    summaries.map(({ scenario, target, median, slowest, fastest, toEcho }) => [
      scenario,
      target,
      wholeNumber(median.callsPerSecond),
      `${wholeNumber(slowest)} to ${wholeNumber(fastest)}`,
      median.p50Ms.toFixed(2),
      median.p99Ms.toFixed(2),
      median.cpuSecondsPer100k === 0 ? "-" : median.cpuSecondsPer100k.toFixed(2),
      toEcho === undefined ? "" : toEcho.callsPerSecond.toFixed(2),
      toEcho === undefined ? "" : toEcho.cpuSecondsPer100k === 0 ? "-" : toEcho.cpuSecondsPer100k.toFixed(3),
    ]),
  );
}

function metrics(value: (name: keyof Metrics) => number): Metrics {
  return {
    callsPerSecond: value("callsPerSecond"),
    p50Ms: value("p50Ms"),
    p99Ms: value("p99Ms"),
    cpuSecondsPer100k: value("cpuSecondsPer100k"),
  };
}
