import { DurationHistogram } from "./duration_histogram.ts";

/** The result of one run of the load generator. */
export interface LoadResult {
  /** Started calls; each of them is in `statuses` or in `errors`, a bad answer in both. */
  readonly calls: number;
  /** From the end of the warm-up, or the first call's start without one, to the last answer. */
  readonly seconds: number;
  /** Answers in those seconds. */
  readonly callsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The number of each error; empty when every answer was good. */
  readonly errors: Readonly<Record<string, number>>;
  /** The number of answers with each code of gRPC. */
  readonly statuses: Readonly<Record<string, number>>;
  /** The share of one core that the generator used; near 1, it may be the bottleneck. */
  readonly generatorBusy: number;
}

/** Records the outcome of calls. Times are milliseconds of `performance.now`. */
export interface CallRecord {
  /** A call starts at `now`. */
  begin(now: number): void;
  /** An answer with the status OK came, whatever its message. */
  goodAnswer(start: number, end: number): void;
  /** An answer with another status came, by the name of its code; `error` reports it again, with its text. */
  badAnswer(code: string, start: number, end: number): void;
  /** So many started calls get no answer. */
  lost(text: string, calls: number): void;
  /** An error happened so many times. */
  error(text: string, times?: number): void;
}

/** Different texts of errors that are kept; all others are counted together. */
const MAX_TEXTS = 20;
const OTHER = "other errors";

/** Counts the outcomes of the calls of all connections, in memory of a fixed size. */
export class LoadRecord implements CallRecord {
  #measureFrom: number;
  #calls = 0;
  #goodAnswers = 0;
  readonly #durations = new DurationHistogram();
  #firstStart = 0;
  #lastEnd = 0;
  readonly #errors = new Map<string, number>();
  readonly #statuses = new Map<string, number>();

  /** Answers before `measureFrom` are checked and counted, but not measured. */
  constructor(measureFrom = 0) {
    this.#measureFrom = measureFrom;
  }

  /** Ends the warm-up at a later time. */
  measureFrom(at: number): void {
    this.#measureFrom = at;
  }

  /** Counts a call that starts at `now`. */
  begin(now: number): void {
    if (this.#calls === 0) this.#firstStart = now;
    this.#calls++;
  }

  /** Counts an answer with the status OK, whatever its message. */
  goodAnswer(start: number, end: number): void {
    this.#goodAnswers++;
    if (end < this.#measureFrom) return;
    this.#durations.add(end - start);
    this.#lastEnd = end;
  }

  /** Counts an answer with another status. */
  badAnswer(code: string): void {
    count(this.#statuses, code, 1);
  }

  /** Counts calls that get no answer. */
  lost(text: string, calls: number): void {
    this.error(text, calls);
  }

  /** Counts an error, so many times. */
  error(text: string, times = 1): void {
    if (times === 0) return;
    count(this.#errors, text, times);
  }

  /** The durations of measured answers. */
  get durations(): DurationHistogram {
    return this.#durations;
  }

  /** Everything so far. */
  result(generatorBusy = 0): LoadResult {
    const seconds = Math.max(0, this.#lastEnd - Math.max(this.#firstStart, this.#measureFrom)) / 1_000;
    const statuses = new Map(this.#statuses);
    if (this.#goodAnswers > 0) statuses.set("OK", this.#goodAnswers);
    return {
      calls: this.#calls,
      seconds,
      callsPerSecond: seconds === 0 ? 0 : this.#durations.count / seconds,
      p50Ms: this.#durations.percentile(50),
      p99Ms: this.#durations.percentile(99),
      errors: Object.fromEntries(this.#errors),
      statuses: Object.fromEntries(statuses),
      generatorBusy,
    };
  }
}

/** A peer may send any text, so there is a limit. */
function count(counts: Map<string, number>, text: string, times: number): void {
  const name = counts.has(text) || counts.size < MAX_TEXTS ? text : OTHER;
  counts.set(name, (counts.get(name) ?? 0) + times);
}
