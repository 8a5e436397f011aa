import net from "node:net";
import type { Clock } from "../base/clock.ts";
import { settledWithin } from "../base/wait.ts";

/** Longest time until a connection stands, the look-up of the name included, in milliseconds. */
const CONNECT_MS = 5_000;
/** A receiver that takes nothing for so long is given up. */
const WRITE_MS = 30_000;
/** Longest time that the goodbye takes. */
const GOODBYE_MS = 500;

/** Where to connect. */
export interface PushConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
}

/** What a connection tells its owner, never while it is being made. */
export interface PushConnectionEvents {
  opened(): void;
  /** It is gone for good. */
  lost(reason: string): void;
}

/** One connection to a receiver of statistics, who has nothing to say. */
export class PushConnection {
  readonly #clock: Clock;
  readonly #events: PushConnectionEvents;
  readonly #socket: net.Socket;
  #isOpen = false;
  #isEnded = false;
  #cancelDeadline: () => void;
  #written: ((isTaken: boolean) => void) | undefined;

  constructor({ host, port, clock }: PushConnectionOptions, events: PushConnectionEvents) {
    this.#clock = clock;
    this.#events = events;
    this.#cancelDeadline = clock.after(CONNECT_MS, () => this.#end(`no connection within ${CONNECT_MS} ms`));
    const socket = net.connect({ host, port });
    this.#socket = socket;
    // All of them stay until the end: a socket may fail more than once.
    socket.on("error", (error: Error & { readonly code?: string }) => this.#end(reasonOf(error)));
    socket.on("end", () => this.#end("it closed the connection"));
    socket.on("close", () => this.#end("it closed the connection"));
    socket.on("connect", () => this.#open());
    socket.resume(); // unread bytes would hide the end of the connection
  }

  /** Whether something can be written now. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Writes a text, one at a time; answers whether the system took it. A receiver that reads slowly is
   * waited for.
   */
  write(text: string): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    if (!this.#isOpen) return Promise.resolve(false);
    this.#written = resolve;
    this.#cancelDeadline = this.#clock.after(WRITE_MS, () => this.#end(`it took nothing for ${WRITE_MS} ms`));
    this.#socket.write(text, () => {
      // Called for a failure too, which the end tells of.
      if (!this.#isEnded) this.#settle(true);
    });
    return promise;
  }

  /** Ends it; what was written before goes out, unless the receiver does not take it in time. */
  async close(): Promise<void> {
    if (this.#isOpen && this.#written === undefined) {
      this.#isOpen = false;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#socket.once("close", () => resolve());
      this.#socket.end(resolve);
      await settledWithin(promise, GOODBYE_MS, this.#clock);
    }
    this.#end("it is closed");
  }

  #open(): void {
    if (this.#isEnded) return;
    this.#cancelDeadline();
    this.#isOpen = true;
    this.#events.opened();
  }

  #end(reason: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#isOpen = false;
    this.#socket.destroy();
    this.#settle(false);
    this.#events.lost(reason);
  }

  #settle(isTaken: boolean): void {
    this.#cancelDeadline();
    const written = this.#written;
    this.#written = undefined;
    written?.(isTaken);
  }
}

/** The error of a name with several addresses has no message of its own. */
function reasonOf(error: Error & { readonly code?: string }): string {
  return error.message === "" ? error.code ?? error.name : error.message;
}
