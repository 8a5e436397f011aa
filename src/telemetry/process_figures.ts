import process from "node:process";
import type { Clock } from "../base/clock.ts";

/** How often the event loop is asked whether it is on time. */
const TICK_MS = 100;
/** For how long a delay is shown at least, and for at most twice as long. */
const SHOWN_MS = 5_000;

/** What this process tells of itself, by the last part of the name under which it is shown. */
export class ProcessFigures {
  readonly #clock: Clock;
  readonly #startedAt: number;
  #cancelTick: () => void;
  /** The longest delay of the time that runs, and of the time before it. */
  #delayMs = 0;
  #delayBeforeMs = 0;
  #timeBeganAt: number;

  /** Watches the event loop from now on, until it is closed. */
  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
    this.#startedAt = clock.elapsed();
    this.#timeBeganAt = this.#startedAt;
    this.#cancelTick = this.#scheduleTick();
  }

  /** Numbers that only grow. */
  get counters(): Readonly<Record<string, () => number>> {
    return {
      cpu_user_ms: () => process.cpuUsage().user / 1_000,
      cpu_system_ms: () => process.cpuUsage().system / 1_000,
    };
  }

  /** The others. The delay is by how much the event loop came too late at most, over the last seconds. */
  get gauges(): Readonly<Record<string, () => number>> {
    return {
      rss_bytes: () => Deno.memoryUsage().rss,
      heap_used_bytes: () => Deno.memoryUsage().heapUsed,
      heap_total_bytes: () => Deno.memoryUsage().heapTotal,
      external_bytes: () => Deno.memoryUsage().external,
      event_loop_delay_ms: () => Math.max(this.#delayMs, this.#delayBeforeMs),
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
      if (now - this.#timeBeganAt >= SHOWN_MS) {
        this.#timeBeganAt = now;
        this.#delayBeforeMs = this.#delayMs;
        this.#delayMs = 0;
      }
      this.#delayMs = Math.max(this.#delayMs, now - due);
      this.#cancelTick = this.#scheduleTick();
    });
  }
}
