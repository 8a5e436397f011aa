import type { Clock } from "../base/clock.ts";
import { settledWithin } from "../base/wait.ts";
import type { FlushSink } from "./flush_sink.ts";

/** Longest time that the last flush takes, in milliseconds. */
const LAST_FLUSH_MS = 2_000;

/** When to flush. */
export interface FlushLoopOptions {
  readonly intervalMs: number;
  readonly clock: Clock;
}

/** Flushes every sink in an interval, and once more at the end. A sink that is slow holds up no other. */
export class FlushLoop {
  readonly #sinks: readonly FlushSink[];
  readonly #options: FlushLoopOptions;
  #cancel = () => {};
  #closed: Promise<void> | undefined;

  constructor(sinks: readonly FlushSink[], options: FlushLoopOptions) {
    this.#sinks = sinks;
    this.#options = options;
    if (sinks.length > 0) this.#arm();
  }

  /** Flushes a last time and lets go of the receivers; takes a few seconds at most. */
  close(): Promise<void> {
    return this.#closed ??= this.#close();
  }

  #arm(): void {
    const { clock, intervalMs } = this.#options;
    this.#cancel = clock.after(intervalMs, () => {
      this.#arm();
      for (const sink of this.#sinks) sink.start();
    });
  }

  async #close(): Promise<void> {
    this.#cancel();
    const flushed = Promise.all(this.#sinks.map((sink) => sink.finish())).then(() => {});
    await settledWithin(flushed, LAST_FLUSH_MS, this.#options.clock);
    await Promise.all(this.#sinks.map((sink) => sink.close()));
    await flushed; // what was cut off by the closing ends at once
  }
}
