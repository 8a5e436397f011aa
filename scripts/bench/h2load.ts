import { outputOf } from "../../tests/harness/child_process.ts";
import { percentile } from "../../tests/harness/percentile.ts";
import { RATE_LIMIT_PATH } from "../../src/wire/rls.ts";

/** Throughput and latency of a load. */
export interface LoadTimes {
  readonly calls: number;
  readonly seconds: number;
  readonly callsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** One run of h2load. */
interface H2loadOptions {
  readonly port: number;
  readonly connections: number;
  readonly inFlight: number;
  readonly calls: number;
  /** File with the body: the prefix of gRPC and the message. */
  readonly bodyFile: string;
  /** File that h2load writes a line a request to. */
  readonly logFile: string;
  readonly signal: AbortSignal;
}

/** Runs h2load; throws unless its own summary says that every request was answered with HTTP 200. */
export async function runH2load(options: H2loadOptions): Promise<LoadTimes> {
  const { port, connections, inFlight, calls, bodyFile, logFile, signal } = options;
  await Deno.writeTextFile(logFile, "");
  const summary = await outputOf("h2load", [
    ...["-c", `${connections}`, "-m", `${inFlight}`, "-n", `${calls}`, "-t", "1"],
    ...["-d", bodyFile, "-H", "content-type: application/grpc", "-H", "te: trailers"],
    ...[`--log-file=${logFile}`, `http://127.0.0.1:${port}${RATE_LIMIT_PATH}`],
  ], signal);
  checkSummary(summary, calls);
  return readTimes(await Deno.readTextFile(logFile), calls);
}

/** Throws unless the summary that h2load prints is that of `calls` requests without any trouble. */
export function checkSummary(summary: string, calls: number): void {
  const lines = [
    `requests: ${calls} total, ${calls} started, ${calls} done, ${calls} succeeded, 0 failed, 0 errored, 0 timeout`,
    `status codes: ${calls} 2xx, 0 3xx, 0 4xx, 0 5xx`,
  ];
  const missing = lines.find((line) => !summary.includes(line));
  if (missing === undefined) return;
  throw new Error(`Cannot trust run of h2load: its summary must say "${missing}"\n${summary}`);
}

/** The times from h2load's log: start in microseconds since the epoch, HTTP status, duration in microseconds. */
export function readTimes(log: string, calls: number): LoadTimes {
  const durationsMs: number[] = [];
  let firstStart = Infinity;
  let lastEnd = 0;
  for (const line of log.trimEnd().split("\n")) {
    const [start = NaN, status, duration = NaN] = line.split("\t").map(Number);
    if (status !== 200) throw new Error(`Cannot trust run of h2load: its log has the line "${line}"`);
    firstStart = Math.min(firstStart, start);
    lastEnd = Math.max(lastEnd, start + duration);
    durationsMs.push(duration / 1_000);
  }
  if (durationsMs.length !== calls) {
    throw new Error(`Cannot trust run of h2load: its log has ${durationsMs.length} lines of ${calls}`);
  }
  const seconds = (lastEnd - firstStart) / 1_000_000;
  return {
    calls,
    seconds,
    callsPerSecond: calls / seconds,
    p50Ms: percentile(durationsMs, 50),
    p99Ms: percentile(durationsMs, 99),
  };
}
