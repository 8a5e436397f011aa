const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Aborts its signal when a command is interrupted: with the given signal, or else with a signal of the process. */
export class Interruption implements Disposable {
  readonly signal: AbortSignal;
  readonly #abort: (() => void) | undefined;

  constructor(stop: AbortSignal | undefined) {
    if (stop !== undefined) {
      this.signal = stop;
      return;
    }
    const controller = new AbortController();
    this.signal = controller.signal;
    const abort = () => controller.abort();
    this.#abort = abort;
    for (const name of SIGNALS) Deno.addSignalListener(name, abort);
  }

  /** Restores the usual effect of the signals. */
  [Symbol.dispose](): void {
    if (this.#abort === undefined) return;
    for (const name of SIGNALS) Deno.removeSignalListener(name, this.#abort);
  }
}
