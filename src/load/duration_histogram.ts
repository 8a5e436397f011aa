/** Durations up to this many microseconds have a bucket each; larger ones share buckets of at most 1/128 of them. */
const EXACT_US = 256;
const STEPS = EXACT_US / 2;
/** 35 minutes; longer durations are counted as this. */
const MAX_US = 2 ** 31 - 1;
const BUCKETS = bucketOf(MAX_US) + 1;

/** Counts durations in memory of a fixed size; a percentile differs from the exact one by less than 1 %. */
export class DurationHistogram {
  readonly #counts = new Float64Array(BUCKETS);
  #count = 0;
  #maxMs = 0;

  /** Number of durations. */
  get count(): number {
    return this.#count;
  }

  /** The longest duration; 0 without any. */
  get maxMs(): number {
    return this.#maxMs;
  }

  /** Counts a duration. */
  add(durationMs: number): void {
    const bucket = bucketOf(Math.min(MAX_US, Math.max(0, durationMs * 1_000)));
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#count++;
    if (durationMs > this.#maxMs) this.#maxMs = durationMs;
  }

  /** The duration that this percentage of all durations does not exceed; 0 without any. */
  percentile(percent: number): number {
    const rank = Math.max(1, Math.ceil(percent / 100 * this.#count));
    let seen = 0;
    for (const [ms, count] of this.#buckets()) {
      seen += count;
      if (seen >= rank) return Math.min(ms, this.#maxMs);
    }
    return 0;
  }

  /** The number of durations up to each of these limits and above the previous one; the last entry has the rest. */
  countsUpTo(limitsMs: readonly number[]): number[] {
    const counts = new Array<number>(limitsMs.length + 1).fill(0);
    let place = 0;
    for (const [ms, count] of this.#buckets()) {
      while (place < limitsMs.length && ms > (limitsMs[place] ?? 0)) place++;
      counts[place] = (counts[place] ?? 0) + count;
    }
    return counts;
  }

  /** The middle of each bucket that is not empty, and its count; in ascending order. */
  *#buckets(): Generator<readonly [ms: number, count: number]> {
    for (const [bucket, count] of this.#counts.entries()) {
      if (count > 0) yield [middleUsOf(bucket) / 1_000, count];
    }
  }
}

function bucketOf(us: number): number {
  const shift = Math.max(0, 24 - Math.clz32(us));
  return shift * STEPS + (us >>> shift);
}

function middleUsOf(bucket: number): number {
  if (bucket < EXACT_US) return bucket + 0.5;
  const shift = Math.floor(bucket / STEPS) - 1;
  return (bucket - shift * STEPS + 0.5) * 2 ** shift;
}
