import process from "node:process";
import { RATE_LIMIT_PATH } from "../wire/rls.ts";
import type { GrpcTarget } from "../grpc/client/dial.ts";
import type { CallSource } from "./call_source.ts";
import type { DurationHistogram } from "./duration_histogram.ts";
import { LoadConnection } from "./load_connection.ts";
import { LoadRecord, type LoadResult } from "./load_record.ts";
import { pace } from "./pace.ts";
import type { MessageCheck } from "./pending_calls.ts";

/** The load of one run. */
export interface LoadRunOptions {
  readonly peer: GrpcTarget;
  /** Path of the method; that of `ShouldRateLimit` when absent. */
  readonly path?: string;
  readonly connections: number;
  /** Calls in flight on each connection. */
  readonly inFlight: number;
  readonly source: CallSource;
  readonly checkMessage: MessageCheck;
  /** Time before the measured one. */
  readonly warmUpSeconds: number;
  /** Measured time; no call begins after it. */
  readonly seconds: number;
  /** Most calls; without a limit when absent. */
  readonly calls?: number;
  /** Calls per second at even intervals; as many as are answered when absent. */
  readonly perSecond?: number | undefined;
  /** Longest time for connections to open, and for the last answers to arrive; 10 s when absent. */
  readonly graceMs?: number;
  /** Ends the run early: no further call begins. */
  readonly stop?: AbortSignal | undefined;
}

/** The outcome of a run. */
export interface LoadOutcome {
  readonly result: LoadResult;
  /** The durations of measured answers. */
  readonly durations: DurationHistogram;
}

const GRACE_MS = 10_000;
/** Calls that are due and wait for a slow server, on all connections. */
const MAX_WAITING = 100_000;

/**
 * Makes calls until the time or the number is reached, waits for every answer and checks each of them. The time and the
 * calls start when every connection is open or has failed: a server that is busy with calls may be slow to open others.
 */
export async function runLoad(options: LoadRunOptions): Promise<LoadOutcome> {
  const { source, calls = Infinity, path = RATE_LIMIT_PATH, perSecond, graceMs = GRACE_MS, stop } = options;
  const { peer, inFlight, checkMessage, warmUpSeconds } = options;
  const record = new LoadRecord(warmUpSeconds === 0 ? 0 : Infinity);
  const timers = new RunTimers();
  let stopAt = Infinity;
  let isOpening = true;
  const isOver = (now: number) => source.taken >= calls || now >= stopAt || stop?.aborted === true;
  const nextCall = (now: number) => isOver(now) ? undefined : source.next();
  const connections = Array.from({ length: options.connections }, () =>
    new LoadConnection({
      peer,
      path,
      inFlight,
      checkMessage,
      record,
      deadline: timers.deadline,
      nextCall: perSecond === undefined ? nextCall : undefined,
      isPaused: () => isOpening,
    }));
  timers.after(graceMs, () => {
    for (const connection of connections) {
      connection.endUnlessReady(`no HTTP/2 connection within ${graceMs} ms`);
    }
  });
  const onStop = () => {
    timers.setDeadline(graceMs);
    for (const connection of connections) connection.finish();
  };
  stop?.addEventListener("abort", onStop);
  if (stop?.aborted === true) onStop();
  await Promise.all(connections.map(({ ready }) => ready));
  const begin = performance.now();
  const cpuBefore = process.cpuUsage();
  const measureFrom = begin + warmUpSeconds * 1_000;
  stopAt = measureFrom + options.seconds * 1_000;
  if (warmUpSeconds > 0) record.measureFrom(measureFrom);
  timers.setDeadline(stopAt - begin + graceMs);
  isOpening = false;
  for (const connection of connections) connection.resume();
  const closed = Promise.all(connections.map((connection) => connection.closed));
  if (perSecond !== undefined) await paced(connections, { source, record, perSecond, stopAt, stop, closed });
  await closed;
  stop?.removeEventListener("abort", onStop);
  timers.clear();
  const { user, system } = process.cpuUsage(cpuBefore);
  const busy = (user + system) / 1_000 / (performance.now() - begin);
  return { result: record.result(busy), durations: record.durations };
}

/** Offers calls to the connections in turn. */
async function paced(connections: readonly LoadConnection[], options: {
  readonly source: CallSource;
  readonly record: LoadRecord;
  readonly perSecond: number;
  readonly stopAt: number;
  readonly stop: AbortSignal | undefined;
  readonly closed: Promise<unknown>;
}): Promise<void> {
  const { source, record, perSecond, stopAt, stop, closed } = options;
  const allClosed = new AbortController();
  void closed.then(() => allClosed.abort());
  let turn = 0;
  await pace({
    perSecond,
    stopAt,
    stop: stop === undefined ? allClosed.signal : AbortSignal.any([stop, allClosed.signal]),
    start(due) {
      const connection = connections[turn++ % connections.length];
      if (connection === undefined || connection.waiting * connections.length >= MAX_WAITING) {
        return record.error("not sent: too many calls are waiting");
      }
      connection.offer(source.next(), due);
    },
  });
  for (const connection of connections) connection.finish();
}

/** The timers of a run, which end with it. */
class RunTimers {
  readonly #deadline = new AbortController();
  readonly #timers: ReturnType<typeof setTimeout>[] = [];

  get deadline(): AbortSignal {
    return this.#deadline.signal;
  }

  /** Ends the run after so long; the earliest deadline counts. */
  setDeadline(ms: number): void {
    this.after(ms, () => this.#deadline.abort());
  }

  after(ms: number, run: () => void): void {
    this.#timers.push(setTimeout(run, ms));
  }

  clear(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }
}
