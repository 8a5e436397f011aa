import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { settledWithin } from "../base/wait.ts";
import type { Carrier, PushOutage } from "./flush_ports.ts";
import { Pool } from "../net/pool.ts";
import { StatsdConnection } from "./statsd_connection.ts";

/** Waits after failed attempts. */
const BACKOFF = { firstMs: 1_000, longestMs: 30_000 };
/** A connection of this age ends an outage; a younger one may be to a proxy without a receiver. */
const STEADY_MS = 1_000;
/** Longest wait of the last flush for a connection. */
const LAST_ATTEMPT_MS = 500;

/** The receiver, and the parts of the connection to it. */
interface StatsdTcpOptions {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly outage: PushOutage;
}

/** Pushes lines over TCP, reconnecting with a backoff. Nothing is queued: during an outage counts stay in the store. */
export class StatsdTcp implements Carrier {
  readonly #clock: Clock;
  readonly #pool: Pool<StatsdConnection>;
  /** Settles when the current attempt has ended, either way. */
  #attempt = Promise.withResolvers<void>();
  #cancelSteady = () => {};
  #linesLost = 0;
  #isClosed = false;

  constructor(options: StatsdTcpOptions) {
    const { clock, random, outage } = options;
    this.#clock = clock;
    this.#pool = new Pool({
      minSize: 1,
      maxSize: 1,
      isShared: true,
      settledMs: STEADY_MS,
      retryDelayMs: (failures) => backoffMs(failures, random(), BACKOFF),
      clock,
      open: (lost, signal) => StatsdConnection.open(options, lost, signal),
      events: {
        opened: () => {
          this.#attempt.resolve();
          this.#cancelSteady = clock.after(STEADY_MS, () => outage.worked());
        },
        free: () => {},
        lost: (reason) => {
          this.#cancelSteady();
          this.#attempt.resolve();
          outage.failed(reason);
        },
      },
    });
  }

  get usable(): boolean {
    return this.#pool.connected;
  }

  /** Lines on a connection that broke; some may have arrived. */
  get linesLost(): number {
    return this.#linesLost;
  }

  async prepare(isLast: boolean): Promise<void> {
    if (!isLast || this.#isClosed || this.usable) return;
    this.#attempt = Promise.withResolvers();
    if (this.#pool.fullSize === 0) this.#pool.open();
    await settledWithin(this.#attempt.promise, LAST_ATTEMPT_MS, this.#clock);
  }

  async send(units: readonly string[]): Promise<void> {
    const text = `${units.join("\n")}\n`;
    const isTaken = await this.#pool.any()?.write(text);
    if (isTaken !== true) this.#linesLost += text.split("\n").length - 1;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelSteady();
    await this.#pool.any()?.finish();
    this.#pool.close();
  }
}
