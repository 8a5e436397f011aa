import { percentileOfSorted } from "./percentile.ts";

/** What one run of the load generator found. */
export interface LoadResult {
  /** Calls that were begun; each of them is in `statuses` or in `errors`, a bad answer in both. */
  readonly calls: number;
  /** From the end of the warm-up, or the first call's start without one, to the last answer. */
  readonly seconds: number;
  /** Answers in those seconds. */
  readonly callsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** How often each thing went wrong; empty when every answer was right. */
  readonly errors: Readonly<Record<string, number>>;
  /** How many answers came with each pair of statuses. */
  readonly statuses: Readonly<Record<string, number>>;
  /** How much of one core the generator used; near 1 it may have been what was measured. */
  readonly generatorBusy: number;
}

/** Who is told what becomes of calls. Times are milliseconds of `performance.now`. */
export interface CallRecord {
  /** A call starts at `now`. */
  begin(now: number): void;
  /** An answer with the statuses of success came, whatever its body. */
  goodAnswer(start: number, end: number): void;
  /** An answer with any other statuses came; `error` tells the same once more, with its message. */
  badAnswer(statuses: string, start: number, end: number): void;
  /** So many calls that were begun get no answer. */
  lost(text: string, calls: number): void;
  /** Something else went wrong, so many times. */
  error(text: string, times?: number): void;
}

/** Different texts of errors that are kept; the rest is counted together. */
const MAX_ERROR_TEXTS = 20;
const GOOD_STATUSES = "http 200, grpc 0";

/** Gathers what happened to the calls of all connections. */
export class LoadRecord implements CallRecord {
  readonly #measureFrom: number;
  #calls = 0;
  #goodAnswers = 0;
  #durationsMs = new Float64Array(65_536);
  #measured = 0;
  #firstStart = 0;
  #lastEnd = 0;
  readonly #errors = new Map<string, number>();
  readonly #statuses = new Map<string, number>();

  /** Answers before `measureFrom` are checked and counted, but do not make the metrics. */
  constructor(measureFrom = 0) {
    this.#measureFrom = measureFrom;
  }

  /** Counts a call that starts at `now`. */
  begin(now: number): void {
    if (this.#calls === 0) this.#firstStart = now;
    this.#calls++;
  }

  /** Counts an answer with the statuses of success, whatever its body. */
  goodAnswer(start: number, end: number): void {
    this.#goodAnswers++;
    if (end < this.#measureFrom) return;
    if (this.#measured === this.#durationsMs.length) {
      const longer = new Float64Array(2 * this.#measured);
      longer.set(this.#durationsMs);
      this.#durationsMs = longer;
    }
    this.#durationsMs[this.#measured++] = end - start;
    this.#lastEnd = end;
  }

  /** Counts an answer with any other statuses. */
  badAnswer(statuses: string): void {
    count(this.#statuses, statuses, 1);
  }

  /** Counts calls that get no answer. */
  lost(text: string, calls: number): void {
    this.error(text, calls);
  }

  /** Counts something that went wrong, so many times. */
  error(text: string, times = 1): void {
    if (times === 0) return;
    const isKept = this.#errors.has(text) || this.#errors.size < MAX_ERROR_TEXTS;
    count(this.#errors, isKept ? text : "other errors", times);
  }

  /** Everything so far. */
  result(generatorBusy = 0): LoadResult {
    const seconds = Math.max(0, this.#lastEnd - Math.max(this.#firstStart, this.#measureFrom)) / 1_000;
    const sorted = this.#durationsMs.slice(0, this.#measured).sort();
    const statuses = new Map(this.#statuses);
    if (this.#goodAnswers > 0) count(statuses, GOOD_STATUSES, this.#goodAnswers);
    return {
      calls: this.#calls,
      seconds,
      callsPerSecond: seconds === 0 ? 0 : this.#measured / seconds,
      p50Ms: percentileOfSorted(sorted, 50),
      p99Ms: percentileOfSorted(sorted, 99),
      errors: Object.fromEntries(this.#errors),
      statuses: Object.fromEntries(statuses),
      generatorBusy,
    };
  }
}

function count(counts: Map<string, number>, text: string, times: number): void {
  counts.set(text, (counts.get(text) ?? 0) + times);
}
