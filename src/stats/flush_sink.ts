import { setImmediate } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { settledWithin } from "../base/wait.ts";
import type { Carrier, LineFormat, StatsSource, TimerSample, TimerSource } from "./flush_ports.ts";
import type { TimerTake } from "./timer.ts";

/** Names read in one turn of the event loop: a millisecond or two. */
const SLICE_NAMES = 500;
/** Durations of one timer that are sent in a flush; of more, a sample is. */
const MOST_DURATIONS = 500;
/** Longest time of the last flush. */
const LAST_FLUSH_MS = 2_000;

/** The parts of a sink. */
export interface FlushSinkOptions {
  /** Its name in the log. */
  readonly name: string;
  readonly source: StatsSource;
  readonly format: LineFormat;
  readonly carrier: Carrier;
  readonly logger: Logger;
}

/**
 * Sends statistics to one receiver: counters by their growth if any, all gauges, timers by their durations. Nothing
 * is read while the carrier cannot be used, so that an outage costs no memory and its counts follow.
 */
export class FlushSink implements FlushTarget {
  readonly #options: FlushSinkOptions;
  readonly #counts = new FlushCounts();
  readonly #sums = new FlushCounts();
  readonly #readers = new Map<string, { take(): TimerTake }>();
  #running: Promise<void> | undefined;
  #hasFailed = false;

  constructor(options: FlushSinkOptions) {
    this.#options = options;
    for (const [name, timer] of options.source.timers()) this.#watch(name, timer);
  }

  /** Starts a flush, unless one is running. */
  start(): void {
    this.#running ??= this.#run(false).finally(() => this.#running = undefined);
  }

  /** Ends the running flush, and does one more. */
  async finish(): Promise<void> {
    await this.#running;
    await this.#run(true);
  }

  /** Closes the carrier. */
  async close(): Promise<void> {
    await this.#options.carrier.close();
  }

  async #run(isLast: boolean): Promise<void> {
    const { name, logger } = this.#options;
    try {
      await this.#flush(isLast);
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) logger.warning("Cannot flush statistics", { receiver: name, error });
      this.#hasFailed = true;
    }
  }

  async #flush(isLast: boolean): Promise<void> {
    const { source, format, carrier } = this.#options;
    await carrier.prepare(isLast);
    if (!carrier.usable) return;
    const isWhole = await this.#send(source.counters(), (units, [name, value]) => {
      const delta = this.#counts.delta(name, value);
      if (delta !== 0 && Number.isFinite(delta)) units.push(format.counter(name, delta));
    });
    if (isWhole) this.#counts.endRound();
    await this.#send(source.gauges(), (units, [name, value]) => {
      if (Number.isFinite(value)) units.push(format.gauge(name, value));
    });
    await this.#send(source.timers(), (units, [name, timer]) => {
      const sample = this.#sample(name, timer);
      if (sample.seen > 0) units.push(...format.timer(name, sample));
    });
  }

  /** Returns whether all items were read: a carrier that becomes unusable ends it. */
  async #send<T>(items: Iterable<T>, add: (units: string[], item: T) => void): Promise<boolean> {
    const { carrier } = this.#options;
    const iterator = items[Symbol.iterator]();
    while (carrier.usable) {
      const units: string[] = [];
      const isEnd = fill(units, iterator, add);
      if (units.length > 0) await carrier.send(units);
      if (isEnd) return true;
      await setImmediate();
    }
    return false;
  }

  #sample(name: string, timer: TimerSource): TimerSample {
    const reader = this.#readers.get(name);
    const sumMs = this.#sums.delta(name, timer.sumMs);
    if (reader !== undefined) return { ...reader.take(), sumMs };
    // Durations before the timer was known here were not kept; their number and sum are true.
    const { count } = timer;
    this.#watch(name, timer);
    return { values: count > 0 ? [sumMs / count] : [], seen: count, sumMs };
  }

  #watch(name: string, timer: TimerSource): void {
    this.#readers.set(name, timer.reader(MOST_DURATIONS));
  }
}

/** Adds the units of a slice; returns whether it was the last. */
function fill<T>(units: string[], iterator: Iterator<T>, add: (units: string[], item: T) => void): boolean {
  for (let count = 0; count < SLICE_NAMES; count++) {
    const next = iterator.next();
    if (next.done === true) return true;
    add(units, next.value);
  }
  return false;
}

/** The last value of each counter that one sink sent. */
export class FlushCounts {
  /** Each with the last round that had the name. */
  readonly #known = new Map<string, { value: number; round: number }>();
  #round = 0;
  #seen = 0;

  /** Number of remembered names. */
  get size(): number {
    return this.#known.size;
  }

  /** The growth of a counter since the last call; of one that restarted, its value. */
  delta(name: string, value: number): number {
    const known = this.#known.get(name);
    if (known === undefined) {
      this.#known.set(name, { value, round: this.#round });
      this.#seen++;
      return value;
    }
    if (known.round !== this.#round) this.#seen++;
    known.round = this.#round;
    const delta = value - known.value;
    known.value = value;
    return delta < 0 ? value : delta;
  }

  /** Ends a walk over all counters: names that were not among them are forgotten. */
  endRound(): void {
    if (this.#seen < this.#known.size) {
      for (const [name, { round }] of this.#known) if (round !== this.#round) this.#known.delete(name);
    }
    this.#round++;
    this.#seen = 0;
  }
}

/** A part that is flushed at an interval. Nothing throws. */
interface FlushTarget {
  /** Starts a flush, unless one is running. */
  start(): void;
  /** Ends the running flush, and does one more. */
  finish(): Promise<void>;
  /** Ends what is under way after a short while. */
  close(): Promise<void>;
}

/** Flushes every sink at an interval, and once more at the end; a slow sink delays no other. */
export class FlushLoop {
  readonly #sinks: readonly FlushTarget[];
  readonly #options: { readonly intervalMs: number; readonly clock: Clock };
  #cancel = () => {};
  #closed: Promise<void> | undefined;

  constructor(
    sinks: readonly FlushTarget[],
    options: { readonly intervalMs: number; readonly clock: Clock },
  ) {
    this.#sinks = sinks;
    this.#options = options;
    if (sinks.length > 0) this.#schedule();
  }

  /** Flushes a last time and closes the sinks; takes a few seconds at most. */
  close(): Promise<void> {
    return this.#closed ??= this.#close();
  }

  #schedule(): void {
    const { clock, intervalMs } = this.#options;
    this.#cancel = clock.after(intervalMs, () => {
      this.#schedule();
      for (const sink of this.#sinks) sink.start();
    });
  }

  async #close(): Promise<void> {
    this.#cancel();
    const flushed = Promise.all(this.#sinks.map((sink) => sink.finish())).then(() => {});
    await settledWithin(flushed, LAST_FLUSH_MS, this.#options.clock);
    await Promise.all(this.#sinks.map((sink) => sink.close()));
    await flushed; // closing the carriers ends what was left
  }
}
