/** The choice that was kept of a timer's durations. */
export interface TimerTake {
  /** Milliseconds; a fair choice of all that were seen. */
  readonly values: readonly number[];
  /** How many were seen. */
  readonly seen: number;
}

/** A timer as a flush reads it. */
export interface TimerSource {
  /** Durations so far, and their sum in milliseconds; both only grow. */
  readonly count: number;
  readonly sumMs: number;
  /** Keeps at most so many of the durations from now on until they are taken. */
  reader(most: number): { take(): TimerTake };
}

/** Where a flush reads from. What is answered is walked over in pieces, with turns of the event loop between. */
export interface StatsSource {
  counters(): Iterable<readonly [string, number]>;
  gauges(): Iterable<readonly [string, number]>;
  timers(): Iterable<readonly [string, TimerSource]>;
}

/** What a timer saw since the flush before. */
export interface TimerSample extends TimerTake {
  /** Sum of all that were seen, in milliseconds. */
  readonly sumMs: number;
}

/**
 * How statistics are written. A unit is one line, or some that must arrive together and in their order,
 * without the line break at the end. Numbers are finite.
 */
export interface LineFormat {
  counter(name: string, delta: number): string;
  gauge(name: string, value: number): string;
  /** Never called without durations. */
  timer(name: string, sample: TimerSample): readonly string[];
}

/** What brings units to their receiver. Every wait ends; a promise that rejects ends the flush. */
export interface Carrier {
  /** Whether the next units can be handed over now; without it they stay where they are counted. */
  readonly usable: boolean;
  /** Called before each flush; settles when `usable` is as good as it gets. `isLast` is the last chance. */
  prepare(isLast: boolean): Promise<void>;
  /** Hands units over, one call at a time, while usable; settles when the next can follow. */
  send(units: readonly string[]): Promise<void>;
  /** Gives up what is under way after a short while. */
  close(): Promise<void>;
}
