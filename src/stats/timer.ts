import { TimerSamples } from "./timer_samples.ts";

/** Upper bounds of the buckets, in milliseconds: 50 µs to 10 s. A duration that equals a bound is in its bucket. */
export const BUCKET_BOUNDS_MS: readonly number[] = Object.freeze([
  ...[0.05, 0.1, 0.25, 0.5],
  ...[1, 2.5, 5],
  ...[10, 25, 50],
  ...[100, 250, 500],
  ...[1_000, 2_500, 5_000, 10_000],
]);

/** The same where recording looks: numbers that are stored as such, which those of a frozen list are not. */
const BOUNDS = Float64Array.from(BUCKET_BOUNDS_MS);

/** What a sink that sends single values takes from a timer. */
export interface TimerReader {
  /** What was recorded since the last take: how much, and the values of all or of a fair choice. */
  take(): { readonly values: readonly number[]; readonly seen: number };
}

/** Choices for a timer. */
export interface TimerOptions {
  /** Chance that readers choose by, from 0 to below 1. */
  random?: () => number;
}

/** Durations in milliseconds, fractions allowed: how many, their sum, and how they spread. */
export class Timer {
  /** How many durations are within each bound and beyond the one before; the last number is beyond all bounds. */
  readonly buckets: Readonly<Float64Array>;
  /** The same array; recording writes through it. */
  readonly #buckets = new Float64Array(BUCKET_BOUNDS_MS.length + 1);
  readonly #random: () => number;
  readonly #readers: TimerSamples[] = [];
  #count = 0;
  #sumMs = 0;

  constructor(options: TimerOptions = {}) {
    this.buckets = this.#buckets;
    this.#random = options.random ?? Math.random;
  }

  /** Number of durations ever recorded. */
  get count(): number {
    return this.#count;
  }

  /** Sum of all durations, in milliseconds. */
  get sumMs(): number {
    return this.#sumMs;
  }

  /** Takes one duration. What is below 0 or not a number, as after a step of a clock, counts as 0. */
  record(ms: number): void {
    const duration = ms > 0 ? ms : 0;
    this.#count++;
    this.#sumMs += duration;
    const bucket = bucketOf(duration);
    this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
    for (let index = 0; index < this.#readers.length; index++) this.#readers[index]?.add(duration);
  }

  /**
   * Keeps samples from now on for one sink that sends single values. Of more than `most` durations between
   * two takes a fair choice is kept: each has the same chance to be among the values.
   */
  reader(most: number): TimerReader {
    const samples = new TimerSamples(most, this.#random);
    this.#readers.push(samples);
    return samples;
  }
}

/** Most durations are short, so that a walk from the shortest ends sooner than halving. */
function bucketOf(ms: number): number {
  let bucket = 0;
  while (ms > (BOUNDS[bucket] ?? Infinity)) bucket++;
  return bucket;
}
