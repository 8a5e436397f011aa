import type { Clock } from "../../base/clock.ts";

/** Options of the wait while every connection is taken. */
export interface ConnectionWaitOptions {
  readonly clock: Clock;
  /** One more connection, an error, or a longer wait. */
  readonly onEmpty: "CREATE" | "ERROR" | "WAIT";
  readonly onEmptyWaitMs: number;
}

/** Notifications of the owner of a wait. */
interface ConnectionWaitEvents {
  /** One more connection is required. */
  create(): void;
  /** No connection was free for this long. */
  exhausted(reason: string, waitedMs: number): void;
}

/** Time between two groups of calls that fail: removing some from a batch costs as much as removing all. */
const GROUP_MS = 5;

/** The wait of calls for a free connection. */
export class ConnectionWait {
  readonly #options: ConnectionWaitOptions;
  readonly #events: ConnectionWaitEvents;
  #cancel: (() => void) | undefined;

  constructor(options: ConnectionWaitOptions, events: ConnectionWaitEvents) {
    this.#options = options;
    this.#events = events;
  }

  get isRunning(): boolean {
    return this.#cancel !== undefined;
  }

  /** Waits as set, at most half of the time that there was, and then for the rest unless that is an error. */
  begin(leftMs: number, waitedMs: number): void {
    const { clock, onEmpty, onEmptyWaitMs } = this.#options;
    const allMs = leftMs + waitedMs;
    const firstMs = onEmptyWaitMs < allMs ? onEmptyWaitMs : allMs / 2;
    const waitMs = onEmpty === "WAIT" ? allMs : firstMs;
    // A timer ignores fractions and would fire too early. Calls that came one after the other fail in groups.
    const delayMs = Math.max(waitedMs === 0 ? 0 : GROUP_MS, Math.ceil(waitMs - waitedMs));
    this.#cancel = clock.after(delayMs, () => {
      if (onEmpty !== "CREATE") return this.#giveUp(waitMs);
      this.#events.create();
      this.#cancel = clock.after(Math.max(0, leftMs - delayMs), () => this.#giveUp(allMs));
    });
  }

  end(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #giveUp(waitedMs: number): void {
    this.#cancel = undefined;
    this.#events.exhausted(`no connection was free within ${Math.round(waitedMs)} ms`, waitedMs);
  }
}
