import type { CallLog } from "./call_log.ts";

/** What a load asks, and how many ask at the same time. */
export interface RestartFetchLoadOptions {
  readonly callers: number;
  readonly ask: () => Promise<Response>;
}

/** Pause of a caller after each answer, so that the load leaves the machine room to start processes. */
const PAUSE_MS = 5;

/** Callers over HTTP that never stop asking, until the end of an `await using`. Any answer but 200 is a failure. */
export class RestartFetchLoad implements AsyncDisposable {
  readonly #log: CallLog;
  readonly #callers: Promise<void>;
  #going = true;

  constructor(log: CallLog, { callers, ask }: RestartFetchLoadOptions) {
    this.#log = log;
    this.#callers = Promise.all(Array.from({ length: callers }, () => this.#keep(ask))).then(() => {});
  }

  /** Ends the load; every request that was begun is counted. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#going = false;
    await this.#callers;
  }

  async #keep(ask: () => Promise<Response>): Promise<void> {
    while (this.#going) {
      try {
        const response = await ask();
        const text = await response.text();
        if (response.status === 200) this.#log.answered++;
        else this.#log.failures.push(`${response.status} ${text}`);
      } catch (error) {
        this.#log.failures.push(String(error));
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}
