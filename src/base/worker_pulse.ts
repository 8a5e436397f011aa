import type { Clock } from "./clock.ts";

/** How a worker is asked whether it lives, and who is told when it does not. */
export interface WorkerPulseOptions {
  readonly clock: Clock;
  /** Sends the question; the answer is told to `noteAnswer`. */
  readonly ping: () => void;
  /** Called once when the worker was silent for too long, with how long that is. */
  readonly onSilence: (seconds: number) => void;
}

const BEAT_MS = 10_000;
/** Beats without an answer that are borne at first, and at most. */
const FIRST_PATIENCE = 6;
const MAX_PATIENCE = 360;

/**
 * Feels the pulse of a worker: it has to answer pings, and to answer a wish for a load with a load.
 * Silence is counted in beats and not by the clock, so that a process that was held up as a whole does
 * not take its worker for dead. The patience doubles with every silence: a machine may need that long
 * for large files, and a worker whose thread never ends is left behind in memory.
 */
export class WorkerPulse {
  readonly #options: WorkerPulseOptions;
  #patience = FIRST_PATIENCE;
  #cancel = () => {};
  /** Beats since the worker had to answer; absent when nothing is awaited. */
  #pinged: number | undefined;
  #loading: number | undefined;

  constructor(options: WorkerPulseOptions) {
    this.#options = options;
  }

  /** Begins with a worker of which the first load is awaited. */
  start(): void {
    this.#pinged = undefined;
    this.#loading = 0;
    this.#beatLater();
  }

  /** Ends the beats; `start` begins them again. */
  stop(): void {
    this.#cancel();
  }

  /** A load was asked for. */
  awaitLoad(): void {
    this.#loading ??= 0;
  }

  /** A load came. */
  noteLoad(): void {
    this.#loading = undefined;
    this.#pinged = undefined;
  }

  /** A ping was answered. */
  noteAnswer(): void {
    this.#pinged = undefined;
  }

  #beatLater(): void {
    this.#cancel();
    this.#cancel = this.#options.clock.after(BEAT_MS, () => this.#beat());
  }

  #beat(): void {
    if (this.#loading !== undefined) this.#loading++;
    if (this.#pinged !== undefined) this.#pinged++;
    if (Math.max(this.#loading ?? 0, this.#pinged ?? 0) >= this.#patience) {
      const seconds = this.#patience * BEAT_MS / 1_000;
      this.#patience = Math.min(this.#patience * 2, MAX_PATIENCE);
      return this.#options.onSilence(seconds);
    }
    if (this.#pinged === undefined) {
      this.#pinged = 0;
      this.#options.ping();
    }
    this.#beatLater();
  }
}
