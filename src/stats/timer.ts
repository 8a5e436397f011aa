/** Upper bounds of the buckets in milliseconds, 50 µs to 10 s; a duration equal to a bound is in its bucket. */
export const BUCKET_BOUNDS_MS: readonly number[] = Object.freeze([
  ...[0.05, 0.1, 0.25, 0.5],
  ...[1, 2.5, 5],
  ...[10, 25, 50],
  ...[100, 250, 500],
  ...[1_000, 2_500, 5_000, 10_000],
]);

/** Durations that one take returns; of more, a sample is. */
const MOST_TAKEN = 500;

/** For recording: unlike a frozen list, this stores plain numbers. */
const BOUNDS = Float64Array.from(BUCKET_BOUNDS_MS);

/** Options of a timer. */
export interface TimerOptions {
  /** Chance by which readers sample, from 0 to below 1. */
  random?: () => number;
}

/** The durations that a reader kept. */
export interface TimerTake {
  /** Milliseconds; a fair sample of all that were seen. */
  readonly values: readonly number[];
  /** Number of durations that were seen. */
  readonly seen: number;
}

/** A traced duration. */
export interface Exemplar {
  /** Its ids are read when they are needed, because their creation costs time. */
  readonly span: { readonly traceId: string; readonly spanId: string };
  readonly ms: number;
  /** When it ended, in milliseconds since the Unix epoch. */
  readonly endedAt: number;
}

/** The durations of another thread. */
export interface TimerDelta extends TimerTake {
  readonly buckets: Float64Array;
  readonly sumMs: number;
  /** Its newest traced durations, at most one for each bucket. */
  readonly exemplars: readonly Exemplar[];
}

/** Durations in milliseconds, fractions allowed: their count, sum and distribution. */
export class Timer {
  /** Durations within each bound and beyond the previous one; the last number is beyond all bounds. */
  readonly buckets = new Float64Array(BUCKET_BOUNDS_MS.length + 1);
  readonly #random: () => number;
  readonly #readers: TimerSamples[] = [];
  /** The newest of each bucket. */
  readonly #exemplars = new Map<number, Exemplar>();
  #count = 0;
  #sumMs = 0;
  /** Samples for `take`. */
  #ownReader: { take(): TimerTake } | undefined;

  constructor({ random = Math.random }: TimerOptions = {}) {
    this.#random = random;
  }

  /** Number of durations so far. */
  get count(): number {
    return this.#count;
  }

  /** Sum of all durations, in milliseconds. */
  get sumMs(): number {
    return this.#sumMs;
  }

  /** Records a duration. One below 0 or NaN, as after a step of a clock, counts as 0. */
  record(ms: number): void {
    const duration = ms > 0 ? ms : 0;
    this.#count++;
    this.#sumMs += duration;
    const bucket = bucketOf(duration);
    this.buckets[bucket] = (this.buckets[bucket] ?? 0) + 1;
    for (let index = 0; index < this.#readers.length; index++) this.#readers[index]?.add(duration);
  }

  /** Notes that a duration, which is recorded separately, belongs to a trace. */
  addExemplar(exemplar: Exemplar): void {
    this.#exemplars.set(bucketOf(exemplar.ms), exemplar);
  }

  /** The newest traced duration of a bucket, by its index; none for a bucket without durations. */
  exemplar(bucket: number): Exemplar | undefined {
    return (this.buckets[bucket] ?? 0) > 0 ? this.#exemplars.get(bucket) : undefined;
  }

  /** Returns the durations since the last take, if there are any, and starts again from zero. */
  take(): TimerDelta | undefined {
    const count = this.#count;
    const reader = this.#ownReader ??= this.reader(MOST_TAKEN);
    if (count === 0) return undefined;
    const exemplars = [...this.#exemplars.values()].map(({ span: { traceId, spanId }, ...facts }) => ({
      span: { traceId, spanId },
      ...facts,
    }));
    const sample = reader.take();
    const taken = {
      buckets: this.buckets.slice(),
      sumMs: this.#sumMs,
      exemplars,
      // Those before the first take were not sampled.
      values: sample.seen === count ? sample.values : [this.#sumMs / count],
      seen: count,
    };
    this.buckets.fill(0);
    this.#exemplars.clear();
    this.#count = 0;
    this.#sumMs = 0;
    return taken;
  }

  /** Adds the durations of another thread; its sample stands for all of them. */
  merge({ buckets, sumMs, values, seen, exemplars }: TimerDelta): void {
    for (const exemplar of exemplars) this.addExemplar(exemplar);
    let count = 0;
    for (const [index, added] of buckets.entries()) {
      this.buckets[index] = (this.buckets[index] ?? 0) + added;
      count += added;
    }
    this.#count += count;
    this.#sumMs += sumMs;
    for (let index = 0; index < seen; index++) {
      const value = values[Math.floor(index * values.length / seen)] ?? 0;
      for (const reader of this.#readers) reader.add(value);
    }
  }

  /** Samples from now on: of more than `most` durations between two takes, each has the same chance to be kept. */
  reader(most: number): { take(): TimerTake } {
    const samples = new TimerSamples(most, this.#random);
    this.#readers.push(samples);
    return samples;
  }
}

/** Most durations are short, so that a linear search beats a binary one. */
function bucketOf(ms: number): number {
  let bucket = 0;
  while (ms > (BOUNDS[bucket] ?? Infinity)) bucket++;
  return bucket;
}

/** Reservoir sampling that draws the distance to the next kept value (Li, "Reservoir-Sampling Algorithms", 1994). */
class TimerSamples {
  readonly #most: number;
  readonly #kept: Float64Array;
  readonly #random: () => number;
  #seen = 0;
  /** Ordinal, from 1, of the next value to keep after those that first fill the reservoir. */
  #next: number;
  /** Chance that the best value so far would still be kept; shrinks with every value kept. */
  #share = 1;

  constructor(most: number, random: () => number) {
    this.#most = Math.max(1, Math.floor(most));
    this.#kept = new Float64Array(this.#most);
    this.#next = this.#most;
    this.#random = random;
  }

  add(value: number): void {
    const seen = ++this.#seen;
    if (seen < this.#next) {
      if (seen < this.#most) this.#kept[seen - 1] = value;
      return;
    }
    const place = seen === this.#most ? seen - 1 : Math.floor(this.#random() * this.#most);
    this.#kept[place] = value;
    this.#drawNext();
  }

  take(): TimerTake {
    const seen = this.#seen;
    this.#seen = 0;
    this.#next = this.#most;
    this.#share = 1;
    return { values: Array.from(this.#kept.subarray(0, seen)), seen };
  }

  #drawNext(): void {
    this.#share *= Math.exp(Math.log(this.#chance()) / this.#most);
    // A share near 0 makes the distance infinite: then no further value is kept.
    const distance = Math.floor(Math.log(this.#chance()) / Math.log1p(-this.#share));
    this.#next = this.#seen + 1 + distance;
  }

  /** Above 0, because its logarithm is taken. */
  #chance(): number {
    return 1 - this.#random();
  }
}
