import { setTimeout as sleep } from "node:timers/promises";
import { LoadConnection } from "../../src/load/load_connection.ts";
import { RATE_LIMIT_PATH } from "../../src/wire/rls.ts";
import { messageCheck } from "./bench_answer.ts";
import { benchCalls } from "./bench_rules.ts";
import { residentMb } from "./process_metrics.ts";
import { type OutageFacts, OutageRecord } from "./outage_record.ts";

const CONNECTIONS = 4;
/** Calls in flight on each connection: room for many that wait for their time-out. */
const IN_FLIGHT = 1_024;
const KEYS = 10_000;
/** Interval at which calls are begun; with a thousand a second these are some at a time. */
const TICK_MS = 4;
const SAMPLE_MS = 1_000;
/** Interval at which it is looked whether all is as before. */
const LOOK_MS = 50;
/** So long all calls have to be answered for an outage to be over. */
const STEADY_MS = 1_000;
/** Time that the last answers may take. */
const GRACE_MS = 10_000;

/** One outage and what it is done to. */
interface OutageSetup {
  /** The process whose memory is read, and the port of its gRPC listener; it has the rules of the bench. */
  readonly weir: { readonly pid: number; readonly port: number };
  /** Takes the cache away. */
  readonly takeAway: () => void | Promise<void>;
  /** Brings it back; settles when it can answer. */
  readonly bringBack: () => void | Promise<void>;
  /** Evenly paced calls a second. */
  readonly rate: number;
  readonly seconds: {
    readonly warmUp: number;
    readonly before: number;
    readonly away: number;
    /** At most; it is over as soon as all calls are answered again. */
    readonly back: number;
  };
}

/** Makes calls all the time, takes the cache away and brings it back; answers what happened. */
export async function runOutage(setup: OutageSetup): Promise<OutageFacts> {
  const record = new OutageRecord();
  const over = new AbortController();
  const { signal } = over;
  record.enter("warm-up", performance.now());
  const tasks = [
    makeCalls(setup, record, signal),
    sampleMemory(setup, record, signal).catch((error: unknown) => {
      record.error(`Weir ended: ${error instanceof Error ? error.message : String(error)}`);
      over.abort();
    }),
  ];
  let end = 0;
  try {
    await passThrough(setup, record, signal);
  } catch (error) {
    if (!over.signal.aborted) throw error;
  } finally {
    // The last answers are waited for, and no more calls are due.
    end = performance.now();
    over.abort();
    await Promise.all(tasks);
  }
  return record.facts(end);
}

/** One phase after the other. */
async function passThrough(setup: OutageSetup, record: OutageRecord, signal: AbortSignal): Promise<void> {
  const { seconds, takeAway, bringBack } = setup;
  const pause = (length: number) => sleep(length * 1_000, undefined, { signal });
  // However late the samples are that come once a second, each phase has one.
  const sample = () => residentMb(setup.weir.pid).then((mb) => record.memory(mb), () => {});
  await pause(seconds.warmUp);
  record.enter("before", performance.now());
  await pause(seconds.before);
  await sample();
  record.enter("away", performance.now());
  await takeAway();
  await pause(seconds.away);
  await sample();
  await bringBack();
  record.enter("back", performance.now());
  const end = performance.now() + seconds.back * 1_000;
  while (performance.now() < end && !record.isSteady(STEADY_MS, performance.now())) {
    await pause(LOOK_MS / 1_000);
  }
}

/** Begins calls evenly until the signal, and waits for all answers. */
async function makeCalls(setup: OutageSetup, record: OutageRecord, signal: AbortSignal): Promise<void> {
  const { rate, weir } = setup;
  // What was due before all is ready, or while the machine stood still, is made up for.
  const begin = performance.now();
  const source = benchCalls({ load: "keys", keys: KEYS, batch: 1, stride: 1 });
  const deadline = new AbortController();
  const connections = Array.from({ length: CONNECTIONS }, () =>
    new LoadConnection({
      peer: { address: { host: "127.0.0.1", port: weir.port } },
      path: RATE_LIMIT_PATH,
      inFlight: IN_FLIGHT,
      record,
      deadline: deadline.signal,
      checkMessage: messageCheck({ code: "OK", descriptors: 1 }),
    }));
  await Promise.all(connections.map(({ ready }) => ready));
  for (let isOver = false; !isOver; await sleep(TICK_MS)) {
    isOver = signal.aborted;
    const now = performance.now();
    const due = Math.floor((now - begin) * rate / 1_000);
    while (source.taken < due) connections[source.taken % CONNECTIONS]?.offer(source.next(), now);
  }
  for (const connection of connections) connection.finish();
  const timer = setTimeout(() => deadline.abort(), GRACE_MS);
  await Promise.all(connections.map(({ closed }) => closed));
  clearTimeout(timer);
}

/** Reads the resident memory until the signal; throws when the process is no more. */
async function sampleMemory(setup: OutageSetup, record: OutageRecord, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    record.memory(await residentMb(setup.weir.pid));
    await sleep(SAMPLE_MS, undefined, { signal }).catch(() => {});
  }
}
