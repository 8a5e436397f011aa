import { ConnectionError } from "./frames.ts";
import { LIMITS } from "./limits.ts";
import type { Sender } from "./sender.ts";

/** The flow control window of a whole connection for received DATA. */
export class ReceiveWindow {
  readonly #sender: Pick<Sender, "windowUpdate">;
  #left: number = LIMITS.connectionWindow;

  constructor(sender: Pick<Sender, "windowUpdate">) {
    this.#sender = sender;
  }

  /** Takes the payload of a frame, padding included, and widens the window again once half of it is used. */
  take(bytes: number): void {
    this.#left -= bytes;
    if (this.#left < 0) {
      throw new ConnectionError("FLOW_CONTROL_ERROR", "the connection's window is exceeded");
    }
    if (this.#left > LIMITS.connectionWindow / 2) return;
    this.#sender.windowUpdate(0, LIMITS.connectionWindow - this.#left);
    this.#left = LIMITS.connectionWindow;
  }
}
