import { median } from "./percentile.ts";
import type { TargetName } from "./options.ts";
import type { LoadName } from "./rate_limit_message.ts";
import type { Round } from "./round.ts";

const FIGURES = ["callsPerSecond", "p50Ms", "p99Ms", "cpuSecondsPer100k"] as const;
type Figures = Readonly<Record<typeof FIGURES[number], number>>;

/** The medians of one load on one target. */
export interface Summary {
  readonly load: LoadName;
  readonly target: TargetName;
  readonly median: Figures;
  /** Requests/s of the slowest and of the fastest round: far apart when something else used the machine. */
  readonly slowest: number;
  readonly fastest: number;
  /** The medians as multiples of the echo's in the same run; absent when the echo was not run. */
  readonly toEcho?: Figures;
}

/** The medians of all rounds, in the order in which loads and targets first come. */
export function summarize(rounds: readonly Round[]): Summary[] {
  const groups = Map.groupBy(rounds, ({ load, target }) => `${load} ${target}`);
  const summaries = [...groups.values()].flatMap((group): Summary[] => {
    const [first] = group;
    if (first === undefined) return [];
    const rates = group.map((round) => round.callsPerSecond);
    return [{
      load: first.load,
      target: first.target,
      median: figures((name) => median(group.map((round) => round[name]))),
      slowest: Math.min(...rates),
      fastest: Math.max(...rates),
    }];
  });
  return summaries.map((summary) => {
    const echo = summaries.find((other) => other.load === summary.load && other.target === "echo");
    if (echo === undefined) return summary;
    return { ...summary, toEcho: figures((name) => summary.median[name] / echo.median[name]) };
  });
}

/** The medians as a Markdown table. */
export function markdownTable(summaries: readonly Summary[]): string {
  const rows = summaries.map(({ load, target, median, slowest, fastest, toEcho }) => [
    load,
    target,
    wholeNumber(median.callsPerSecond),
    `${wholeNumber(slowest)} to ${wholeNumber(fastest)}`,
    median.p50Ms.toFixed(2),
    median.p99Ms.toFixed(2),
    median.cpuSecondsPer100k.toFixed(2),
    toEcho === undefined ? "" : toEcho.callsPerSecond.toFixed(2),
    toEcho === undefined ? "" : toEcho.cpuSecondsPer100k.toFixed(2),
  ]);
  const head = [
    "load",
    "target",
    "requests/s",
    "slowest to fastest",
    "p50 ms",
    "p99 ms",
    "CPU s per 100,000",
  ];
  return [[...head, "requests/s to echo", "CPU to echo"], Array(9).fill("---"), ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n");
}

function wholeNumber(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

function figures(value: (name: typeof FIGURES[number]) => number): Figures {
  const [callsPerSecond, p50Ms, p99Ms, cpuSecondsPer100k] = FIGURES;
  return {
    callsPerSecond: value(callsPerSecond),
    p50Ms: value(p50Ms),
    p99Ms: value(p99Ms),
    cpuSecondsPer100k: value(cpuSecondsPer100k),
  };
}
