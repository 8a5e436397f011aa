import type { Logger } from "../base/log.ts";

/** Tells of the outages of a receiver: once when one begins, once when it is over. */
export class PushOutage {
  readonly #receiver: string;
  readonly #logger: Logger;
  #isOut = false;

  /** The receiver is named by what the settings say of it: `host:port`. */
  constructor(receiver: string, logger: Logger) {
    this.#receiver = receiver;
    this.#logger = logger;
  }

  /** It cannot be reached, or not any more. */
  failed(reason: string): void {
    if (!this.#isOut) {
      this.#logger.warning(`Cannot push statistics to "${this.#receiver}": ${reason}; trying again`);
    }
    this.#isOut = true;
  }

  /** It can be reached. */
  worked(): void {
    if (this.#isOut) this.#logger.warning(`Pushing statistics to "${this.#receiver}" again`);
    this.#isOut = false;
  }
}
