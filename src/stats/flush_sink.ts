import { setImmediate } from "node:timers";
import type { Logger } from "../base/log.ts";
import { FlushCounts } from "./flush_counts.ts";
import type { Carrier, LineFormat, StatsSource, TimerSample, TimerSource, TimerTake } from "./flush_ports.ts";

/** Names that are looked at in one turn of the event loop: a millisecond or two. */
const SLICE_NAMES = 500;
/** Durations of one timer that are sent a flush; of more a fair choice is. */
const MOST_DURATIONS = 500;

/** What a sink is made of. */
export interface FlushSinkOptions {
  /** What the log calls it. */
  readonly name: string;
  readonly source: StatsSource;
  readonly format: LineFormat;
  readonly carrier: Carrier;
  readonly logger: Logger;
}

/**
 * Brings statistics to one receiver: counters by what they grew, and not where that is nothing; gauges
 * always; timers by their durations. While the carrier cannot be used nothing is taken, so that an
 * outage costs no memory and its counts follow when it is over.
 */
export class FlushSink {
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

  /** Begins a flush, unless the one before is still under way. */
  start(): void {
    this.#running ??= this.#run(false).finally(() => this.#running = undefined);
  }

  /** Ends the flush that is under way, and does one more. */
  async finish(): Promise<void> {
    await this.#running;
    await this.#run(true);
  }

  /** Lets go of the receiver. */
  async close(): Promise<void> {
    await this.#options.carrier.close();
  }

  async #run(isLast: boolean): Promise<void> {
    const { name, logger } = this.#options;
    try {
      await this.#flush(isLast);
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) logger.warning(`Cannot flush statistics to ${name}: it fails`, { error });
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

  /** Answers whether all of them were looked at: a carrier that cannot be used any more ends it. */
  async #send<T>(items: Iterable<T>, add: (units: string[], item: T) => void): Promise<boolean> {
    const { carrier } = this.#options;
    const iterator = items[Symbol.iterator]();
    while (carrier.usable) {
      const units: string[] = [];
      const isEnd = fill(units, iterator, add);
      if (units.length > 0) await carrier.send(units);
      if (isEnd) return true;
      await turn();
    }
    return false;
  }

  #sample(name: string, timer: TimerSource): TimerSample {
    const reader = this.#readers.get(name);
    const sumMs = this.#sums.delta(name, timer.sumMs);
    if (reader !== undefined) return { ...reader.take(), sumMs };
    // Nobody kept the durations that came before a timer was known here; their number and sum are true.
    const { count } = timer;
    this.#watch(name, timer);
    return { values: count > 0 ? [sumMs / count] : [], seen: count, sumMs };
  }

  #watch(name: string, timer: TimerSource): void {
    this.#readers.set(name, timer.reader(MOST_DURATIONS));
  }
}

/** Adds the units of a slice; answers whether it was the last. */
function fill<T>(units: string[], iterator: Iterator<T>, add: (units: string[], item: T) => void): boolean {
  for (let count = 0; count < SLICE_NAMES; count++) {
    const next = iterator.next();
    if (next.done === true) return true;
    add(units, next.value);
  }
  return false;
}

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
