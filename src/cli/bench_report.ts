import type { DecisionTally } from "../load/decision_tally.ts";
import type { DurationHistogram } from "../load/duration_histogram.ts";
import type { LoadResult } from "../load/load_record.ts";
import { plainText, shortened } from "./plain_text.ts";

/** The results of `weir bench`. */
export interface BenchReport {
  readonly address: string;
  readonly domain: string;
  readonly connections: number;
  readonly inFlight: number;
  /** Calls per second; undefined for as many as are answered. */
  readonly rate: number | undefined;
  readonly keys: number;
  readonly result: LoadResult;
  readonly durations: DurationHistogram;
  readonly tally: DecisionTally;
  readonly isInterrupted: boolean;
}

const PERCENTS = [50, 90, 99, 99.9] as const;
/** Upper limits of the rows of the histogram. */
const LIMITS_MS = [0.01, 0.1, 1, 10, 100, 1_000]
  .flatMap((decade) => [decade, 2 * decade, 5 * decade])
  .slice(1).concat(10_000);
const BAR_LENGTH = 40;
const MAX_ERROR_LENGTH = 200;
/** A generator that uses more of a core may limit the throughput. */
const BUSY = 0.9;
/** Advice for errors of connections. */
const HINTS: readonly (readonly [RegExp, string])[] = [
  [
    /^the server closed the connection|ECONNRESET|EPIPE|reset by peer|broken pipe/i,
    "does the port use TLS, or require a client certificate? See --tls, --cert and --key",
  ],
  [
    /^the server does not speak HTTP|InvalidContentType|wrong version number/,
    "is it a gRPC port, and does it use TLS only if --tls is set?",
  ],
];

/** The results as lines for people. */
export function reportLines(report: BenchReport): string[] {
  const { result, durations } = report;
  const percentiles = latencies(durations).map(([name, ms]) => `${name} ${milliseconds(ms)}`);
  const rows: readonly (readonly [string, string])[] = [
    [
      "calls",
      `${whole(result.calls)}, of which ${whole(durations.count)} measured in ${result.seconds.toFixed(2)} s`,
    ],
    ["throughput", `${whole(result.callsPerSecond)} calls/s`],
    ["latency", durations.count === 0 ? "none" : percentiles.join(", ")],
    ["decisions", decisionsText(report.tally)],
    ["generator", `${percent(result.generatorBusy)} of one core`],
    ...errorsOf(report).map(([text, count]) => ["error", `${whole(count)} x ${text}`] as const),
  ];
  const measured = durations.count === 0 ? [] : ["", ...histogramLines(durations)];
  const notes = notesOf(report);
  return [
    ...rows.map(([name, text]) => `${name.padEnd(11)} ${text}`),
    ...measured,
    ...(notes.length === 0 ? [] : ["", ...notes]),
  ];
}

/** The results for programs. */
export function reportValue(report: BenchReport): object {
  const { address, domain, connections, inFlight, rate, keys, result, durations, tally } = report;
  const { calls, seconds, callsPerSecond, generatorBusy } = result;
  return {
    address,
    domain,
    connections,
    inFlight,
    keys,
    rate: rate ?? null,
    isInterrupted: report.isInterrupted,
    calls,
    seconds,
    callsPerSecond,
    generatorBusy,
    latencyMs: Object.fromEntries(latencies(durations).map(([name, ms]) => [name, Number(ms.toFixed(3))])),
    decisions: { ...tally.counts, withoutLimit: tally.withoutLimit },
    errors: Object.fromEntries(errorsOf(report)),
    histogram: histogram(durations).map(([upToMs, count]) => ({ upToMs, calls: count })),
  };
}

function latencies(durations: DurationHistogram): (readonly [string, number])[] {
  const percentiles = PERCENTS.map((one) => [`p${one}`, durations.percentile(one)] as const);
  return [...percentiles, ["max", durations.maxMs]];
}

function decisionsText({ counts, withoutLimit }: DecisionTally): string {
  const total = counts.OK + counts.OVER_LIMIT + counts.UNKNOWN;
  if (total === 0) return "none";
  const names = (["OK", "OVER_LIMIT", "UNKNOWN"] as const).filter((name) =>
    name !== "UNKNOWN" || counts[name] > 0
  );
  const shares = names.map((name) => `${name} ${percent(counts[name] / total)}`);
  return `${shares.join(", ")}; without a limit ${percent(withoutLimit / total)}`;
}

/** The errors by code and message; a long message of a peer is cut. */
function errorsOf({ result }: Pick<BenchReport, "result">): [string, number][] {
  return Object.entries(result.errors).map(([text, count]) => {
    return [shortened(plainText(text), MAX_ERROR_LENGTH), count];
  });
}

/** The rows from the first to the last one that is not empty, with the upper limit of each; null is without a limit. */
function histogram(durations: DurationHistogram): (readonly [upToMs: number | null, calls: number])[] {
  const counts = durations.countsUpTo(LIMITS_MS);
  const first = counts.findIndex((count) => count > 0);
  if (first < 0) return [];
  const last = counts.findLastIndex((count) => count > 0);
  return counts.slice(first, last + 1).map((count, index) =>
    [LIMITS_MS[first + index] ?? null, count] as const
  );
}

function histogramLines(durations: DurationHistogram): string[] {
  const rows = histogram(durations);
  const most = Math.max(...rows.map(([, count]) => count));
  return rows.map(([upToMs, count]) => {
    const limit = upToMs === null ? "longer" : `up to ${upToMs} ms`;
    const bar = "#".repeat(Math.round(count / most * BAR_LENGTH));
    return `${limit.padEnd(15)} ${percent(count / durations.count).padStart(7)}  ${bar}`.trimEnd();
  });
}

/** Why a run had no call, in one line. */
export function noCallsText({ address, isInterrupted, ...report }: BenchReport): string {
  const [text] = errorsOf(report)[0] ?? [isInterrupted ? "interrupted" : "no connection within the time"];
  const hint = HINTS.find(([pattern]) => pattern.test(text))?.[1];
  return `Cannot call "${address}": ${text}${hint === undefined ? "" : `; ${hint}`}`;
}

/** Remarks for the reader of the results. */
function notesOf({ result, tally, isInterrupted, rate, domain }: BenchReport): string[] {
  const { OK, OVER_LIMIT, UNKNOWN } = tally.counts;
  const answered = OK + OVER_LIMIT + UNKNOWN;
  const notes: readonly (readonly [boolean, string])[] = [
    [isInterrupted, "The run was interrupted."],
    [
      answered > 0 && tally.withoutLimit === answered,
      `No limit applied to any call: check --domain ${plainText(domain)} and --descriptors.`,
    ],
    [
      rate === undefined && result.generatorBusy > BUSY,
      "The generator used a whole core and may limit the throughput: run several of them.",
    ],
  ];
  return notes.filter(([applies]) => applies).map(([, text]) => text);
}

function milliseconds(ms: number): string {
  return `${ms.toFixed(2)} ms`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function whole(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
