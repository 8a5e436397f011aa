import process from "node:process";
import type { Clock } from "../base/clock.ts";

/** Interval of measuring the delay of the event loop. */
const TICK_MS = 100;
/** A delay is shown for this time at least, and twice as long at most. */
const WINDOW_MS = 5_000;

/** Metrics of this process, by the last part of their names. */
export class ProcessMetrics {
  readonly #clock: Clock;
  readonly #startedAt: number;
  #cancelTick: () => void;
  /** The longest delay of the current window, and of the previous one. */
  #delayMs = 0;
  #previousDelayMs = 0;
  #windowStartedAt: number;

  /** Watches the event loop until `close`. */
  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
    this.#startedAt = clock.elapsed();
    this.#windowStartedAt = this.#startedAt;
    this.#cancelTick = this.#scheduleTick();
  }

  /** Numbers that only grow. */
  get counters(): Readonly<Record<string, () => number>> {
    return {
      cpu_user_ms: () => process.cpuUsage().user / 1_000,
      cpu_system_ms: () => process.cpuUsage().system / 1_000,
    };
  }

  /** The others. The delay is the longest of the event loop in the last seconds. */
  get gauges(): Readonly<Record<string, () => number>> {
    return {
      rss_bytes: () => Deno.memoryUsage().rss,
      heap_used_bytes: () => Deno.memoryUsage().heapUsed,
      heap_total_bytes: () => Deno.memoryUsage().heapTotal,
      external_bytes: () => Deno.memoryUsage().external,
      event_loop_delay_ms: () => Math.max(this.#delayMs, this.#previousDelayMs),
      uptime_seconds: () => (this.#clock.elapsed() - this.#startedAt) / 1_000,
    };
  }

  /** Stops watching. */
  close(): void {
    this.#cancelTick();
  }

  #scheduleTick(): () => void {
    const due = this.#clock.elapsed() + TICK_MS;
    return this.#clock.after(TICK_MS, () => {
      const now = this.#clock.elapsed();
      if (now - this.#windowStartedAt >= WINDOW_MS) {
        this.#windowStartedAt = now;
        this.#previousDelayMs = this.#delayMs;
        this.#delayMs = 0;
      }
      this.#delayMs = Math.max(this.#delayMs, now - due);
      this.#cancelTick = this.#scheduleTick();
    });
  }
}
