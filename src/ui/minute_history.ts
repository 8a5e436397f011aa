import type { Clock } from "../base/clock.ts";

/** Counters that only grow, by name. */
type Counts = Readonly<Record<string, number>>;

/** Options of a history. */
interface MinuteHistoryOptions {
  readonly clock: Pick<Clock, "now" | "elapsed" | "after">;
  /** Reads the counters; always the same ones. */
  readonly read: () => Counts;
}

const MINUTE_MS = 60_000;
/** The current minute, and the whole ones before it. */
const MAX_MINUTES = 60;

/** The increases of counters in each minute of the last hour. */
export class MinuteHistory {
  readonly #options: MinuteHistoryOptions;
  /** The start of the first minute by the clock's `elapsed`: a step of the wall clock moves no minute. */
  readonly #origin: number;
  /** The current one is the last. */
  readonly #minutes: Counts[];
  #minute = 0;
  #last: Counts;
  #cancel = () => {};

  constructor(options: MinuteHistoryOptions) {
    const { clock, read } = options;
    this.#options = options;
    this.#origin = clock.elapsed() - clock.now() % MINUTE_MS;
    this.#last = read();
    this.#minutes = [difference(this.#last, this.#last)];
  }

  /** Reads the counters at the end of each minute; returns a function that ends that. */
  start(): () => void {
    const { clock } = this.#options;
    this.#note();
    const passedMs = (clock.elapsed() - this.#origin) % MINUTE_MS;
    this.#cancel = clock.after(MINUTE_MS - passedMs, () => this.start());
    return () => this.#cancel();
  }

  /** The increases in each minute, by name, the current minute last. */
  make(): Readonly<Record<string, readonly number[]>> {
    this.#note();
    const names = Object.keys(this.#last);
    return Object.fromEntries(names.map((name) => [name, this.#minutes.map((counts) => counts[name] ?? 0)]));
  }

  /** Adds the counts since the last reading to the minute of that reading. */
  #note(): void {
    const { clock, read } = this.#options;
    const counts = read();
    const added = difference(counts, this.#last);
    this.#last = counts;
    this.#minutes.push(sum(this.#minutes.pop() ?? {}, added));
    const minute = Math.floor((clock.elapsed() - this.#origin) / MINUTE_MS);
    const passed = Math.min(minute - this.#minute, MAX_MINUTES);
    this.#minute = minute;
    for (let index = 0; index < passed; index++) this.#minutes.push(difference(counts, counts));
    this.#minutes.splice(0, this.#minutes.length - MAX_MINUTES);
  }
}

function difference(after: Counts, before: Counts): Counts {
  return mapped(after, (count, name) => Math.max(0, count - (before[name] ?? 0)));
}

function sum(before: Counts, added: Counts): Counts {
  return mapped(added, (count, name) => count + (before[name] ?? 0));
}

function mapped(counts: Counts, of: (count: number, name: string) => number): Counts {
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, of(count, name)]));
}
