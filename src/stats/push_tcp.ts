import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { settledWithin } from "../base/wait.ts";
import type { Carrier, PushOutage } from "./flush_ports.ts";
import { PushConnection } from "./push_connection.ts";

/** Waits after failed attempts. */
const BACKOFF = { firstMs: 1_000, longestMs: 30_000 };
/** A connection of this age ends an outage; a younger one may be to a proxy without a receiver. */
const STEADY_MS = 1_000;
/** Longest wait of the last flush for a connection. */
const LAST_ATTEMPT_MS = 500;

/** The receiver, and the parts of the connection to it. */
interface PushTcpOptions {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly outage: PushOutage;
}

/** Pushes lines over TCP, reconnecting with a backoff. Nothing is queued: during an outage counts stay in the store. */
export class PushTcp implements Carrier {
  readonly #options: PushTcpOptions;
  #connection: PushConnection | undefined;
  /** Settles when the current attempt has ended, either way. */
  #attempt = Promise.withResolvers<void>();
  #cancelTimer = () => {};
  #failures = 0;
  #linesLost = 0;
  #isClosed = false;

  constructor(options: PushTcpOptions) {
    this.#options = options;
    this.#connect();
  }

  get usable(): boolean {
    return this.#connection?.isOpen === true;
  }

  /** Lines on a connection that broke; some may have arrived. */
  get linesLost(): number {
    return this.#linesLost;
  }

  async prepare(isLast: boolean): Promise<void> {
    if (!isLast || this.#isClosed || this.usable) return;
    if (this.#connection === undefined) this.#connect();
    await settledWithin(this.#attempt.promise, LAST_ATTEMPT_MS, this.#options.clock);
  }

  async send(units: readonly string[]): Promise<void> {
    const text = `${units.join("\n")}\n`;
    const isTaken = await this.#connection?.write(text);
    if (isTaken !== true) this.#linesLost += text.split("\n").length - 1;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer();
    await this.#connection?.close();
  }

  #connect(): void {
    this.#cancelTimer();
    this.#attempt = Promise.withResolvers();
    const connection = new PushConnection(this.#options, {
      opened: () => this.#opened(),
      lost: (reason) => this.#lost(connection, reason),
    });
    this.#connection = connection;
  }

  #opened(): void {
    this.#attempt.resolve();
    this.#cancelTimer = this.#options.clock.after(STEADY_MS, () => {
      this.#failures = 0;
      this.#options.outage.worked();
    });
  }

  #lost(connection: PushConnection, reason: string): void {
    if (this.#connection === connection) this.#connection = undefined;
    this.#attempt.resolve();
    this.#cancelTimer();
    if (this.#isClosed) return;
    const { clock, random, outage } = this.#options;
    outage.failed(reason);
    const waitMs = backoffMs(++this.#failures, random(), BACKOFF);
    this.#cancelTimer = clock.after(waitMs, () => this.#connect());
  }
}
