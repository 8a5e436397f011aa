import type { Clock } from "../../base/clock.ts";
import { settledWithin } from "../../base/wait.ts";
import type { RunningRequests } from "./running_requests.ts";

/** Time for sending the forced responses after the grace. */
const LAST_ANSWERS_MS = 250;

/** The server that `ListenerEnd` ends. */
interface EndingServer {
  /** Stops accepting; settles when every connection has ended. */
  shutDown(): Promise<void>;
  /** Stops accepting and closes every connection; never called after `shutDown`. */
  cut(): Promise<void>;
  /** Called when connections are left after the grace; they must not delay the end. */
  abandon(): void;
}

/** The end of a listener, which may be requested several times. */
export class ListenerEnd {
  readonly #running: RunningRequests;
  readonly #server: EndingServer;
  readonly #clock: Clock;
  readonly #graceOver = Promise.withResolvers<void>();
  #ended: Promise<void> | undefined;
  /** Of the grace, by the clock's `elapsed`. */
  #deadline = Infinity;
  #cancelTimer = () => {};

  constructor(running: RunningRequests, server: EndingServer, clock: Clock) {
    this.#running = running;
    this.#server = server;
    this.#clock = clock;
  }

  /** Ends within the grace, or within a shorter one of another call. */
  within(graceMs: number): Promise<void> {
    if (this.#ended === undefined && graceMs <= 0) this.#ended = this.#cutAll();
    this.#ended ??= this.#drain().finally(() => this.#endGrace());
    this.#shorten(graceMs);
    return this.#ended;
  }

  #shorten(graceMs: number): void {
    const deadline = this.#clock.elapsed() + graceMs;
    if (deadline >= this.#deadline) return;
    this.#cancelTimer();
    this.#deadline = deadline;
    if (graceMs <= 0) this.#graceOver.resolve();
    else this.#cancelTimer = this.#clock.after(graceMs, this.#graceOver.resolve);
  }

  /** Keeps later calls from setting a timer. */
  #endGrace(): void {
    this.#deadline = -Infinity;
    this.#cancelTimer();
  }

  async #cutAll(): Promise<void> {
    this.#running.giveUp();
    await this.#server.cut();
  }

  async #drain(): Promise<void> {
    this.#running.drain();
    const shutdown = this.#server.shutDown();
    const graceOver = this.#graceOver.promise.then(() => false);
    if (await Promise.race([shutdown.then(() => true), graceOver])) return;
    this.#running.giveUp();
    if (!await settledWithin(shutdown, LAST_ANSWERS_MS, this.#clock)) this.#server.abandon();
  }
}
