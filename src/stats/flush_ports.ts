import type { TimerTake } from "./timer.ts";

/** A timer as a flush reads it. */
export interface TimerSource {
  /** Number and sum in milliseconds of all durations; both only grow. */
  readonly count: number;
  readonly sumMs: number;
  /** Keeps at most so many durations from now on until they are taken. */
  reader(most: number): { take(): TimerTake };
}

/** The source of a flush. It iterates in slices, with turns of the event loop in between. */
export interface StatsSource {
  counters(): Iterable<readonly [string, number]>;
  gauges(): Iterable<readonly [string, number]>;
  timers(): Iterable<readonly [string, TimerSource]>;
}

/** The durations of a timer since the previous flush. */
export interface TimerSample extends TimerTake {
  /** Sum of all that were seen, in milliseconds. */
  readonly sumMs: number;
}

/**
 * The format of statistics. A unit is one line, or several that must arrive together and in order, without
 * the final line break. Numbers are finite.
 */
export interface LineFormat {
  counter(name: string, delta: number): string;
  gauge(name: string, value: number): string;
  /** Never called without durations. */
  timer(name: string, sample: TimerSample): readonly string[];
}

/** Sends units to their receiver. Every wait ends; a promise that rejects ends the flush. */
export interface Carrier {
  /** True when units can be sent now; otherwise counts stay in the store. */
  readonly usable: boolean;
  /** Called before each flush; settles when `usable` is up to date. `isLast` is the last chance. */
  prepare(isLast: boolean): Promise<void>;
  /** Sends units, one call at a time, while usable; settles when the next call may follow. */
  send(units: readonly string[]): Promise<void>;
  /** Cancels what is under way after a short while. */
  close(): Promise<void>;
}

/** Notes whether a receiver can be reached. */
export interface PushOutage {
  failed(reason: string): void;
  worked(): void;
}
