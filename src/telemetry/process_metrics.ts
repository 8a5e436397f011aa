import process from "node:process";
import type { Clock } from "../base/clock.ts";
import { counter, gauge, type MetricGroup, type Metrics } from "../base/metrics.ts";

/** Interval of measuring the delay of the event loop. */
const TICK_MS = 100;
/** A delay is shown for this time at least, and twice as long at most. */
const WINDOW_MS = 5_000;

/** The start of the names of all metrics of this process. */
export const PROCESS_PREFIX = "ratelimit.process.";

/** Metrics of this process. */
export const PROCESS_METRICS = {
  prefix: PROCESS_PREFIX,
  metrics: {
    cpu_user_ms: counter("milliseconds", "CPU time of the process in user mode."),
    cpu_system_ms: counter("milliseconds", "CPU time of the process in system mode."),
    rss_bytes: gauge("bytes", "Resident memory of the process."),
    heap_used_bytes: gauge("bytes", "Used part of the JavaScript heap."),
    heap_total_bytes: gauge("bytes", "Size of the JavaScript heap."),
    external_bytes: gauge("bytes", "Memory of the JavaScript engine outside of its heap."),
    event_loop_delay_ms: gauge(
      "milliseconds",
      "Longest delay of the event loop in the last 5 to 10 seconds.",
      { combined: "max" },
    ),
    uptime_seconds: gauge("seconds", "Time since the start of the process."),
  },
} satisfies MetricGroup;

const { heap_used_bytes, heap_total_bytes, external_bytes, event_loop_delay_ms } = PROCESS_METRICS.metrics;

/** Those that each thread has. */
export const THREAD_METRICS = {
  prefix: PROCESS_PREFIX,
  metrics: { heap_used_bytes, heap_total_bytes, external_bytes, event_loop_delay_ms },
} satisfies MetricGroup;

/** Errors of this process that no other part handled, and lost log lines. */
export const PROCESS_ERROR_METRICS = {
  prefix: PROCESS_PREFIX,
  metrics: {
    socket_errors: counter("errors", "Socket errors that a peer caused and no connection handled."),
    unexpected_errors: counter("errors", "Errors that reached the process level; each is a defect in Weir."),
    log_lines_dropped: counter("lines", "Log lines that were dropped because the log was not read in time."),
  },
} satisfies MetricGroup;

/** Reads the metrics of this process. */
export class ProcessMetrics implements Metrics<typeof PROCESS_METRICS.metrics> {
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
  get counters(): Metrics<typeof PROCESS_METRICS.metrics>["counters"] {
    return {
      cpu_user_ms: () => process.cpuUsage().user / 1_000,
      cpu_system_ms: () => process.cpuUsage().system / 1_000,
    };
  }

  /** The others. The delay is the longest of the event loop in the last seconds. */
  get gauges(): Metrics<typeof PROCESS_METRICS.metrics>["gauges"] {
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
