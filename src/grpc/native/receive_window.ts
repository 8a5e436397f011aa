import { ConnectionError } from "./frames.ts";
import { LIMITS } from "./limits.ts";
import type { FrameSender, OutgoingStream } from "./frame_sender.ts";

/** A flow control window for received DATA. */
export class ReceiveWindow {
  readonly #size: number;
  #left: number;

  /** `size` in bytes. */
  constructor(size: number) {
    this.#size = size;
    this.#left = size;
  }

  /** Takes the payload of a frame, padding included; false when it exceeds the window. */
  take(bytes: number): boolean {
    this.#left -= bytes;
    return this.#left >= 0;
  }

  /** Number of bytes to grant the peer, which are added to the window; 0 while more than half of it is left. */
  refill(): number {
    if (this.#left > this.#size / 2) return 0;
    const used = this.#size - this.#left;
    this.#left = this.#size;
    return used;
  }
}

type WindowSender = Pick<FrameSender<OutgoingStream>, "windowUpdate">;

/** The window of a whole connection, which is refilled as soon as DATA arrive: the windows of its streams limit them. */
export class ConnectionWindow {
  readonly #sender: WindowSender;
  readonly #window = new ReceiveWindow(LIMITS.connectionWindow);

  constructor(sender: WindowSender) {
    this.#sender = sender;
  }

  /** Takes the payload of a frame, padding included. Throws `ConnectionError` when it exceeds the window. */
  take(bytes: number): void {
    if (!this.#window.take(bytes)) {
      throw new ConnectionError("FLOW_CONTROL_ERROR", "the connection's window is exceeded");
    }
    const refill = this.#window.refill();
    if (refill > 0) this.#sender.windowUpdate(0, refill);
  }
}
