import { Session } from "node:inspector";
import type { Clock } from "../base/clock.ts";

/** How long a profile runs and what ends it early. */
export interface RecordOptions {
  readonly durationMs: number;
  readonly clock: Clock;
  /** The first of these that is aborted ends the recording; nothing is kept of it then. */
  readonly signals: readonly AbortSignal[];
}

/** Time between two samples, in microseconds. */
const SAMPLING_INTERVAL_US = 1_000;

/** Records where the process spends its time. One recording at a time, because the engine has one recorder. */
export class CpuProfiler {
  #recording = false;

  /** Whether a recording is under way. */
  get recording(): boolean {
    return this.#recording;
  }

  /**
   * Records for a while and answers the text of a `.cpuprofile` file; undefined when it was ended early.
   * Throws when a recording is under way.
   */
  async record({ durationMs, clock, signals }: RecordOptions): Promise<string | undefined> {
    if (this.#recording) throw new Error("Cannot record a CPU profile: a recording is under way");
    this.#recording = true;
    const session = new Session();
    try {
      session.connect();
      await start(session);
      const whole = await elapses(durationMs, clock, signals);
      const profile = await stop(session);
      return whole ? JSON.stringify(profile) : undefined;
    } finally {
      session.disconnect();
      this.#recording = false;
    }
  }
}

async function start(session: Session): Promise<void> {
  await settled((done) => session.post("Profiler.enable", done));
  const interval = SAMPLING_INTERVAL_US;
  await settled((done) => session.post("Profiler.setSamplingInterval", { interval }, done));
  await settled((done) => session.post("Profiler.start", done));
}

function stop(session: Session): Promise<unknown> {
  return new Promise((resolve, reject) => {
    session.post("Profiler.stop", (error, answer) => {
      if (error === null) resolve(answer.profile);
      else reject(error);
    });
  });
}

function settled(post: (done: (error: Error | null) => void) => void): Promise<void> {
  return new Promise((resolve, reject) => post((error) => error === null ? resolve() : reject(error)));
}

/** Waits; false as soon as one of the signals is aborted. */
function elapses(ms: number, clock: Clock, signals: readonly AbortSignal[]): Promise<boolean> {
  if (signals.some((signal) => signal.aborted)) return Promise.resolve(false);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const end = () => resolve(false);
  for (const signal of signals) signal.addEventListener("abort", end);
  const cancelTimer = clock.after(ms, () => resolve(true));
  return promise.finally(() => {
    cancelTimer();
    for (const signal of signals) signal.removeEventListener("abort", end);
  });
}
