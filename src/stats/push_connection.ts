import net from "node:net";
import type { Clock } from "../base/clock.ts";
import { settledWithin } from "../base/wait.ts";

/** Timeouts; that of connecting includes the lookup of the name. */
const CONNECT_MS = 5_000;
const WRITE_MS = 30_000;
const CLOSE_MS = 500;

/** The receiver of a connection. */
interface PushConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
}

/** Events of a connection; never called by its constructor. */
interface PushConnectionEvents {
  opened(): void;
  /** The last event. */
  lost(reason: string): void;
}

/** One connection to a receiver of statistics, which sends nothing. */
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
    // A socket may fail more than once.
    socket.on("error", (error: Error & { readonly code?: string }) => this.#end(reasonOf(error)));
    socket.on("end", () => this.#end("it closed the connection"));
    socket.on("close", () => this.#end("it closed the connection"));
    socket.on("connect", () => this.#open());
    socket.resume(); // unread bytes would hide the end of the connection
  }

  /** True when a text can be written now. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Writes a text, one at a time; returns whether the system accepted it, waiting for a slow receiver. */
  write(text: string): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    if (!this.#isOpen) return Promise.resolve(false);
    this.#written = resolve;
    this.#cancelDeadline = this.#clock.after(WRITE_MS, () => this.#end(`it took nothing for ${WRITE_MS} ms`));
    this.#socket.write(text, () => {
      // Also called for a failure.
      if (!this.#isEnded) this.#settle(true);
    });
    return promise;
  }

  /** Closes it once the receiver has what was written, with a timeout. */
  async close(): Promise<void> {
    if (this.#isOpen && this.#written === undefined) {
      this.#isOpen = false;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#socket.once("close", () => resolve());
      this.#socket.end(resolve);
      await settledWithin(promise, CLOSE_MS, this.#clock);
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

/** The error of a name with several addresses has no message. */
function reasonOf(error: Error & { readonly code?: string }): string {
  return error.message === "" ? error.code ?? error.name : error.message;
}
