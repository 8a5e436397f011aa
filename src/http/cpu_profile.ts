import { Session } from "node:inspector/promises";
import type { Clock } from "../base/clock.ts";
import { aborted, settledWithin } from "../base/wait.ts";

/** How long a profile runs, and what cancels it. */
export interface RecordOptions {
  readonly durationMs: number;
  readonly clock: Clock;
  readonly signals: readonly AbortSignal[];
}

/** Time between two samples, in microseconds. */
const SAMPLING_INTERVAL_US = 1_000;

/** Records CPU profiles, one at a time, because the engine has one recorder. */
export class CpuProfiler {
  #recording = false;

  /** Whether a recording is under way. */
  get recording(): boolean {
    return this.#recording;
  }

  /** Records the text of a `.cpuprofile` file; undefined when it is cancelled. Throws while another recording runs. */
  async record({ durationMs, clock, signals }: RecordOptions): Promise<string | undefined> {
    if (this.#recording) throw new Error("Cannot record a CPU profile: a recording is under way");
    this.#recording = true;
    const session = new Session();
    try {
      session.connect();
      await session.post("Profiler.enable");
      await session.post("Profiler.setSamplingInterval", { interval: SAMPLING_INTERVAL_US });
      await session.post("Profiler.start");
      const isWhole = await elapses(durationMs, clock, AbortSignal.any([...signals]));
      const { profile } = await session.post("Profiler.stop");
      return isWhole ? JSON.stringify(profile) : undefined;
    } finally {
      session.disconnect();
      this.#recording = false;
    }
  }
}

/** Waits; false as soon as the signal is aborted. */
async function elapses(ms: number, clock: Clock, signal: AbortSignal): Promise<boolean> {
  return !await settledWithin(aborted(signal), ms, clock);
}
