import type { CommandOptions } from "./command.ts";

interface ProgressOptions {
  readonly clock: CommandOptions["clock"];
  readonly output: CommandOptions["output"];
}

/** Shorter work shows no progress. */
const QUIET_MS = 2_000;
/** The period of the line of a terminal, and that of lines elsewhere. */
const TERMINAL_MS = 500;
const LINES_MS = 10_000;

/**
 * The progress of a command that takes long, on standard error: one line that changes on a terminal, else a line now and
 * then. It is shown by a timer, and by `update` while the work leaves no time for timers.
 */
export class Progress implements Disposable {
  readonly #options: ProgressOptions;
  readonly #periodMs: number;
  readonly #startedAt: number;
  #nextAt: number;
  #text: string;
  #cancel = () => {};

  constructor(text: string, options: ProgressOptions) {
    this.#options = options;
    this.#text = text;
    this.#periodMs = options.output.status === undefined ? LINES_MS : TERMINAL_MS;
    this.#startedAt = options.clock.elapsed();
    this.#nextAt = this.#startedAt + QUIET_MS;
    this.#wait();
  }

  /** Says what the work does now, such as `copying delivery: 5000 rows`. */
  update(text: string): void {
    this.#text = text;
    this.#show();
  }

  /** Ends the progress. */
  [Symbol.dispose](): void {
    this.#cancel();
    this.#options.output.status?.("");
  }

  #wait(): void {
    const { clock } = this.#options;
    this.#cancel = clock.after(Math.max(1, this.#nextAt - clock.elapsed()), () => {
      this.#show();
      this.#wait();
    });
  }

  #show(): void {
    const { clock, output } = this.#options;
    const elapsed = clock.elapsed();
    if (elapsed < this.#nextAt) return;
    this.#nextAt = elapsed + this.#periodMs;
    const line = `${this.#text} (${Math.floor((elapsed - this.#startedAt) / 1_000)} s)`;
    if (output.status === undefined) output.stderr(line);
    else output.status(line);
  }
}
