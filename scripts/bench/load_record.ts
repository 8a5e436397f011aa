import { percentile } from "./percentile.ts";

/** What one run of the load generator found. */
export interface LoadResult {
  /** Calls that were begun; each of them is in `statuses` or in `errors`, a bad answer in both. */
  readonly calls: number;
  /** From the first call's start to the last answer. */
  readonly seconds: number;
  readonly callsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** How often each thing went wrong; empty when every answer was right. */
  readonly errors: Readonly<Record<string, number>>;
  /** How many answers came with each pair of statuses. */
  readonly statuses: Readonly<Record<string, number>>;
}

/** Different texts of errors that are kept; the rest is counted together. */
const MAX_ERROR_TEXTS = 20;

/** Gathers what happened to the calls of all connections. */
export class LoadRecord {
  #calls = 0;
  #answers = 0;
  #durationsMs = new Float64Array(65_536);
  #firstStart = 0;
  #lastEnd = 0;
  readonly #errors = new Map<string, number>();
  readonly #statuses = new Map<string, number>();

  /** Calls that were begun. */
  get calls(): number {
    return this.#calls;
  }

  /** Counts a call that starts at `now`, in milliseconds of a monotonic clock. */
  begin(now: number): void {
    if (this.#calls === 0) this.#firstStart = now;
    this.#calls++;
  }

  /** Counts an answer, right or wrong. */
  answer(statuses: string, times: { readonly start: number; readonly end: number }): void {
    if (this.#answers === this.#durationsMs.length) {
      const longer = new Float64Array(2 * this.#answers);
      longer.set(this.#durationsMs);
      this.#durationsMs = longer;
    }
    this.#durationsMs[this.#answers++] = times.end - times.start;
    this.#lastEnd = times.end;
    count(this.#statuses, statuses, 1);
  }

  /** Counts something that went wrong, so many times. */
  error(text: string, times = 1): void {
    if (times === 0) return;
    const isKept = this.#errors.has(text) || this.#errors.size < MAX_ERROR_TEXTS;
    count(this.#errors, isKept ? text : "other errors", times);
  }

  /** Everything so far. */
  result(): LoadResult {
    const seconds = Math.max(0, this.#lastEnd - this.#firstStart) / 1_000;
    const durations = this.#durationsMs.subarray(0, this.#answers);
    return {
      calls: this.#calls,
      seconds,
      callsPerSecond: seconds === 0 ? 0 : this.#answers / seconds,
      p50Ms: percentile(durations, 50),
      p99Ms: percentile(durations, 99),
      errors: Object.fromEntries(this.#errors),
      statuses: Object.fromEntries(this.#statuses),
    };
  }
}

function count(counts: Map<string, number>, text: string, times: number): void {
  counts.set(text, (counts.get(text) ?? 0) + times);
}
