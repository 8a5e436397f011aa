import type { Logger } from "../base/log.ts";

/** Logs each outage of a receiver once, and its end. */
export class PushOutage {
  readonly #receiver: string;
  readonly #logger: Logger;
  #isOut = false;

  /** The receiver is `host:port` of the settings. */
  constructor(receiver: string, logger: Logger) {
    this.#receiver = receiver;
    this.#logger = logger;
  }

  /** It cannot be reached. */
  failed(reason: string): void {
    if (!this.#isOut) {
      this.#logger.warning("Cannot push statistics; retrying", { receiver: this.#receiver, reason });
    }
    this.#isOut = true;
  }

  /** It can be reached. */
  worked(): void {
    if (this.#isOut) this.#logger.warning("Pushing statistics again", { receiver: this.#receiver });
    this.#isOut = false;
  }
}
