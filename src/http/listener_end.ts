import type { Clock } from "../base/clock.ts";
import { settledWithin } from "../base/wait.ts";
import type { RunningRequests } from "./running_requests.ts";

/** How long answers that were forced at the end of the grace have to leave. */
const LAST_ANSWERS_MS = 250;

/** A server as its end needs it. */
export interface EndingServer {
  /** Stops accepting, and settles when every connection has ended. */
  shutDown(): Promise<void>;
  /** Stops accepting and cuts every connection; never called after `shutDown` by the end itself. */
  cut(): Promise<void>;
  /** Called when connections are left after the grace: their peers must not hold up the end. */
  abandon(): void;
}

/** The end of a listener, asked for once or several times. */
export class ListenerEnd {
  readonly #running: RunningRequests;
  readonly #server: EndingServer;
  readonly #clock: Clock;
  readonly #graceOver = Promise.withResolvers<void>();
  #ended: Promise<void> | undefined;
  /** When the grace is over, by the clock's `elapsed`. */
  #deadline = Infinity;
  #cancelTimer = () => {};

  constructor(running: RunningRequests, server: EndingServer, clock: Clock) {
    this.#running = running;
    this.#server = server;
    this.#clock = clock;
  }

  /** Ends within the grace, or within that of an earlier call where it is over sooner. */
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

  /** No later call sets a timer. */
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
