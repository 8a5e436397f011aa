import type { Clock } from "../../base/clock.ts";
import type { KvBatch } from "./batch.ts";
import type { KvConnection } from "./connection.ts";

/** A batch that was written and waits for its answers. */
export interface InFlight {
  readonly batch: KvBatch;
  /** When its first hit was asked for, in milliseconds. */
  readonly startedAt: number;
  readonly connection: KvConnection;
}

/** How long batches may be under way. */
export interface KvInFlightOptions {
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** The time of a batch is over; it is not held any more. */
  readonly onExpired: (inFlight: InFlight) => void;
}

/** The batches under way to one node, with one timer for all: they end in the order in which they began. */
export class KvInFlight {
  readonly #options: KvInFlightOptions;
  readonly #held = new Set<InFlight>();
  #cancelDeadline: (() => void) | undefined;

  constructor(options: KvInFlightOptions) {
    this.#options = options;
  }

  /** How many there are. */
  get size(): number {
    return this.#held.size;
  }

  /** What is left of the time of something that began then, also when the clock was set back. */
  left(startedAt: number): number {
    const { clock, timeoutMs } = this.#options;
    return Math.min(timeoutMs, Math.max(0, startedAt + timeoutMs - clock.now()));
  }

  /** Takes one that was written. */
  add(inFlight: InFlight): void {
    this.#held.add(inFlight);
    this.#arm();
  }

  /** Lets go of one; answers whether it was still held. */
  delete(inFlight: InFlight): boolean {
    if (!this.#held.delete(inFlight)) return false;
    if (this.#held.size === 0) this.#disarm();
    return true;
  }

  /** Lets go of those on a connection, or of all, and answers them. */
  takeAll(connection?: KvConnection): InFlight[] {
    const taken = [...this.#held].filter((one) => connection === undefined || one.connection === connection);
    for (const one of taken) this.delete(one);
    return taken;
  }

  #arm(): void {
    if (this.#cancelDeadline !== undefined) return;
    const [oldest] = this.#held;
    if (oldest === undefined) return;
    this.#cancelDeadline = this.#options.clock.after(this.left(oldest.startedAt), () => {
      this.#cancelDeadline = undefined;
      this.#expire();
      this.#arm();
    });
  }

  #expire(): void {
    const { clock, timeoutMs, onExpired } = this.#options;
    const now = clock.now();
    for (const inFlight of [...this.#held]) {
      const age = now - inFlight.startedAt;
      // One that began in the future began before the clock was set back.
      if (age >= 0 && age < timeoutMs) return;
      this.#held.delete(inFlight);
      onExpired(inFlight);
    }
  }

  #disarm(): void {
    this.#cancelDeadline?.();
    this.#cancelDeadline = undefined;
  }
}
